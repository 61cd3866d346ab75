"""The documentation says what the code does, and its examples run."""

import re
import sys
from dataclasses import fields
from itertools import pairwise
from types import ModuleType

import django
import pytest
from django.conf import settings
from django.core.management import BaseCommand, get_commands, load_command_class
from django.dispatch import Signal
from django.test import override_settings

from benchmarks.figures import FIGURES
from benchmarks.publish import README_FIGURES, README_SENTENCE
from django_rtq import JobState, signals
from django_rtq.console.reading.readers import Readers
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.keys import QUEUE_KEYS
from django_rtq.core.broker.redis.settings import read_connection_settings
from django_rtq.core.broker.schedule_store import ScheduleStore
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.conf.config import OPTIONS, Config, read_config
from django_rtq.core.scheduler.registry import declared_schedules
from django_rtq.core.tasks import Task, registry
from django_rtq.core.tasks.task import TASK_NAMES, USING_NAMES
from django_rtq.models import CommittedJob
from django_rtq.testing import eager
from docs.site import reference
from testproject.shop.models import Customer, Order, Tenant
from tests.markdown import ROOT, anchors, blocks, cells, read, rows, section
from tests.support.projects import run_python

ROOT_PAGES = [ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")]
OPERATIONS = "django_rtq/core/broker/lua/README.md"
PAGES = [
    *ROOT_PAGES,
    ROOT / OPERATIONS,
    *sorted((ROOT / "benchmarks").glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
DECISIONS = "docs/contributing/decisions.md"
COMMANDS = sorted(name for name, app in get_commands().items() if app == "django_rtq")


@pytest.fixture
def receivers(monkeypatch):
    """Receivers that an example connects are gone after the test."""
    for signal in [signal for signal in vars(signals).values() if isinstance(signal, Signal)]:
        monkeypatch.setattr(signal, "receivers", list(signal.receivers))


@pytest.fixture
def modules(monkeypatch):
    """Makes modules that are gone after the test, with the tasks in them."""
    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))

    def module(file):
        *packages, name = file.removesuffix(".py").split("/")
        for end in range(1, len(packages) + 1):
            package = ModuleType(".".join(packages[:end]))
            package.__path__ = []
            monkeypatch.setitem(sys.modules, package.__name__, sys.modules.get(package.__name__, package))
        made = sys.modules.get(".".join([*packages, name])) or ModuleType(".".join([*packages, name]))
        monkeypatch.setitem(sys.modules, made.__name__, made)
        return made

    return module


# -- examples


QUICK_START = section(read("README.md"), "## Quick start")
FIRST_TASKS = [code for file, code in blocks(read("README.md")) if file == "shop/tasks.py"]


def manage(folder, *arguments):
    """Run Python in a project's folder. Answers what it printed."""
    code, said = run_python(folder, *arguments, DJANGO_SETTINGS_MODULE="mysite.settings")
    assert code == 0, said
    return said


@pytest.mark.long
def test_the_quick_start_works_in_a_new_project(redis, redis_server, tmp_path):
    (_, our_settings), (_, enqueue), (_, later) = blocks(QUICK_START)
    manage(tmp_path, "-m", "django", "startproject", "mysite", ".")
    with (tmp_path / "mysite/settings.py").open("a") as file:
        file.write(our_settings.replace("redis://localhost:6379/0", redis_server.url))
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/tasks.py").write_text("".join(FIRST_TASKS))
    worker = '[sys.executable, "manage.py", "rtq_worker", "--burst"]'
    work = f"import subprocess, sys\nsubprocess.run({worker}, capture_output=True)"
    (tmp_path / "program.py").write_text(f"import django\ndjango.setup()\n{enqueue}\n{work}\n{later}")

    said = manage(tmp_path, "program.py")

    promised = re.findall(r"^print\(.*\)  # (.*)$", enqueue + later, re.M)
    assert len(promised) == 2
    assert said.splitlines() == promised


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md", "examples/saas/saas/settings.py"])
def test_the_package_is_named_behind_the_apps_of_a_project(page):
    assert re.search(
        r'"django_rtq",?\s*\]', read(page)
    )  # manage.py shell imports the models of earlier apps in case of doubt


def test_the_readme_begins_with_a_plain_task():
    before = read("README.md").partition("```python")[0]
    assert len(before.split()) <= 90
    assert "@task\ndef ship(order_id):" in FIRST_TASKS[0]
    assert len(FIRST_TASKS) == 2


@pytest.mark.long
def test_the_quick_start_is_short():
    lines = [
        line for _, code in blocks(QUICK_START, r"(?:python|console)") for line in code.splitlines() if line.strip()
    ]
    assert len(lines) < 20


def test_the_pages_for_users_are_short():
    """Without README, decisions, examples, and marks of Markdown."""
    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/how-to/*.md")]
    texts = [re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S) for page in pages]
    words = [word for text in texts for word in text.replace("|", " ").split() if re.search(r"\w", word)]
    assert len(words) <= 42_500


@pytest.mark.usefixtures("receivers")
def test_the_examples_of_the_tasks_page_run(broker, modules):
    for file, code in blocks(read("docs/tasks.md")):
        module = modules(file or "shop/tasks.py")
        exec(compile(code, f"docs/tasks.md: {file}", "exec"), vars(module))


def test_the_examples_of_the_django_tasks_page_run(broker, readers, modules):
    pytest.importorskip("django.tasks")
    (_, given), (_, code), (_, of_package), *_ = blocks(read("docs/django-tasks.md"))
    options = {}
    exec(compile(given, "docs/django-tasks.md", "exec"), options)
    module = modules("shop/tasks.py")
    with override_settings(TASKS=options["TASKS"]):
        exec(compile(code, "docs/django-tasks.md", "exec"), vars(module))
        result_id = module.order_paid(7)
        if django.VERSION >= (6, 1):
            reminders = modules("shop/reminders.py")
            exec(compile(of_package, "docs/django-tasks.md", "exec"), vars(reminders))
            reminder = readers.find(reminders.order_shipped(8, "acme"))
            assert (reminder.client, reminder.state) == ("acme", "scheduled")

    mail = readers.find(result_id)
    (ship,) = readers.search([("default", "scheduled")]).page().jobs
    assert (mail.task, mail.args) == ("shop.tasks.send_receipt", [7])
    assert ship.task == "shop.tasks.ship"
    declared = module.ship.rtq_task
    assert (declared.max_attempts, declared.time_limit) == (3, 60)


@pytest.mark.django_db
def test_the_example_of_the_exactly_once_page_runs(modules):
    shop = modules("shop/models.py")
    shop.Order = Order
    ((file, code),) = blocks(read("docs/exactly-once.md"))
    module = modules(file)
    exec(compile(code, "docs/exactly-once.md", "exec"), vars(module))
    tenant = Tenant.objects.create(slug="north")
    order = Order.objects.create(tenant=tenant, customer=Customer.objects.create(tenant=tenant), number=1)
    with eager():
        job = module.add_fee.delay(order.pk, 250)
    order.refresh_from_db()

    assert order.total_cents == 250
    assert CommittedJob.objects.filter(job_id=job.id).exists()


def test_the_receiver_of_the_lifecycle_page_is_told(capsys, modules):
    ((_, code),) = blocks(read("docs/lifecycle.md"))
    module = modules("shop/receivers.py")
    exec(compile(code, "docs/lifecycle.md", "exec"), vars(module))
    try:
        signals.job_buried.send_robust(None, job=None, job_id="some-id", error=ValueError("it broke"))
    finally:
        signals.job_buried.disconnect(module.tell_somebody)
    assert capsys.readouterr().out == "some-id is dead: it broke\n"


def test_the_examples_of_the_periodic_page_make_schedules(modules):
    (_, code), (_, our_settings) = blocks(read("docs/periodic.md"))
    module = modules("shop/tasks.py")
    exec(compile(code, "docs/periodic.md", "exec"), vars(module))
    exec("@task\ndef clean_up(days): ...\n@task\ndef beat(): ...\n", vars(module))
    given = {}
    exec(compile(our_settings, "docs/periodic.md", "exec"), given)
    names = {entry.name for entry in declared_schedules(read_config(given["RTQ"], debug=False))}
    assert names >= {"shop.tasks.morning_report", "shop.tasks.sync", "sync-stock", "nightly-cleanup", "heartbeat"}


SETTINGS_BLOCKS = blocks(read("docs/settings.md"))


@pytest.mark.parametrize("code", [code for file, code in SETTINGS_BLOCKS if file == "settings.py" and "RTQ =" in code])
def test_the_examples_of_settings_are_understood(code, modules):
    for file, other in SETTINGS_BLOCKS:
        if file != "settings.py":
            exec(compile(other, file, "exec"), vars(modules(file)))
    given = {}
    exec(compile(code, "docs/settings.md", "exec"), given)
    with override_settings(CACHES=given.get("CACHES", settings.CACHES)):
        connection_settings = read_connection_settings(read_config(given["RTQ"], debug=False))
    assert ":" in str(connection_settings)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_example_is_python(page):
    for file, code in blocks(page.read_text()):
        compile(code, f"{page.name}: {file}", "exec")


# -- lists that have to be complete


#: Options of tasks whose default the page says in words, or as code.
SAID_IN_WORDS = {"name", "queue_name", "backoff", "retry_on", "expires", "exactly_once", "schedule", "on_commit"}


SETTINGS = {row[0].strip("`"): row for row in rows(section(read("docs/settings.md"), "## Options"))}


@pytest.mark.parametrize("option", fields(Config), ids=lambda option: option.name)
def test_every_setting_is_documented_with_its_default_and_unit(option):
    default = getattr(Config(), option.name)
    _, said, unit, *_ = SETTINGS[option.name.upper()]
    assert unit == (OPTIONS[option.name.upper()].unit or unit)
    if isinstance(default, int | float) and not isinstance(default, bool):
        assert float(said.replace(",", "")) == default
    elif option.name not in ("redis", "db", "test_redis"):
        assert said == f"`{default!r}`".replace("'", '"').replace("()", "[]").replace("(", "[").replace(",)", "]")


def test_no_setting_is_documented_that_does_not_exist():
    assert SETTINGS.keys() == {option.name.upper() for option in fields(Config)}


def test_every_option_of_a_task_is_documented():
    options = section(read("docs/tasks.md"), "## Options")
    assert cells(options).keys() == TASK_NAMES
    takes = options.partition("It takes ")[2].partition(". ")[0]
    assert set(re.findall(r"`(\w+)`", takes)) == USING_NAMES


@pytest.mark.parametrize("name", sorted(TASK_NAMES - SAID_IN_WORDS))
def test_every_option_of_a_task_is_documented_with_its_default(name):
    default = Task.__dataclass_fields__[name].default
    said = cells(section(read("docs/tasks.md"), "## Options"))[name].strip("`")
    if isinstance(default, float):
        assert float(said) == default
    else:
        of_settings = f'RTQ["{name.upper()}"]' if hasattr(Config, name) else repr(default)
        assert said == (of_settings if default is None else repr(default).replace("'", '"'))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_section_and_its_options_are_explained(name):
    assert section(read("docs/worker.md"), f"## {name}")
    text = section(reference.commands(), f"## {name}")
    lines = re.findall(r"^- \**`(.*?)`\**(?: \(.*?\))?: ?(.*)$", text, re.M)
    assert [spelled for spelled, explained in lines if not explained] == []
    said = {option for spelled, _ in lines for option in re.findall(r"--[a-z-]+", spelled)}
    assert said == {option for option in options_of(name) if option.startswith("--")}


def options_of(name):
    """The options of a command and of its actions, but for those of all commands of Django."""
    parser = load_command_class("django_rtq", name).create_parser("manage.py", name)
    found, general = set(), set(BaseCommand().create_parser("manage.py", name)._option_string_actions)
    choices = [action.choices for action in parser._actions if isinstance(action.choices, dict)]
    for each in [parser, *(sub for named in choices for sub in named.values())]:
        found |= set(each._option_string_actions) - general
    return found


def test_the_page_of_the_commands_has_all_options_of_a_worker():
    said = {
        name
        for row in rows(section(read("docs/worker.md"), "## rtq_worker"))
        for name in re.findall(r"^`(--[a-z-]+)", row[0])
    }
    assert said == options_of("rtq_worker")


def test_every_script_is_in_the_readme_of_the_scripts():
    said = re.findall(r"`(\w+)\.lua`", read(OPERATIONS))
    assert set(said) == SCRIPTS.keys()


def test_each_row_of_a_table_has_a_cell_for_each_of_its_columns():
    for page in PAGES:
        tables = re.findall(r"(?:^\|.*\n)+", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), re.M)
        for table in tables:
            widths = {line: len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
            assert len(set(widths.values())) == 1, widths


def test_every_method_in_the_readme_of_the_scripts_exists():
    owners = {owner.__name__: owner for owner in (Broker, WorkerBroker, Readers, ScheduleStore)}
    named = re.compile(rf"`({'|'.join(owners)})\.(\w+(?:`, `\w+)*)`")
    for row in rows(read(OPERATIONS)):
        for owner, names in named.findall(" | ".join(row)):
            for name in names.split("`, `"):
                assert hasattr(owners[owner], name), f"{owner}.{name}"


def test_every_signal_and_every_state_is_on_the_lifecycle_page():
    text = read("docs/lifecycle.md")
    known = {name for name, value in vars(signals).items() if isinstance(value, Signal)}
    assert cells(section(text, "## Signals")).keys() == known
    assert {name for name in vars(signals) if name[0] not in "_@"} == known  # for `import *`
    assert list(cells(section(text, "## States"))) == [str(state) for state in JobState]
    about_jobs = {name for name in known if name.startswith("job_")}
    for page in (text, read(OPERATIONS)):
        assert set(re.findall(r"`(job_[a-z]+)`", page)) - {"job_id", "job_ids"} <= about_jobs


OF_NO_QUEUE = (
    *("rtq:queues", "rtq:workers", "rtq:format", "rtq:data_lost", "rtq:plan"),
    *("rtq:worker:<name>", "rtq:control_signal:<supervisor>", "rtq:control:<supervisor>"),
)


def test_every_key_is_on_the_page_of_the_keys_with_its_type():
    assert sorted(cells(read("docs/site/keys.md"))) == sorted(OF_NO_QUEUE)
    said = cells(reference.keys())
    assert {key.partition("<")[0]: kind for key, kind in said.items()} == {
        key.name: key.kind for key in QUEUE_KEYS.values()
    }
    assert said["lane:<band>:<client>"] == "list"


# -- what the pages name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        file, _, anchor = target.partition("#")
        if "://" not in target:
            there = page.parent / file if file else page
            assert there.exists(), target
            assert not anchor or anchor in anchors(there.read_text()), target


def test_the_index_and_the_menu_of_the_site_lead_to_every_page():
    pages = [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")]
    index, menu = read("docs/index.md"), read("docs/site/conf.py")
    index += re.sub(r"\]\((?=[\w-]+\.md)", "](how-to/", read("docs/how-to/index.md"))
    for page in sorted(page for page in pages if not page.startswith(("contributing/", "index"))):
        assert re.search(rf"\]\({page}[)#]", index), f"no page named index.md has a link to {page}"
        assert f'"{page.removesuffix(".md")}"' in menu, f"{page} is in no list of docs/site/conf.py"


def test_every_guarantee_names_its_tests():
    text = read("docs/guarantees.md")
    headings = re.findall(r"^## (G\d+) .*$", text, re.M)
    assert headings == [f"G{number}" for number in range(1, 14)]
    for heading in re.findall(r"^## G\d+ .*$", text, re.M):
        body = section(text, heading)
        assert "Not there yet" in body or "](../tests/" in body, heading


def test_every_decision_has_its_parts():
    text = read(DECISIONS)
    numbers = [int(number) for number in re.findall(r"^## D(\d+) ", text, re.M)]
    assert numbers == sorted(set(numbers))
    starts = [found.start() for found in re.finditer(r"^## D", text, re.M)]
    for start, end in pairwise([*starts, len(text)]):
        parts = re.findall(r"^- \*\*(.*?)\*\*:", text[start:end], re.M)
        assert [*parts, "Would change our mind"][:4] == ["Question", "Choice", "Rejected", "Would change our mind"], (
            text[start : start + 40]
        )


def test_every_decision_is_named_from_the_code_that_it_governs():
    decisions = set(re.findall(r"^## (D\d+) ", read(DECISIONS), re.M))
    files = [path for kind in ("py", "lua") for path in (ROOT / "django_rtq").rglob(f"*.{kind}")]
    named = {name for path in [*files, ROOT / "pyproject.toml"] for name in re.findall(r"\bD\d+\b", path.read_text())}
    assert decisions - named == set(), "name them where they hold, or say it there instead"
    assert named - decisions == set(), "these are no decisions"


def test_the_readme_names_figures_and_make_targets_that_exist():
    text = read("README.md")
    assert set(README_FIGURES) <= FIGURES.keys()
    words = [re.escape(part) for part in README_SENTENCE.split("{}")]
    assert re.search(r"[\d.,]+".join(words), text), "benchmarks/publish.py writes another sentence"
    assert set(re.findall(r"`make ([a-z-]+)`", text)) <= set(re.findall(r"^([a-z-]+):", read("Makefile"), re.M))


def test_the_readme_and_the_compatibility_page_name_the_versions_that_are_tested():
    text = read("pyproject.toml")
    versions = re.findall(r'"(?:Programming Language|Framework) :: (Python|Django) :: (\d\.\d+)"', text)
    pythons, djangos = ([number for of, number in versions if of == name] for name in ("Python", "Django"))
    tested = f"Python {pythons[0]} to {pythons[-1]}, Django {djangos[0]} to {djangos[-1]}"
    assert tested in section(read("README.md"), "## Versions")
    named = [row[0] for row in rows(section(read("docs/compatibility.md"), "## Python, Django, Redis"))]
    assert sorted(named) == sorted(map(" ".join, versions))

"""The declaration of a task: which functions can be one, its names, how it is shown, options, copies, queues."""

import asyncio
import functools
import importlib
import inspect
import logging
import pydoc
import sys
from dataclasses import FrozenInstanceError
from unittest import mock

import pytest
from django.conf import settings
from django.test import override_settings

from django_rtq import task
from django_rtq.core.jobs.job import write_body
from django_rtq.core.tasks import declaration, registry
from django_rtq.core.tasks.registry import declared_queues
from django_rtq.core.tasks.task import Task
from django_rtq.exceptions import TaskNotFound
from tests.app.tasks import note
from tests.core.tasks.refusals import refusal
from tests.support.apps import captured, drain, needs
from tests.support.jobs import queued_job, take, take_all

pytestmark = pytest.mark.usefixtures("forget_tasks")


@task
def plain(a: int = 0) -> int:
    """What it does."""
    return a


@task(takes_context=True)
def with_context(context, a, *, b=1): ...


def send(a=0):
    return a


def receive(a=0):
    return a


# -- functions that are refused


def nested():
    def inner():
        pass

    return inner


def steps():
    yield 1


async def asteps():
    yield 1


class Shop:
    def charge(self): ...

    @classmethod
    def refund(cls): ...

    @staticmethod
    def count(): ...


@pytest.mark.parametrize(
    ("function", "name", "problem"),
    [
        (nested(), "tests.core.tasks.test_declaration.nested.<locals>.inner", "Move it to the top level of its module"),
        (lambda: None, "tests.core.tasks.test_declaration.<lambda>", "Write a function with def."),
        (functools.partial(send, 1), "functools.partial(<function send at", "it is no function"),
        ("mail", "'mail'", "it is no function"),
        (int, "<class 'int'>", "it is no function"),
        (plain, "<Task tests.core.tasks.test_declaration.plain>", "it is no function"),
        (Shop.charge, "tests.core.tasks.test_declaration.Shop.charge", "Workers have no object to call it on."),
        (vars(Shop)["refund"], "tests.core.tasks.test_declaration.Shop.refund", "it is declared in a class"),
        (vars(Shop)["count"], "tests.core.tasks.test_declaration.Shop.count", "it is declared in a class"),
        (Shop().charge, "<bound method Shop.charge", "it is declared in a class"),
        (steps, "tests.core.tasks.test_declaration.steps", "it is a generator"),
        (asteps, "tests.core.tasks.test_declaration.asteps", "it is a generator"),
    ],
)
def test_what_a_worker_could_not_find_or_run_is_no_task(function, name, problem):
    before = registry.all_tasks()

    text = refusal(task, function)

    assert text.startswith(name)
    assert " cannot be a task: " in text
    assert problem in text
    assert registry.all_tasks() == before


# -- names


def test_a_task_may_have_a_name(broker):
    charge = task(name="shop.charge")(send)

    assert charge.name == "shop.charge"
    assert registry.get_task("shop.charge") is charge
    charge.delay(5)
    assert take(broker).task == "shop.charge"


def test_a_worker_finds_a_task_by_its_aliases(broker):
    charge = task(name="shop.charge", aliases=["shop.tasks.old_charge", "shop.tasks.older_charge"])(send)
    for name in ("shop.tasks.old_charge", "shop.tasks.older_charge", f"{__name__}.send"):
        assert registry.get_task(name) is charge
        queued_job(broker, body=write_body(name, '"args":[7]'), queue="default")

    runs = drain()

    assert [(run.result, run.task) for run in runs] == [(7, "shop.charge")] * 3
    assert "shop.tasks.old_charge" not in registry.all_tasks()


def test_a_job_that_ran_under_an_alias_is_known_by_the_name(broker, readers):
    task(name="shop.charge", aliases=["shop.tasks.old_charge"])(send)
    job = queued_job(broker, body=write_body("shop.tasks.old_charge", '"args":[7]'), queue="default")
    drain()
    assert readers.find(job.id).task == "shop.charge"


def test_a_copy_keeps_its_names():
    charge = task(name="shop.charge", aliases=["shop.tasks.old_charge"])(send)
    assert charge.using(queue_name="mail").name == "shop.charge"
    assert charge.aliases == ("shop.tasks.old_charge", f"{__name__}.send")
    assert plain.aliases == ()


@pytest.mark.parametrize("name", ["a b", 'a"b', "a/b", "a\\b", "a\n", "x" * 201, 3, ["a"]])
def test_names_that_are_refused(name):
    said = f"{name!r}, but the name of a task is 1 to 200 letters, digits, '.', '_', ':' and '-'."
    assert refusal(task(name=name), send) == f"{__name__}.send: name has {said}"
    assert refusal(task(aliases=[name]), send) == f"{__name__}.send: aliases has {said}"
    assert refusal(task(aliases=[""]), send).startswith(f"{__name__}.send: aliases has ''")


def test_aliases_are_a_list():
    assert "has to be a list of names" in refusal(task(aliases="shop.tasks.old"), send)


@pytest.mark.parametrize(
    "options",
    [{"name": "shop.charge"}, {"aliases": ["shop.charge"]}, {"name": "shop.old"}, {"aliases": ["shop.old"]}],
)
def test_a_name_that_another_task_has_is_refused(options):
    charge = task(name="shop.charge", aliases=["shop.old"])(send)
    taken = [*options.values(), options.get("aliases", [""])][0]
    taken = taken[0] if isinstance(taken, list) else taken

    assert refusal(task(**options), receive) == (
        f"{taken!r} is the name of two tasks: {__name__}.send and {__name__}.receive. Change `name` or `aliases`."
    )
    assert registry.get_task("shop.charge") is registry.get_task("shop.old") is charge


def test_a_module_that_is_reloaded_replaces_its_tasks_and_their_names():
    task(name="shop.charge", aliases=["shop.old"])(send)
    new = task(name="shop.pay", aliases=["shop.charge"])(send)

    assert registry.get_task("shop.pay") is registry.get_task("shop.charge") is new
    with pytest.raises(TaskNotFound):
        registry.get_task("shop.old")


# -- how it is shown


def test_a_task_shows_its_function():
    assert (plain.__name__, plain.__qualname__, plain.__module__) == ("plain", "plain", __name__)
    assert plain.__doc__ == "What it does."
    assert plain.__wrapped__ is plain.func
    assert str(inspect.signature(plain)) == "(a: int = 0) -> int"
    assert "What it does." in pydoc.render_doc(plain)
    assert inspect.unwrap(plain.using(queue_name="mail")) is plain.func


def test_the_context_is_not_in_its_signature():
    assert str(inspect.signature(with_context)) == "(a, *, b=1)"


def test_its_repr_is_short():
    assert repr(plain) == f"<Task {__name__}.plain>"
    copy = plain.using(queue_name="mail", priority=3, client="x" * 100)
    assert repr(copy) == f"<Task {__name__}.plain client='xxxxxxxxxxxx...xxxxxxxxxxxxx' priority=3 queue_name='mail'>"


# -- options for several tasks


def test_a_decorator_with_options_of_its_own():
    mail_task = task.with_options(queue_name="mail", max_attempts=3)
    first, second = mail_task(send), mail_task(priority=1, max_attempts=5)(receive)

    assert isinstance(first, Task)
    assert (first.queue_name, first.max_attempts, first.priority) == ("mail", 3, 0)
    assert (second.queue_name, second.max_attempts, second.priority) == ("mail", 5, 1)
    assert task(send).queue_name == ""
    assert (task(send, priority=2).priority, mail_task(send, priority=2).priority) == (2, 2)


def test_its_options_can_be_extended():
    urgent_mail_task = task.with_options(queue_name="mail").with_options(priority=5)
    assert repr(urgent_mail_task) == "<@task, queue_name='mail', priority=5>"
    sent = urgent_mail_task(takes_context=True)(with_context.func)
    assert (sent.queue_name, sent.priority, sent.takes_context) == ("mail", 5, True)


@needs("compat")
def test_options_that_belong_to_one_task_are_refused():
    for name in ("name", "aliases", "takes_context"):
        assert refusal(task.with_options, **{name: 1}) == (
            f"with_options() does not take {name!r}. Use @task({name}=…)."
        )
    assert refusal(task.with_options, run_after=3).endswith("Use .using(run_after=…).")
    assert refusal(task.with_options, uniq=True).startswith(
        "with_options() does not take 'uniq'. Did you mean unique? "
    )
    assert refusal(task.with_options(priority="x"), send).startswith(f"{__name__}.send: priority is 'x'")


# -- copies with other options


def test_using_makes_a_copy_and_leaves_the_task_alone():
    copy = plain.using(queue_name="bulk").using(max_attempts=9, queue_name="mail")

    assert (plain.queue_name, plain.max_attempts) == ("", None)
    assert (copy.queue_name, copy.max_attempts, copy.name) == ("mail", 9, plain.name)
    assert registry.get_task(plain.name) is plain
    assert copy(1) == 1


def test_a_copy_of_a_copy_that_was_called_forgets_what_it_changes(broker):
    copy = plain.using(max_attempts=9, expires=5, unique=True)
    copy.delay()

    copy.using(max_attempts=2, expires=None, unique=False).delay()

    first, second = take_all(broker)
    assert (first.options, second.options) == ({"max_attempts": 9}, {"max_attempts": 2})
    assert first.expires_ms > 0
    assert second.expires_ms == 0


# -- replaced in tests


METHODS = ["delay", "adelay", "delay_many", "adelay_many", "using"]


@pytest.mark.parametrize("method", METHODS)
def test_mock_patch_replaces_a_method_for_a_while(method):
    with mock.patch(f"tests.app.tasks.note.{method}") as replaced:
        called = getattr(note, method)("a", number=2)
        replaced.assert_called_once_with("a", number=2)
        if method in ("adelay", "adelay_many"):
            asyncio.run(called)

    assert getattr(note, method).__func__ is getattr(Task, method)


def test_a_copy_has_the_methods_of_its_class():
    with mock.patch.object(note, "delay"):
        assert note.using(priority=5).delay.__func__ is Task.delay


@pytest.mark.parametrize("name", ["func", "queue_name", "priority", "client", "unique", "name", "queue", "new_option"])
def test_options_and_properties_cannot_be_changed(name):
    before = getattr(note, name, None)
    with pytest.raises(FrozenInstanceError):
        setattr(note, name, "other")
    with pytest.raises(FrozenInstanceError):
        delattr(note, name)
    assert getattr(note, name, None) is before


# -- their queues


def test_the_default_queue_is_expected_if_a_task_uses_it(monkeypatch):
    task = Task(func=receive, name="shop.tasks.remind")
    monkeypatch.setattr(registry, "_tasks", {task.name: task})
    assert declared_queues() == ["default"]

    named = Task(func=receive, name="shop.tasks.remind", queue_name="orders")
    monkeypatch.setattr(registry, "_tasks", {named.name: named})
    assert declared_queues() == ["orders"]
    with override_settings(RTQ={"DEFAULT_QUEUE": "mail", "QUEUES": {"bulk": {}}}):
        assert declared_queues() == ["bulk", "orders"]


@pytest.mark.parametrize(
    ("options", "queues"), [({}, ["default"]), ({"QUEUES": {"default": {}, "bulk": {}}}, ["bulk", "default"])]
)
def test_it_is_expected_if_no_queue_is_named_at_all_or_the_settings_name_it(no_tasks, options, queues):
    with override_settings(RTQ=options):
        assert declared_queues() == queues


# -- tasks that workers do not know


@pytest.fixture
def in_debug(monkeypatch, caplog):
    """As in a web process in development."""
    monkeypatch.setattr(declaration, "is_under_test", lambda: False)
    monkeypatch.setattr(declaration, "_warned", set())
    caplog.set_level(logging.WARNING, "django_rtq")
    with override_settings(DEBUG=True):
        yield lambda: [record.getMessage() for record in caplog.records]


def test_a_task_that_was_declared_after_the_start_is_said_once(in_debug):
    late = task(send)
    with captured():
        late.delay()
        late.using(max_attempts=1).delay()
    (message,) = in_debug()
    assert message.startswith(
        f"A job of {__name__}.send was sent, but workers do not know this task: its module {__name__}"
    )
    assert "dead after RTQ[\"UNKNOWN_TASK_TIMEOUT\"], 86400 s. Move the task to the module 'tasks' of an app" in message


def test_a_task_that_was_declared_at_the_start_is_not(in_debug, monkeypatch):
    monkeypatch.setattr(declaration, "_late", set())
    with captured():
        plain.using(max_attempts=1).delay()
    assert in_debug() == []


def test_without_debug_nothing_is_said(in_debug):
    with override_settings(DEBUG=False), captured():
        task(send).delay()
    assert in_debug() == []


@pytest.mark.parametrize("module", [None, object()])
def test_a_project_without_the_app_is_said(in_debug, monkeypatch, module):
    monkeypatch.setattr(declaration.apps, "get_containing_app_config", lambda name: module)
    with override_settings(INSTALLED_APPS=[app for app in settings.INSTALLED_APPS if app != "django_rtq"]), captured():
        late = task(send)
        late.delay()
        late.delay()
    (message,) = in_debug()
    assert message.startswith(f'A job of {__name__}.send was sent, but "django_rtq" is missing in INSTALLED_APPS')


def test_a_module_that_workers_import_when_a_job_comes_is_not_meant(in_debug, monkeypatch):
    monkeypatch.setattr(declaration.apps, "get_containing_app_config", lambda name: object())
    with captured():
        task(send).delay()
    assert in_debug() == []


# -- modules that are imported when a job comes


@pytest.fixture
def late_app(tmp_path, monkeypatch):
    """Writes a module of an installed app."""
    (tmp_path / "late_app").mkdir()
    (tmp_path / "late_app" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    with override_settings(INSTALLED_APPS=[*settings.INSTALLED_APPS, "late_app"]):
        yield lambda name, code: (tmp_path / "late_app" / name).write_text(code)
    for name in [name for name in sys.modules if name.partition(".")[0] == "late_app"]:
        del sys.modules[name]


def test_the_module_of_an_installed_app_is_imported_without_a_backend_in_tasks(late_app, monkeypatch):
    monkeypatch.setattr(registry, "adopters", [])
    late_app("backends.py", "from django_rtq import task\n@task\ndef send(): pass\ndef plain(): pass\n")

    found = registry.get_task("late_app.backends.send")

    assert found.name == "late_app.backends.send"
    assert registry.known_task("late_app.backends.plain") is None
    assert registry.known_task("late_app.nothing.send") is None
    monkeypatch.delitem(sys.modules, "this", raising=False)
    assert registry.known_task("this.s") is None
    assert "this" not in sys.modules  # it belongs to no app


@pytest.mark.parametrize("code", ["1 / 0", "import missing_package", "raise SystemError('no')"])
def test_a_module_that_cannot_be_imported_is_named_with_its_error(late_app, code):
    late_app("broken.py", code)

    assert registry.known_task("late_app.broken.send") is None
    with pytest.raises(
        TaskNotFound, match=r"Its module cannot be imported: (ZeroDivision|ModuleNotFound|System)Error: "
    ):
        registry.get_task("late_app.broken.send")

    late_app("broken.py", "from django_rtq import task\n@task\ndef send(): pass  # mended\n")
    importlib.invalidate_caches()
    assert registry.get_task("late_app.broken.send")


def test_a_task_that_is_nowhere_is_refused_with_what_to_do():
    with pytest.raises(TaskNotFound) as error:
        registry.get_task("nowhere.tasks.send")
    assert str(error.value) == (
        "No task 'nowhere.tasks.send' is registered here. Workers import the modules 'tasks' of installed apps, and a "
        'task\'s own module if it belongs to an installed app. Add others to RTQ["TASK_MODULES"]. Or this process runs '
        "older code."
    )

"""What type checkers make of the page about django.tasks, and of projects that use its tasks with our backend."""

import json
import subprocess
import sys

import pytest

from tests.markdown import ROOT, blocks, read
from tests.support.projects import write_project

pytestmark = pytest.mark.long

EXAMPLES = {name: code for name, code in blocks(read("docs/django-tasks.md")) if name.startswith("shop/")}
# Where an error is expected it is ignored by its kind, and an ignore that nothing needs is an error.
USES = """
from datetime import timedelta

from django.tasks import TaskResult
from typing_extensions import assert_type

import django_rtq
from django_rtq import JobHandle
from django_rtq.backend import RTQTask, task
from shop.reminders import remind
from shop.tasks import send_receipt, ship


@task
async def on_the_loop(number: int) -> list[int]:
    return [number]


@task(takes_context=True, backend="reports", unique=["number"])
def with_context(context: "object", number: int) -> float:
    return 1.0


@django_rtq.task
def of_this_package(number: int) -> str:
    return ""


# Of Django's own decorator.
assert_type(send_receipt.enqueue(5).return_value, str)
assert_type(ship.enqueue(5).return_value, str)
send_receipt.enqueue("5")  # type: ignore[arg-type]
send_receipt.using(client="acme")  # type: ignore[call-arg]
send_receipt.delay(5)  # type: ignore[attr-defined]

# Of ours, which is the same.
assert_type(remind.enqueue(5).return_value, str)
assert_type(remind.delay(5), JobHandle[str])
assert_type(remind.delay_on_commit(5).result, str)
assert_type(remind.delay_many([((5,), {})]), list[JobHandle[str]])
assert_type(remind.using(client="acme", run_after=timedelta(1)).using(priority=3).delay(5), JobHandle[str])
assert_type(remind.get_result("1").return_value, str)
assert_type(on_the_loop.enqueue(5).return_value, list[int])
assert_type(on_the_loop.delay(5), JobHandle[list[int]])
assert_type(with_context.delay(number=5), JobHandle[float])
kept: RTQTask[[int], str] = remind
remind.enqueue("5")  # type: ignore[arg-type]
remind.enqueue()  # type: ignore[call-arg]
remind.delay("5")  # type: ignore[arg-type]
remind.using(countdown=5)  # type: ignore[call-arg]
remind.using(max_attempts="3")  # type: ignore[arg-type]
with_context.delay(1, 5)  # type: ignore[call-arg]
task(max_attempts="3")  # type: ignore[call-overload]
task(queue="mail")  # type: ignore[call-overload]

# And of @django_rtq.task.
assert_type(of_this_package.enqueue(5).return_value, str)
of_this_package.enqueue("5")  # type: ignore[arg-type]


async def view() -> TaskResult[[int], str]:
    assert_type((await on_the_loop.aenqueue(5)).return_value, list[int])
    assert_type((await remind.aget_result("1")).return_value, str)
    assert_type(await remind.adelay(5), JobHandle[str])
    assert_type(await (await on_the_loop.adelay(5)).aget(), list[int])
    return await remind.aenqueue(5)
"""


@pytest.fixture
def shop(tmp_path):
    """A folder with the examples of the page."""
    write_project(tmp_path, {"uses.py": USES, **EXAMPLES})
    return tmp_path


def run(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )


def with_backport(code):
    """The same for Django before 6.0, whose tasks are a package: in a folder of its own."""
    code = code.replace("from django.tasks", "from django_tasks").replace("from shop", "from earlier")
    return code.replace('"TaskContext[..., str]"', "TaskContext")


def test_mypy_finds_nothing_wrong_on_the_page(shop):
    pytest.importorskip("mypy_django_plugin", reason="django-stubs is not installed: types are NOT checked")
    pytest.importorskip("django_tasks")
    settings = ["--strict", "--config-file=", f"--cache-dir={shop / 'cache'}", "--follow-imports=silent"]
    (shop / "earlier").mkdir()
    (shop / "earlier/__init__.py").touch()
    for name, code in EXAMPLES.items():
        (shop / name.replace("shop/", "earlier/")).write_text(with_backport(code))
    files = ["uses.py", *sorted(EXAMPLES), *(name.replace("shop/", "earlier/") for name in sorted(EXAMPLES))]

    done = run(shop, "mypy", *settings, *files)

    assert (done.stdout + done.stderr, done.returncode) == (
        f"Success: no issues found in {len(files)} source files\n",
        0,
    )


def test_pyright_finds_the_same(shop):
    pytest.importorskip("basedpyright", reason="basedpyright is not installed: its view of the types is NOT checked")
    pytest.importorskip("mypy_django_plugin", reason="django-stubs is not installed: types are NOT checked")
    settings = {"extraPaths": [str(ROOT)], "enableTypeIgnoreComments": False, "typeCheckingMode": "standard"}
    (shop / "pyrightconfig.json").write_text(json.dumps(settings))

    done = run(shop, "basedpyright", "--pythonpath", sys.executable, "--outputjson", "uses.py", *sorted(EXAMPLES))

    found = [error for error in json.loads(done.stdout)["generalDiagnostics"] if error["severity"] == "error"]
    expected = {number for number, line in enumerate(USES.splitlines()) if "# type: ignore" in line}
    assert {error["range"]["start"]["line"] for error in found if error["file"].endswith("uses.py")} == expected, found
    assert all(error["file"].endswith("uses.py") for error in found), found

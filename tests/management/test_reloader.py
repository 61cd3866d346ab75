"""--reload: which files are watched, and what becomes of a worker whose code changes."""

import os
import signal
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest

from django_rtq.management import reloader
from tests.support.forked_commands import ROOT
from tests.support.waiting import PATIENCE, wait_until

SETTINGS = """
SECRET_KEY = "x"
INSTALLED_APPS = ["django_rtq", "shop"]
RTQ = {{"REDIS": {url!r}}}
USE_TZ = True
"""
TASKS = """
from pathlib import Path

from django_rtq import task


@task
def note(name):
    Path(name).write_text("%s")
"""


def test_the_code_of_the_project_is_watched_and_installed_packages_are_not(tmp_path, monkeypatch):
    for name in ("shop", "shop.orders", "shop.orders.tasks", "lone", "venv_package"):
        module = ModuleType(name)
        folder = tmp_path / ("site-packages" if name == "venv_package" else "src")
        end = "" if name.startswith("lone") or name.endswith("tasks") else "/__init__"
        module.__file__ = str(folder / (name.replace(".", "/") + f"{end}.py"))
        monkeypatch.setitem(sys.modules, name, module)

    roots = reloader.code_roots()

    assert tmp_path / "src" in roots
    assert tmp_path / "site-packages" not in roots
    assert not any("site-packages" in root.parts or root.is_relative_to(sys.prefix) for root in roots)


def test_changed_new_and_deleted_files_are_found_by_their_times(tmp_path):
    (tmp_path / "a.py").touch()
    (tmp_path / "b.py").touch()
    for folder in (".git", "node_modules", "env"):
        (tmp_path / folder).mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()

    def later(seconds):
        os.utime(tmp_path / "a.py", ns=(1, 1))
        (tmp_path / "b.py").unlink()
        (tmp_path / "sub").mkdir(exist_ok=True)
        for name in ("sub/c.py", ".git/d.py", "node_modules/e.py", "env/f.py", "g.html"):
            (tmp_path / name).touch()

    changes = reloader.poll([tmp_path], sleep=later)

    assert next(changes) == {str(tmp_path / name) for name in ("a.py", "b.py", "sub/c.py")}


def test_watchfiles_is_used_where_it_is_installed(monkeypatch, tmp_path):
    asked = []

    def watch(*roots, **options):
        asked.append((roots, options["yield_on_timeout"]))
        yield {(1, "shop/tasks.py")}
        yield set()

    fake = SimpleNamespace(watch=watch, PythonFilter=lambda: None)
    monkeypatch.setattr(reloader, "find_spec", lambda name: fake)
    monkeypatch.setitem(sys.modules, "watchfiles", fake)

    assert list(reloader.watch([tmp_path])) == [{"shop/tasks.py"}, set()]
    assert asked == [((tmp_path,), True)]


@pytest.fixture
def project(tmp_path, redis, redis_server):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/__init__.py").touch()
    (tmp_path / "shop/tasks.py").write_text(TASKS % "first")
    (tmp_path / "conf.py").write_text(SETTINGS.format(url=redis_server.url))
    (tmp_path / "manage.py").write_text("from django.core.management import execute_from_command_line as run\nrun()\n")
    return tmp_path


@pytest.fixture
def manage(project):
    """Starts manage.py in the project. Ends what is still running."""
    started = []
    environment = {**os.environ, "PYTHONPATH": f"{project}:{ROOT}", "DJANGO_SETTINGS_MODULE": "conf"}

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "manage.py", *arguments],
            cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def run_job(manage, name):
    call = f"from shop.tasks import note; note.delay({str(name)!r})"
    assert manage("shell", "-v", "0", "-c", call).wait(PATIENCE) == 0
    wait_until(name.exists)
    wait_until(name.read_text)
    return name.read_text()


def test_a_syntax_error_ends_the_worker_and_the_next_change_brings_it_back(manage, project):
    worker = manage("rtq_worker", "--reload", "--drain-seconds", "5")
    assert run_job(manage, project / "one") == "first"

    (project / "shop/tasks.py").write_text("def (\n")
    for line in worker.stdout:
        if "waiting for a change of code" in line:
            break
    (project / "shop/tasks.py").write_text(TASKS % "second")
    for line in worker.stdout:
        if "starting: queues" in line:
            break

    assert run_job(manage, project / "two") == "second"
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE) == 0


def test_a_worker_that_ends_by_itself_ends_the_reloader_with_it(manage):
    worker = manage("rtq_worker", "--reload", "--burst")

    assert worker.wait(PATIENCE) == 0

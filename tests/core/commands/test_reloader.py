"""--reload: what becomes of a worker whose code changes."""

import os
import signal
import subprocess
import sys

import pytest

from tests.support.commands import run
from tests.support.forked_commands import ROOT
from tests.support.waiting import PATIENCE, start_thread, wait_until

pytestmark = pytest.mark.long

SETTINGS = """
SECRET_KEY = "x"
INSTALLED_APPS = ["django_rtq", "shop"]
RTQ = {{"REDIS": {url!r}}}
USE_TZ = True
"""
TASKS = """
import time
from pathlib import Path

from django_rtq import task


@task
def note(name):
    Path(name).write_text("%s")


@task
def note_at_gate(name, gate):
    Path(f"{name}.began").touch()
    while not Path(gate).exists():
        time.sleep(0.01)
    note(name)
"""


def test_without_watchfiles_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "watchfiles", None)  # importing it fails

    ran = run("rtq_worker", "--reload")

    assert (ran.code, ran.error) == (
        1,
        "--reload needs watchfiles, which finds changes of code: pip install watchfiles",
    )


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
        try:
            process.communicate(timeout=PATIENCE)
        finally:
            process.kill()


def enqueue(manage, call):
    assert manage("shell", "-v", "0", "-c", f"from shop import tasks; tasks.{call}").wait(PATIENCE) == 0


def wait_for_line(process, text):
    def read():
        for line in process.stdout:
            if text in line:
                break

    reader = start_thread(read)
    reader.join(PATIENCE)
    assert not reader.is_alive(), f"it has not said: {text}"


def run_job(manage, name):
    enqueue(manage, f"note.delay({str(name)!r})")
    wait_until(name.exists)
    wait_until(name.read_text)
    return name.read_text()


def test_a_syntax_error_ends_the_worker_and_the_next_change_brings_it_back(manage, project):
    worker = manage("rtq_worker", "--reload", "--drain-seconds", "5")
    assert run_job(manage, project / "one") == "first"

    (project / "shop/tasks.py").write_text("def (\n")
    wait_for_line(worker, "SyntaxError")
    (project / "shop/tasks.py").write_text(TASKS % "second")
    wait_for_line(worker, "starting: queues")

    assert run_job(manage, project / "two") == "second"
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE) == 0


def test_a_running_job_finishes_before_the_restart(manage, project):
    worker = manage("rtq_worker", "--reload")
    name, gate = project / "one", project / "gate"
    enqueue(manage, f"note_at_gate.delay({str(name)!r}, {str(gate)!r})")
    wait_until((project / "one.began").exists)

    (project / "shop/tasks.py").write_text(TASKS % "second")
    wait_for_line(worker, "changed: restarting")
    gate.touch()

    wait_until(name.exists)
    assert run_job(manage, project / "two") == "second"
    assert name.read_text() == "first"


def test_a_worker_that_ends_by_itself_ends_the_reloader_with_it(manage):
    worker = manage("rtq_worker", "--reload", "--burst")

    assert worker.wait(PATIENCE) == 0

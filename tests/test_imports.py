"""What processes import: nothing that they do not use. Modules are counted, because times differ between machines."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

SETTINGS = """
import sys
import django
from django.conf import settings

settings.configure(
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django_rtq"],
    DATABASES={{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}}},
    RTQ={{"REDIS": {url!r}}},
)
django.setup()
"""
ENQUEUED = """
from django_rtq import task

@task(name="probe")
def probe():
    print(*sys.modules, flush=True)

probe.delay()
"""
WORKER = (
    ENQUEUED
    + """
@task(exactly_once=True)  # with it comes a schedule of this package, which deletes old rows
def once():
    pass

from django.core.management import execute_from_command_line

execute_from_command_line(["manage.py", "rtq_worker", "--burst", "--verbosity=0"])  # with the system checks
"""
)
COLLECTIONS = """
import gc, os

supervisor, collections = os.getpid(), []

@task(name="collections")
def tell():
    print(len(collections), gc.isenabled(), gc.get_freeze_count() > 10_000, flush=True)

tell.delay()
import django.core.management, django_rtq.core.commands.rtq_worker, django_rtq.databases.exactly_once
gc.collect()
gc.callbacks.append(lambda *_: os.getpid() == supervisor and collections.append(1))
"""
COMMAND = """
import os
from django.core.management import execute_from_command_line

out = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
execute_from_command_line(["manage.py", "rtq", "--json"])
sys.stdout.flush()
os.dup2(out, 1)
"""


def printed(program, url, before="", apps=()):
    """By a new process."""
    settings = SETTINGS.format(url=url).replace("INSTALLED_APPS=[", f"INSTALLED_APPS=[*{apps!r}, ")
    program = f"{before}\n{settings}{program}"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60)
    return done.stdout


def imported(program, url):
    """The modules of a new process."""
    return set(printed(program, url).split())


def ours(modules):
    return {name for name in modules if name.partition(".")[0] == "django_rtq"}


def of_packages(modules, *packages):
    """Those of the modules that are these packages, or in them."""
    return sorted(name for name in modules if f"{name}.".startswith(tuple(f"{package}." for package in packages)))


def lines_of(modules):
    """How many lines of the package they have."""
    found = filter(None, (find_spec(name).origin for name in ours(modules)))
    return sum(len(Path(path).read_text().splitlines()) for path in found)


PEOPLE = (
    "django_rtq.console.reading",
    "django_rtq.console.incidents",
    "django_rtq.console.admin",
    "django_rtq.console.search",
    "django_rtq.console.redaction",
)
EXTRAS = (
    *("django_rtq.monitoring", "django_rtq.mail", "django_rtq.compat", "django_rtq.backend", "django_rtq.testing"),
    *("django_rtq.templatetags", "django_rtq.pytest_plugin"),
)
RUNNING = (
    *("django_rtq.core.worker", "django_rtq.core.scheduler"),
    *("django_rtq.management", "django_rtq.core.commands"),
)
OTHERS = ("prometheus_client", "sentry_sdk", "celery", "smtplib", "django.contrib.admin")


def test_a_web_process_imports_what_declares_tasks():
    modules = imported("print(*sys.modules)", "redis://localhost:1/0")

    assert of_packages(modules, *PEOPLE, *EXTRAS, *OTHERS, *RUNNING) == []
    assert of_packages(modules, "redis", "hiredis", "opentelemetry", "cronsim") == []
    assert len(ours(modules)) <= 38


def test_the_pages_of_the_admin_are_imported_when_one_is_asked_for():
    apps = ("django.contrib.admin", "django.contrib.messages")
    read = "\nfrom django.contrib import admin; from django_rtq.models import Queue\n"
    before, after = printed(
        f"print(*sys.modules){read}admin.site.get_model_admin(Queue).opts\nprint(*sys.modules)",
        "redis://localhost:1/0",
        apps=apps,
    ).splitlines()

    assert of_packages(before.split(), *PEOPLE) == []
    assert "django_rtq.console.admin.pages.queues" in after.split()
    assert "django_rtq.console.admin.pages.workers" not in after.split()


@pytest.mark.parametrize(
    "does",
    [
        "from django_rtq import Workflow, WorkflowState, get_workflow, workflow",
        "from django.core.checks import run_checks; assert not run_checks()",
    ],
)
def test_what_needs_no_server_imports_no_client_of_it(does):
    modules = imported(f"{does}\nprint(*sys.modules)", "redis://localhost:1/0")

    assert of_packages(modules, "redis", "hiredis", "django_rtq.core.worker", *PEOPLE) == []


@pytest.mark.parametrize("serves", ["wsgi", "asgi"])
def test_a_process_that_serves_requests_imports_the_broker_before_the_first_one(redis, redis_server, serves):
    program = """
from django_rtq import task

@task(name="probe")
def probe():
    pass

before = set(sys.modules)
probe.delay()
print(*set(sys.modules) - before, "end")
"""
    done = printed(program, redis_server.url, before=f"import django.core.{serves}")

    assert ours(done.split()) == set()
    assert of_packages(done.split(), "redis") == []


def test_a_web_process_that_enqueues_imports_the_broker(redis, redis_server):
    modules = imported(ENQUEUED + "print(*sys.modules)", redis_server.url)

    assert of_packages(modules, *PEOPLE, *EXTRAS, *OTHERS, *RUNNING) == []
    assert lines_of(modules) <= 7_500


def test_a_handle_imports_what_is_told_of_one_job(redis, redis_server):
    program = ENQUEUED.replace("probe.delay()", "handle = probe.delay()")
    modules = imported(f"{program}handle.state; handle.cancel()\nprint(*sys.modules)", redis_server.url)

    assert of_packages(modules, *PEOPLE, *EXTRAS, *OTHERS, "django_rtq.core.worker") == []
    assert len(ours(modules)) <= 60


def test_a_worker_imports_what_runs_jobs(redis, redis_server):
    modules = imported(WORKER, redis_server.url)

    assert of_packages(modules, *PEOPLE, *EXTRAS, *OTHERS) == []
    assert lines_of(modules) <= 17_300


def test_a_command_that_reads_imports_no_worker(redis, redis_server):
    modules = imported(COMMAND + "print(*sys.modules)", redis_server.url)

    assert of_packages(modules, "django_rtq.console.admin", *EXTRAS, "django.contrib.admin") == []
    assert of_packages(modules, "django_rtq.core.worker") == []


def test_a_worker_collects_no_garbage_before_it_forks(redis, redis_server):
    told = printed(WORKER.replace(ENQUEUED, ENQUEUED + COLLECTIONS), redis_server.url)

    assert told.splitlines()[-1] == "0 True True"  # collections; enabled in the process; its heap is frozen

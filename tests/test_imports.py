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
NO_SERVER = ("redis", "hiredis", "django_rtq.core.worker", *PEOPLE)
OTHERS = ("prometheus_client", "sentry_sdk", "celery", "smtplib", "django.contrib.admin")


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
    assert "django_rtq.console.admin.pages.workflows" not in after.split()


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


HANDLE = ENQUEUED.replace("probe.delay()", "handle = probe.delay()") + "handle.state; handle.cancel()\n"
MOST_MODULES = {"": 38, HANDLE: 60}
MOST_LINES = {ENQUEUED: 7_500, WORKER: 16_650}


@pytest.mark.parametrize(
    ("program", "unused"),
    [
        ("from django_rtq import Workflow, WorkflowState, get_workflow, workflow\n", NO_SERVER),
        ("from django.core.checks import run_checks; assert not run_checks()\n", NO_SERVER),
        ("", (*PEOPLE, *EXTRAS, *OTHERS, *RUNNING, "redis", "hiredis", "opentelemetry", "cronsim")),
        (ENQUEUED, (*PEOPLE, *EXTRAS, *OTHERS, *RUNNING)),
        (HANDLE, (*PEOPLE, *EXTRAS, *OTHERS, "django_rtq.core.worker")),
        (WORKER, (*PEOPLE, *EXTRAS, *OTHERS)),
        (COMMAND, ("django_rtq.console.admin", *EXTRAS, "django.contrib.admin", "django_rtq.core.worker")),
    ],
    ids=["workflow", "checks", "declares", "enqueues", "handle", "worker", "command"],
)
def test_a_process_imports_nothing_that_it_does_not_use(redis, redis_server, program, unused):
    modules = set(printed(f"{program}print(*sys.modules)", redis_server.url).split())

    assert of_packages(modules, *unused) == []
    assert len(ours(modules)) <= MOST_MODULES.get(program, 1000)
    assert lines_of(modules) <= MOST_LINES.get(program, 100_000)


def test_a_worker_collects_no_garbage_before_it_forks(redis, redis_server):
    told = printed(WORKER.replace(ENQUEUED, ENQUEUED + COLLECTIONS), redis_server.url)

    assert told.splitlines()[-1] == "0 True True"  # collections; enabled in the process; its heap is frozen

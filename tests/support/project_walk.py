"""Uses all of a project whose settings DJANGO_SETTINGS_MODULE names, in one process: system checks, migrations, its
tests, each command, each page of the admin, beside a worker that runs jobs. Prints what went wrong as JSON, in the last
line. Run by tests/test_project_shapes.py.
"""

import io
import json
import os
import signal
import sys
import traceback
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from html import unescape
from pathlib import Path
from re import findall
from urllib.parse import urldefrag, urljoin, urlsplit

import django
from asgiref.sync import async_to_sync
from django.apps import apps
from django.conf import settings
from django.core.management import call_command, get_commands
from django.db import connections
from django.urls import resolve

SECONDS = 60.0  # for a job
STATES = ("queued", "scheduled", "running", "dead", "finished")
ARE_RUN = {  # each command of ours, and how it is called here; what runs until it is stopped is not in it
    "rtq": ["", "--json", "--check", "--check --json"],
    "rtq_clients": ["list default", "list default --json"],
    "rtq_jobs": ["show ID", *(f"list --state {state}" for state in STATES)],
    "rtq_metrics": [""],
    "rtq_queues": ["list", "list --json"],
    "rtq_schedule": ["list", "list --json"],
    "rtq_tasks": ["list"],
    "rtq_workers": ["list", "list --json"],
    "rtq_workflows": ["list", "show WORKFLOW"],
}
NOT_RUN = {"rtq_worker", "rtq_scheduler"}
problems = []


@contextmanager
def step(name):
    """Go on after an error, which is reported."""
    try:
        yield
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is told
        traceback.print_exc()
        problems.append(f"{name}: {type(error).__name__}: {str(error)[:500]}")


def prepare(databases):
    """All that comes before a deployment."""
    for options in ({}, {"deploy": True, "fail_level": "CRITICAL", "databases": databases}):
        with step(f"check {options}"):
            call_command("check", **options)
    if apps.is_installed("people"):
        call_command("makemigrations", "people", verbosity=0)
    for alias in databases:
        with step(f"migrate {alias}"):
            call_command("migrate", database=alias, verbosity=0)
    with step("test"):
        call_command("test", "shop", verbosity=0)


@contextmanager
def worker():
    """A worker in a process of its own, as `manage.py rtq_worker` is one."""
    connections.close_all()
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            call_command("rtq_worker", concurrency=2)
            code = 0
        except SystemExit as end:
            code = end.code or 0
        except BaseException:  # noqa: BLE001 - it is told
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGTERM)
        with step("stop of the worker"):
            assert os.waitpid(pid, 0)[1] == 0


def run_jobs():
    """A job of each kind and state. Returns the ids of one, and of a workflow."""
    from shop import tasks

    from django_rtq import JobFailed, workflow

    with workflow("shape") as flow:
        flow.add(tasks.double, flow.add(tasks.double, 2).result)
    done = [tasks.double.delay(1), tasks.adouble.using(client="acme").delay(1), tasks.ask_database.delay()]
    for job in done:
        with step(f"job {job.id}"):
            assert job.get(SECONDS) == 2
    with step("a job that fails"), suppress(JobFailed):
        tasks.fail.delay("password").get(SECONDS)
    with step("workflow"):
        flow.handle.get(SECONDS)
    tasks.double.using(run_after=3600).delay(1)
    tasks.hang.delay()
    return done[0].id, flow.handle.id


def call_all(job_id, workflow_id):
    """Each command of the package."""
    with step("commands"):
        assert {name for name, app in get_commands().items() if app == "django_rtq"} == {*ARE_RUN, *NOT_RUN}
    for name, calls in ARE_RUN.items():
        for arguments in calls:
            given = arguments.replace("ID", job_id).replace("WORKFLOW", workflow_id).split()
            may_exit = suppress(SystemExit) if "--check" in given else nullcontext()  # it finds a dead letter
            with step(f"{name} {arguments}"), redirect_stdout(io.StringIO()), may_exit:
                call_command(name, *given)


def visitor(user):
    """Gets a page as this user: the status, and the text."""
    from django.test import AsyncClient, Client

    client = AsyncClient() if settings.USES_ASGI else Client()
    if user is not None:
        client.force_login(user)

    def get(url):
        answer = async_to_sync(client.get)(url) if settings.USES_ASGI else client.get(url)
        return answer.status_code, answer.content.decode()

    return get


def make_superuser():
    """One for the admin, and a schedule that only its page shows."""
    from django.contrib.auth import get_user_model

    from django_rtq.models import Schedule

    kind = get_user_model()
    Schedule.objects.create(name="in the admin", task="shop.tasks.double", args=[1], every=3600)
    return kind.objects.create_superuser(**{kind.USERNAME_FIELD: "boss@example.com", "password": "secret"})


def walk(get):
    """Follow the links to our pages from the index of the admin: each kind of page once, and once with parameters."""
    waiting, visited = ["/admin/"], set()
    while waiting:
        url = waiting.pop(0)
        where = urlsplit(url)
        kind = resolve(where.path).url_name, bool(where.query)
        if kind in visited:
            continue
        visited.add(kind)
        with step(f"page {url}"):
            status, text = get(url)
            assert status in {200, 302}, f"status {status}"
            links = (urldefrag(urljoin(url, unescape(link)))[0] for link in findall(r'<a [^>]*href="([^"]*)"', text))
            waiting += [link for link in links if link.startswith("/admin/django_rtq/")]
    return {name for name, _ in visited}


def check_pages():
    """Each page of the admin, if there is one."""
    seen = walk(visitor(make_superuser()))
    pages = ("client", "job", "queue", "registeredtask", "schedule", "worker", "workflow")
    expected = {f"django_rtq_{name}_{kind}" for name in pages for kind in ("changelist", "change")}
    if missing := expected - {"django_rtq_worker_change"} - seen:
        problems.append(f"pages that no link led to: {sorted(missing)}")


def main():
    django.setup()
    databases = [alias for alias in connections if "dummy" not in connections[alias].settings_dict["ENGINE"]]
    prepare(databases)
    with worker():
        call_all(*run_jobs())
        if getattr(settings, "ROOT_URLCONF", None):
            for url in ("/health/", "/metrics/"):
                with step(url):
                    status, text = visitor(None)(url)
                    assert status in {200, 503}, f"status {status}: {text[:500]}"
        if apps.is_installed("django.contrib.admin"):
            with step("pages"):
                check_pages()
        connections.close_all()
        Path("over").touch()  # for the job that hangs
    sys.stdout.write(f"{json.dumps(problems)}\n")


if __name__ == "__main__":
    main()

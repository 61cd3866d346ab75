"""Users with permissions, and jobs in every state."""

import json
import re
from types import SimpleNamespace

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client

from django_rtq.console import permissions
from django_rtq.console.admin.pages import page_admin
from django_rtq.console.admin.pages.page_admin import PageAdmin
from tests.protocol.model.step_calls import suspend
from tests.support.jobs import (
    QUEUE,
    claimed_job,
    dead_job,
    finished_job,
    queued_job,
    retrying_job,
    scheduled_job,
)
from tests.support.workflows import FLOW, blocked_flow

MAIL = "testproject.shop.tasks.send_order_mail"
ALL = [value for name, value in vars(permissions).items() if name.isupper()]


@pytest.fixture
def person(db):
    """Creates a staff user with these permissions. Returns a logged-in client."""

    def sign_in(*permissions, **options):
        user = User.objects.create(username=f"user-{User.objects.count()}", is_staff=True)
        names = [permission.rpartition(".")[2] for permission in permissions]
        user.user_permissions.set(Permission.objects.filter(codename__in=names, content_type__app_label="django_rtq"))
        client = Client(**options)
        client.force_login(user)
        return client

    return sign_in


@pytest.fixture
def admin_user(db):
    """A superuser without a password: to hash one takes most of a second."""
    return User.objects.create(username="admin", is_staff=True, is_superuser=True)


@pytest.fixture
def viewer(person):
    """A user who may only view the pages."""
    return person(permissions.VIEW)


@pytest.fixture
def operator(person):
    """A user with all our permissions."""
    return person(*ALL)


def body(*args, task=MAIL, **kwargs):
    """The JSON body of a job."""
    return json.dumps({"task": task, "args": args, "kwargs": kwargs}, separators=(",", ":"))


@pytest.fixture
def jobs(broker, request):
    """A job in each state, in one queue. For pages of workflows, a blocked one in a queue of its own; for the page that
    sends an event, the running job waits for it."""
    made = SimpleNamespace(
        running=claimed_job(broker, "running", worker="w0", body=body("bakery", 6), client="bakery"),
        dead=dead_job(broker, "dead", body=body("bakery", 1), client="bakery"),
        retrying=retrying_job(broker, "retrying", body=body("bakery", 2), client="bakery"),
        finished=finished_job(broker, "finished", body=body("bakery", 3), client="bakery"),
        scheduled=scheduled_job(broker, "scheduled", body=body("florist", 4), client="florist"),
        queued=queued_job(broker, "queued", body=body("florist", 5), client="florist"),
    )
    if "workflow_" in request.node.name:
        blocked_flow(broker)
    if "job_send" in request.node.name:
        suspend(broker, made.running, worker="w0")
    return made


def every_page():
    """All routes of all admins: (name of the URL, route)."""
    for model, pages in admin.site._registry.items():
        for page in pages.routes() if isinstance(pages, PageAdmin) else ():
            yield f"{model._meta.model_name}_{page.name}", page


def url_of(name, jobs=None):
    """A URL at which that page has something to show."""
    dead = jobs.dead.id if jobs else "x"
    args = {"job": [dead], "queue": [QUEUE], "worker": ["w1"], "registeredtask": [MAIL], "workflow": [FLOW]}
    args |= {"queue_forget": ["mail"]}  # which has no jobs
    args |= {"job_send": [jobs.running.id if jobs else "x"]}
    model, _, action = name.partition("_")
    takes_none = action in ("changelist", "search", "outbox", "memory", "wake_all") or "bulk" in action
    wants = [] if takes_none else args.get(name, args.get(model, []))
    query = {"queue": QUEUE} if model == "job" and action != "changelist" else {}
    if "bulk" in action:
        query = {"q": "client:florist" if action == "bulk_erase" else f"queue:{QUEUE}"}
    if action == "bulk_terminate":
        query = {"q": f"queue:{QUEUE} state:running", "id": jobs.running.id if jobs else "x"}
    if model == "client" and action != "changelist":
        query = {"queue": QUEUE, "client": "florist"}
    if name == "job_search":
        query = {"q": "task:send_order_mail"}
    return page_admin.page_url("admin", name, *wants, query=query)


def links(html):
    """The URLs of the links and forms of a page."""
    return re.findall(r'(?:href|action|formaction|src)="([^"]*)"', html)


def logged():
    """The texts of the log, the newest first."""
    return list(LogEntry.objects.order_by("-pk").values_list("change_message", flat=True))


def text(response):
    """The HTML of a response."""
    return response.content.decode()

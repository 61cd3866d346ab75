"""Jobs that run are stopped, and workers told what to do, by hand."""

import json

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import get_messages

from django_rtq.console import permissions
from django_rtq.core.broker.control import Order, WorkerCommand
from django_rtq.core.broker.worker_info import worker_info_commands
from tests.console.admin.conftest import body, logged, text
from tests.support.jobs import QUEUE, asked_job, claimed_job, settle

PAGE, WORKERS = "/admin/django_rtq/job/", "/admin/django_rtq/worker/"


@pytest.fixture
def running(broker):
    """A job that is claimed by a worker."""
    return claimed_job(broker, "running", body=body("bakery", 1))


@pytest.fixture
def worker(broker):
    """A worker whose supervisor is known."""
    broker.sign_on([QUEUE], "w1")
    broker.enqueue(QUEUE, [])
    note(broker, supervisor_name="s1", host="here", pid=7, queues=QUEUE)
    return "w1"


def note(broker, **found):
    """The worker info that the supervisor stores."""
    broker.redis.execute(list(worker_info_commands(broker.keys, {"w1": found})))


def said(response):
    """The message for the user."""
    return " ".join(str(message) for message in get_messages(response.wsgi_request))


def order(redis, broker):
    """The command that the worker's supervisor received."""
    found = redis.get(broker.keys.control("s1"))
    return found and Order.read(found).command


# -- jobs


def test_a_job_that_runs_is_asked_to_stop_and_the_person_told_so(running, operator, readers):
    answer = operator.post(f"{PAGE}{running.id}/cancel/", {"queue": QUEUE})
    assert "was asked to stop. It is cancelled when it stops" in said(answer)
    assert "Asked to stop." in logged()[0]
    found = readers.find(running.id)
    assert (found.state, found.is_stopping) == ("running", True)
    assert "When it stops, it is cancelled" in text(operator.get(f"{PAGE}{running.id}/cancel/?queue={QUEUE}"))


def test_a_job_that_ended_meanwhile_is_not_terminated(broker, running, operator):
    settle(broker, "ack", running)
    answer = operator.post(f"{PAGE}{running.id}/terminate/", {"queue": QUEUE})
    assert "is now succeeded" in said(answer)
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("where", ["", "{id}/"])
def test_both_ways_to_stop_a_job_are_shown_to_those_who_may(where, running, person):
    url = PAGE + where.format(id=running.id)
    allowed, other = (
        text(person(permissions.VIEW, permissions.CANCEL).get(url)),
        text(person(permissions.VIEW).get(url)),
    )
    for words in ("Cancel job …", "Terminate …"):
        assert words in allowed
        assert words not in other
    assert allowed.index("Cancel job …") < allowed.index("Terminate …")


@pytest.mark.parametrize("where", ["", "{id}/"])
def test_a_job_that_was_asked_is_shown_as_such_and_not_asked_again(where, broker, operator):
    job = asked_job(broker, "asked")
    html = text(operator.get(PAGE + where.format(id=job.id)))
    assert "asked to stop" in html
    assert "Cancel job …" not in html
    assert "Terminate …" in html


def test_the_list_of_what_runs_says_how_far_it_is(broker, running, operator):
    line = json.dumps({"done": 3, "total": 12, "text": "letters"})
    broker.report_progress("w1", [(QUEUE, running.id, line)])
    html = text(operator.get(PAGE))
    assert "<progress" in html
    assert "3/12 letters" in html


# -- workers


@pytest.mark.parametrize(
    ("action", "becomes", "words"),
    [
        ("quiet", WorkerCommand.QUIET, "was asked to go quiet"),
        ("wake", WorkerCommand.WORK, "was asked to start new jobs again"),
        ("stop", WorkerCommand.STOP, "was asked to stop"),
    ],
)
def test_a_worker_is_told_what_to_do(action, becomes, words, worker, redis, broker, operator):
    answer = operator.post(f"{WORKERS}{worker}/{action}/")
    assert words in said(answer)
    assert order(redis, broker) is becomes
    assert LogEntry.objects.get().object_id == worker


@pytest.mark.parametrize("action", ["quiet", "wake", "stop"])
def test_a_worker_that_is_gone_is_told_nothing(action, broker, operator):
    answer = operator.post(f"{WORKERS}nobody/{action}/")
    assert "Nothing was done: worker nobody is unknown." in said(answer)
    assert not LogEntry.objects.exists()

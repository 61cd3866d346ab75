"""Dead letters are requeued in another queue: one, or all that match."""

import re

import pytest

from django_rtq.console.admin.pages import bulk as bulk_pages
from django_rtq.console.internal_tasks import run_bulk_action
from tests.console.admin.conftest import text
from tests.console.admin.test_dead_letters import hidden_fields, said
from tests.support.jobs import QUEUE, dead_job, queued_job

TARGET = "reports"
RTQ_OPTIONS = {"QUEUES": {TARGET: {}}}
ALL = "/admin/django_rtq/job/bulk/requeue/"
REFUSED = "Nothing was done: choose a queue from the list."


@pytest.fixture(autouse=True)
def used(broker):
    """A queue that no setting names."""
    broker.register_queues([QUEUE, "used"])


def options_in(html):
    """The queues that a form offers, and their labels."""
    return dict(re.findall(r'<option value="([^"]*)">([^<]*)', html))


@pytest.mark.parametrize("chosen", ["used", "no{good}"])
def test_only_queues_of_the_settings_are_taken(broker, operator, readers, chosen):
    job = dead_job(broker)
    for fields in (
        {"q": f"queue:{QUEUE}", "id": job.id},
        {"q": f"queue:{QUEUE}", "until_ms": 10**15},
        {"q": "client:", "until_ms": 10**15},
    ):
        html = text(operator.post(ALL, {"target": chosen, **fields}))
        assert REFUSED in html
        assert TARGET in options_in(html)

    assert readers.find(job.id).state == "dead"


def test_a_job_does_what_a_request_has_no_time_for(broker, operator, readers, monkeypatch):
    monkeypatch.setattr(bulk_pages, "REQUEST_SECONDS", -1.0)
    monkeypatch.setattr(bulk_pages, "STEP", 2)
    jobs = [dead_job(broker, client="a") for _ in range(5)]
    html = text(operator.get(ALL, {"q": f"queue:{QUEUE} client:a"}))

    page = operator.post(ALL, {**hidden_fields(html), "target": TARGET})

    html = text(operator.get(page["Location"]))
    assert f"2 dead letters were requeued in queue {TARGET}. Jobs of these queues do the rest: " in html
    (rest,) = (job for job in readers.search([(QUEUE, "queued")]).page().jobs if "run_bulk_action" in job.task)
    run_bulk_action(*rest.args, **rest.kwargs)
    assert {readers.find(job.id).queue for job in jobs} == {TARGET}


def test_the_queue_stays_chosen_if_the_rest_has_to_be_done_again(broker, operator, monkeypatch, rtq):
    monkeypatch.setattr(bulk_pages, "REQUEST_SECONDS", -1.0)
    monkeypatch.setattr(bulk_pages, "STEP", 1)
    [dead_job(broker) for _ in range(2)], queued_job(broker)
    rtq.queues[QUEUE].limit(max_waiting=1)
    html = text(operator.get(ALL, {"q": f"queue:{QUEUE}"}))

    html = text(operator.post(ALL, {**hidden_fields(html), "target": TARGET}))

    assert "Repeat the action to continue." in html
    assert f'<option value="{TARGET}" selected>' in html


def test_a_paused_queue_is_told_before_and_after(broker, operator, readers, rtq):
    broker.register_queues([TARGET])
    rtq.queues[TARGET].pause()
    job = dead_job(broker)
    given = {"q": f"queue:{QUEUE} state:dead", "id": job.id}
    assert options_in(text(operator.get(ALL, given)))[TARGET] == "reports (paused, no worker serves it)"

    answer = operator.post(ALL, {**given, "target": TARGET})

    assert answer["Location"] == f"/admin/django_rtq/job/{job.id}/?queue={TARGET}"
    assert "Queue reports is paused: the jobs wait until it is resumed." in said(operator)
    assert readers.find(job.id).queue == TARGET

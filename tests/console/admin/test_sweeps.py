"""Actions on all jobs of a client that a request does not finish."""

from django_rtq.console.admin.pages import bulk as bulk_pages
from django_rtq.console.internal_tasks import run_bulk_action
from django_rtq.console.reading.jobs.job_filter import JobFilter
from django_rtq.core.jobs.job import JobState
from tests.console.admin.conftest import logged, text
from tests.console.admin.test_clients import LIST, confirm_form
from tests.console.admin.test_dead_letters import BULK, said
from tests.support.commands import dead_letter
from tests.support.jobs import QUEUE, queued_job, scheduled_job


def test_what_takes_longer_becomes_a_job_of_each_queue(broker, readers, operator, monkeypatch):
    monkeypatch.setattr(bulk_pages, "REQUEST_SECONDS", -1.0)
    queued_job(broker, client="florist", queue="zoo")
    for queue in (QUEUE, "high", "low"):
        for _ in range(3):
            queued_job(broker, client="bakery", queue=queue)
    fields, _ = confirm_form(operator, f"{BULK}cancel/?q=client:bakery")
    later = [queued_job(broker, client="bakery", queue=queue, priority=5) for queue in ("high", "low")]

    operator.post(f"{BULK}cancel/", fields)

    page = said(operator)
    assert "3 jobs were cancelled. Jobs of these queues do the rest: <a " in page
    assert '?queue=high">high</a>, <a ' in page
    assert logged()[0].startswith(
        "3 jobs were cancelled. Jobs of these queues do the rest: high, low. (Filter: client:bakery, "
    )
    assert "No worker serves queue high now" in page
    for queue in ("high", "low"):
        (job,) = readers.job_list.search([(queue, "queued")], filter=JobFilter(client="")).page().jobs
        assert job.priority == 100
        assert run_bulk_action(*job.args, **job.kwargs) == 3
    assert {readers.find(job.id).state for job in later} == {JobState.QUEUED}
    assert [readers.queues.get(queue).queued for queue in (QUEUE, "high", "low")] == [
        0,
        2,
        2,
    ]  # with the internal job
    assert readers.queues.get("zoo").queued == 1


def test_a_full_queue_takes_no_job_for_the_rest(broker, operator, monkeypatch, rtq):
    monkeypatch.setattr(bulk_pages, "REQUEST_SECONDS", -1.0)
    for queue in (QUEUE, "high", "low"):
        scheduled_job(broker, client="bakery", queue=queue)
        queued_job(broker, client="bakery", queue=queue)
    rtq.queues["low"].limit(max_waiting=1)
    fields, _ = confirm_form(operator, f"{BULK}cancel/?q=client:bakery")

    assert operator.post(f"{BULK}cancel/", fields).status_code == 302

    page = said(operator)
    assert "2 jobs were cancelled. Jobs of these queues do the rest: high." in page
    assert "The rest could not be enqueued. Queue low is full" in page
    assert "Repeat the action to continue." in page
    assert logged()[0].startswith("2 jobs were cancelled. Jobs of these queues do the rest: high. Queue low is full")


def test_dead_letters_of_many_queues_are_counted_together(broker, operator, round_trips):
    for number in range(6):
        dead_letter(broker, client="bakery", queue=f"q{number}")
    operator.get(LIST)
    del round_trips[:]

    html = text(operator.get(f"{BULK}requeue/?q=client:bakery"))

    assert "Requeue 6 dead letters?" in html
    assert len(round_trips) <= 6

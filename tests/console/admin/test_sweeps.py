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


def test_what_takes_longer_becomes_a_job_of_each_queue(broker, inspector, operator, monkeypatch):
    monkeypatch.setattr(bulk_pages, "REQUEST_SECONDS", -1.0)
    queued_job(broker, client="florist", queue="zoo")
    for queue in (QUEUE, "low"):
        for _ in range(150):
            queued_job(broker, client="bakery", queue=queue)
    fields, _ = confirm_form(operator, f"{BULK}cancel/?q=client:bakery")
    later = [queued_job(broker, client="bakery", queue=queue, priority=5) for queue in (QUEUE, "low")]

    operator.post(f"{BULK}cancel/", fields)

    page = said(operator)
    assert "100 jobs were cancelled. Jobs of these queues do the rest: <a " in page
    assert f'?queue={QUEUE}">{QUEUE}</a>, <a ' in page
    assert logged()[0].startswith(
        "100 jobs were cancelled. Jobs of these queues do the rest: default, low. (Filter: client:bakery, "
    )
    for queue, rest in ((QUEUE, 50), ("low", 150)):
        (job,) = inspector.job_list.page(queue, "queued", filter=JobFilter(client="")).jobs
        assert run_bulk_action(*job.args, **job.kwargs) == rest
    assert {inspector.find(job.id).state for job in later} == {JobState.QUEUED}
    assert [inspector.queues.get(queue).queued for queue in (QUEUE, "low")] == [2, 2]  # with the internal job
    assert inspector.queues.get("zoo").queued == 1


def test_a_full_queue_takes_no_job_for_the_rest(broker, inspector, operator, monkeypatch):
    monkeypatch.setattr(bulk_pages, "REQUEST_SECONDS", -1.0)
    for queue in (QUEUE, "low"):
        scheduled_job(broker, client="bakery", queue=queue)
        queued_job(broker, client="bakery", queue=queue)
    inspector.limits.set_queue("low", max_waiting=1)
    fields, _ = confirm_form(operator, f"{BULK}cancel/?q=client:bakery")

    assert operator.post(f"{BULK}cancel/", fields).status_code == 302

    page = said(operator)
    assert "1 job was cancelled. Jobs of these queues do the rest: default." in page
    assert "The rest could not be enqueued. Queue low is full" in page
    assert "Repeat the action to continue." in page
    assert logged()[0].startswith("1 job was cancelled. Jobs of these queues do the rest: default. Queue low is full")


def test_dead_letters_of_many_queues_are_counted_together(broker, operator, round_trips):
    for number in range(6):
        dead_letter(broker, client="bakery", queue=f"q{number}")
    operator.get(LIST)
    del round_trips[:]

    html = text(operator.get(f"{BULK}requeue/?q=client:bakery"))

    assert "Requeue 6 dead letters?" in html
    assert len(round_trips) <= 6

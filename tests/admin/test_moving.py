"""Moving jobs to another queue: one, selected ones, or all that match."""

import re
import time

import pytest

from django_rtq.admin.pages.bulk import pages as bulk_pages
from django_rtq.internal_tasks import run_bulk_action
from django_rtq.jobs.job import JobState
from tests.admin.conftest import logged, text
from tests.admin.test_dead_letters import hidden_fields, said
from tests.support.jobs import QUEUE, claimed_job, dead_job, entered_job, queued_job, unique_job

TARGET = "reports"
BULK = "/admin/django_rtq/job/bulk/move"


@pytest.fixture(autouse=True)
def target(broker):
    broker.register_queues([QUEUE, TARGET])


def options_in(html):
    """The queues that a form offers, and their labels."""
    return dict(re.findall(r'<option value="([^"]*)">([^<]*)', html))


def page_of(job):
    return f"/admin/django_rtq/job/{job.id}/"


def test_a_job_is_moved_from_its_page(broker, operator, inspector):
    job = queued_job(broker)
    assert f"{page_of(job)}move/?queue={QUEUE}" in text(operator.get(page_of(job)))
    html = text(operator.get(f"{page_of(job)}move/?queue={QUEUE}"))
    assert "It keeps its client, priority, time and failures." in html
    assert options_in(html)[TARGET] == "reports (no worker serves it)"
    assert QUEUE not in options_in(html)

    operator.post(f"{page_of(job)}move/", {**hidden_fields(html), "target": TARGET})

    assert inspector.find(job.id).queue == TARGET
    page = said(operator)
    assert f"Job {job.id} was moved to queue reports." in page
    assert "No worker serves queue reports now: the jobs wait." in page
    assert logged() == ["Moved to queue reports."]


def test_the_page_of_the_old_queue_still_finds_it(broker, operator, inspector):
    job = queued_job(broker)
    inspector.job_mover.move(job.id, TARGET)

    assert f'href="/admin/django_rtq/queue/{TARGET}/"' in text(operator.get(f"{page_of(job)}?queue={QUEUE}"))


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        ("", "Nothing was done: choose a queue from the list."),
        ("nowhere", "Nothing was done: choose a queue from the list."),
        (QUEUE, f"Nothing was done: queue {QUEUE} is where it is already."),
    ],
)
def test_a_queue_has_to_be_chosen(broker, operator, inspector, chosen, why):
    job = queued_job(broker)
    given = {"queue": QUEUE, "target": chosen}

    selected = {**given, "id": [job.id], "state": "queued", "confirmed": "yes"}
    everything = {**given, "state": "queued", "until_ms": 10**15}
    for url, fields, question in (
        (f"{page_of(job)}move/", given, "Move job"),
        (f"{BULK}/", selected, "Move 1 queued job to another queue?"),
        (f"{BULK}-all/", everything, "Move 1 queued job to another queue?"),
    ):
        html = text(operator.post(url, fields))
        assert question in html
        assert why in html

    assert inspector.find(job.id).queue == QUEUE


def test_a_running_job_is_not_offered_and_not_moved(broker, operator, inspector):
    job = claimed_job(broker)
    assert "/move/" not in text(operator.get(page_of(job)))

    operator.post(f"{page_of(job)}move/", {"queue": QUEUE, "target": TARGET})

    assert inspector.find(job.id).queue == QUEUE
    assert "is now running" in said(operator)


def test_why_a_job_stays_is_told(broker, operator):
    job, other = entered_job(broker, "a"), unique_job("b")
    broker.enqueue_unique(TARGET, [other])

    operator.post(f"{page_of(job)}move/", {"queue": QUEUE, "target": TARGET})

    assert f"is unique, and job {other.id} of the same key is alive in queue reports." in said(operator)


def test_selected_jobs_are_moved_after_the_question_where_to(broker, operator, inspector):
    jobs = [queued_job(broker) for _ in range(3)]
    runs = claimed_job(broker, queue="other")
    html = text(operator.post(f"{BULK}/", {"queue": QUEUE, "state": "queued", "id": [job.id for job in jobs[:2]]}))
    assert "Move 2 queued jobs to another queue?" in html

    fields = hidden_fields(html)
    operator.post(f"{BULK}/", {**fields, "id": [*fields["id"], runs.id], "target": TARGET})

    assert [inspector.find(job.id).queue for job in jobs] == [TARGET, TARGET, QUEUE]
    page = said(operator)
    assert "2 jobs were moved to queue reports." in page
    assert "1 job was not moved: it runs or is over, is in another queue already" in page
    assert logged()[0].startswith("2 jobs were moved to queue reports.")


def test_all_that_match_are_moved(broker, operator, inspector):
    reports = [queued_job(broker, body='{"task":"shop.report"}') for _ in range(2)]
    mail = queued_job(broker, body='{"task":"shop.mail"}')
    html = text(operator.get(f"{BULK}-all/", {"queue": QUEUE, "state": "queued", "task": "shop.report"}))
    assert "Move 2 queued jobs to another queue?" in html

    operator.post(f"{BULK}-all/", {**hidden_fields(html), "target": TARGET})

    assert [inspector.find(job.id).queue for job in (*reports, mail)] == [TARGET, TARGET, QUEUE]
    assert "2 jobs were moved to queue reports." in said(operator)
    assert "To queue: reports" in logged()[0]


def test_dead_letters_are_requeued_there(broker, operator, inspector):
    jobs = [dead_job(broker) for _ in range(2)]
    html = text(operator.get(f"{BULK}-all/", {"queue": QUEUE}))  # as the list of dead letters links to it
    assert "Move 2 dead jobs to another queue?" in html
    assert "They are queued there, with all their attempts." in html

    operator.post(f"{BULK}-all/", {**hidden_fields(html), "target": TARGET})

    found = [inspector.find(job.id) for job in jobs]
    assert [(job.queue, job.state) for job in found] == [(TARGET, JobState.QUEUED)] * 2


def test_a_job_moves_what_a_request_has_no_time_for(broker, operator, inspector, monkeypatch):
    monkeypatch.setattr(bulk_pages, "REQUEST_SECONDS", -1.0)
    monkeypatch.setattr(bulk_pages, "STEP", 2)
    jobs = [queued_job(broker, client="a") for _ in range(5)]
    html = text(operator.get(f"{BULK}-all/", {"queue": QUEUE, "state": "queued", "client": "a"}))

    page = operator.post(f"{BULK}-all/", {**hidden_fields(html), "target": TARGET})

    html = text(operator.get(page["Location"]))
    assert "2 of 5 moved." in html
    assert hidden_fields(html)["target"] == [TARGET]  # "Continue here"
    (rest,) = (job for job in inspector.job_list.page(QUEUE, "queued").jobs if "run_bulk_action" in job.task)
    run_bulk_action(*rest.args, **rest.kwargs)
    assert {inspector.find(job.id).queue for job in jobs} == {TARGET}


def test_a_paused_queue_is_told_before_and_after(redis, broker, operator, inspector):
    inspector.pause(TARGET)
    claimed_job(broker, queue="zebra")
    redis.zadd(broker.keys.workers, {"w1": int(time.time() * 1000)})
    redis.hset(broker.keys.worker("w1"), "queues", "zebra")
    job = queued_job(broker)
    labels = options_in(text(operator.get(f"{page_of(job)}move/")))
    assert (labels[TARGET], labels["zebra"]) == ("reports (paused, no worker serves it)", "zebra")

    operator.post(f"{page_of(job)}move/", {"queue": QUEUE, "target": TARGET})

    assert "Queue reports is paused: the jobs wait until it is resumed." in said(operator)


def test_what_is_kept_out_of_the_other_queue_is_told(broker, operator, inspector):
    for digest in "abc":
        broker.enqueue_unique(TARGET, [unique_job(digest=digest)])
        entered_job(broker, digest=digest)
    queued_job(broker)
    page = {"queue": QUEUE, "state": "queued"}
    for moved in (1, 0):
        html = text(operator.get(f"{BULK}-all/", page))
        assert f"Move {3 + moved} queued jobs to another queue?" in html

        operator.post(f"{BULK}-all/", {**hidden_fields(html), "target": TARGET})

        told = said(operator)
        assert ("1 job was moved to queue reports." in told) == (moved == 1)
        assert "3 jobs were not moved: they run or are over" in told
        assert "no job matches any more" not in told


def test_the_progress_of_a_limited_move_ends(broker, operator, inspector):
    """Jobs of the action follow each other until all was looked at, not until none is left."""
    broker.enqueue_unique(TARGET, [unique_job("a")])
    entered_job(broker, "a")
    for _ in range(2):
        queued_job(broker)
    html = text(operator.get(f"{BULK}-all/", {"queue": QUEUE, "state": "queued"}))
    page = operator.post(f"{BULK}-all/", {**hidden_fields(html), "target": TARGET, "per_second": "2"})["Location"]

    slow = "Jobs of this queue process some of them every second."

    def chores():
        jobs = [job for state in ("queued", "scheduled") for job in inspector.job_list.each(QUEUE, state)]
        return [job for job in jobs if job.task == run_bulk_action.name]

    hints = []
    while waiting := chores():
        (chore,) = waiting
        run_bulk_action(*chore.args, **chore.kwargs)
        inspector.cancel(chore.id)
        page = re.sub("job=[^&]*", "job=forgotten", page)
        hints.append(slow in text(operator.get(page)))
    assert hints[:1] == [True]
    assert hints[-1] is False

    html = text(operator.get(page))
    assert "2 of 3 moved." in html
    assert slow not in html
    assert "The job that did this has finished. 1 job was not moved: it runs or is over" in html

"""Bulk actions on jobs of all states, also those that a request does not finish. See test_dead_letters.py, too."""

import re

import pytest

from django_rtq.console.admin.pages import bulk as bulk_pages
from django_rtq.console.internal_tasks import run_bulk_action
from django_rtq.console.reading.actions import VERBS
from django_rtq.console.reading.selection import Selection
from django_rtq.core.jobs.job import JobState
from tests.console.admin.conftest import logged, text
from tests.console.admin.test_clients import LIST as CLIENTS
from tests.console.admin.test_clients import confirm_form
from tests.console.admin.test_dead_letters import hidden_fields, said
from tests.console.reading.test_sweep import later_job
from tests.support.commands import dead_letter
from tests.support.jobs import QUEUE, queued_job, scheduled_job

BULK = "/admin/django_rtq/job/bulk/"
LIST = f"/admin/django_rtq/queue/{QUEUE}/"


@pytest.mark.parametrize("state", VERBS)
def test_each_list_offers_what_can_be_done_with_its_jobs(state, jobs, operator, viewer):
    html = text(operator.get(LIST, {"state": state}))

    for place in (r'formaction="{}([a-z-]+)/"', r'href="{}([a-z-]+)/\?q=queue%3Adefault\+state%3A\w+"'):
        offered = re.findall(place.format(BULK), html)
        assert {verb.replace("-", "_") for verb in offered} == set(VERBS[state])
    assert BULK not in text(viewer.get(LIST, {"state": state}))


def test_selected_jobs_are_run_now(broker, jobs, operator, readers):
    operator.post(
        f"{BULK}run-now/", {"list": f"queue:{QUEUE} state:scheduled", "id": [jobs.scheduled.id, jobs.dead.id]}
    )

    assert readers.find(jobs.scheduled.id).state is JobState.QUEUED
    page = said(operator)
    assert "1 job is queued now." in page
    assert "Nothing was done with 1 of them: someone else may have acted first, or it may not run now." in page
    assert logged() == [f"1 job is queued now. {jobs.scheduled.id}"]


def test_selected_jobs_are_cancelled_after_a_question(broker, jobs, operator, readers):
    given = {"list": f"queue:{QUEUE} state:queued", "id": [jobs.queued.id]}
    html = text(operator.post(f"{BULK}cancel/", given))
    assert "Cancel 1 queued job?" in html
    assert readers.find(jobs.queued.id).state is JobState.QUEUED

    operator.post(f"{BULK}cancel/", hidden_fields(html))

    assert readers.find(jobs.queued.id).state is JobState.CANCELLED
    assert "1 job was cancelled." in said(operator)

    operator.post(f"{BULK}cancel/", hidden_fields(html))
    told = said(operator)
    assert f"Nothing was done: job {jobs.queued.id} is now cancelled." in told
    assert "1 job was cancelled." not in told


def test_running_jobs_are_asked_to_stop(jobs, operator, readers):
    html = text(operator.get(f"{BULK}cancel/", {"q": f"queue:{QUEUE} state:running"}))
    assert "Cancel 1 running job?" in html
    operator.post(f"{BULK}cancel/", hidden_fields(html))
    assert readers.find(jobs.running.id).is_stopping
    assert "1 job was asked to stop." in said(operator)


def test_all_that_match_are_cancelled_and_later_ones_left_alone(broker, operator, readers):
    jobs = [queued_job(broker, client=client) for client in "aab"]
    html = text(operator.get(f"{BULK}cancel/", {"q": f"queue:{QUEUE} state:queued client:a"}))
    assert "Cancel 2 queued jobs?" in html
    assert "Jobs that die or are made from now on are not affected." in html
    (until_ms,) = hidden_fields(html)["until_ms"]
    later = later_job(broker, int(until_ms) + 60_000, client="a")

    answer = operator.post(f"{BULK}cancel/", hidden_fields(html))

    assert answer["Location"] == f"{LIST}?state=queued&q=client%3Aa"
    assert [readers.find(job.id).state for job in (*jobs, later)] == ["cancelled", "cancelled", "queued", "queued"]
    assert logged()[0].startswith("2 jobs were cancelled. (Queue: default, State: queued, Filter: client:a, ")


@pytest.mark.parametrize("state", ["dead", "scheduled"])
def test_a_question_is_about_the_jobs_of_now(jobs, operator, state):
    page = f"{BULK}{'discard' if state == 'dead' else 'cancel'}/"
    html = text(operator.get(page, {"q": f"queue:{QUEUE} state:{state}", "until_ms": 10**14}))

    assert int(hidden_fields(html)["until_ms"][0]) < 10**14


@pytest.mark.parametrize(("verb", "state"), [("run-now", "queued"), ("cancel", "dead"), ("cancel", "finished")])
def test_a_state_in_which_it_cannot_be_done_is_refused(jobs, operator, verb, state):
    answer = operator.get(f"{BULK}{verb}/", {"q": f"queue:{QUEUE} state:{state}"})
    assert f"state:{state}: {verb.replace('-', '_')} is for jobs that are" in text(answer)


@pytest.mark.parametrize("some", [{"q": "task:a"}, {"q": "state:queued"}, {"id": "a", "until_ms": 10**15}])
def test_a_purge_of_some_jobs_only_is_refused(jobs, operator, some):
    answer = operator.post(f"{BULK}purge/", some)
    assert "purge is for all jobs that wait, or all of a client" in text(answer)


def test_nothing_is_done_without_a_selection(jobs, operator):
    for given in ({"list": f"queue:{QUEUE} state:queued"}, {"q": ""}):
        operator.post(f"{BULK}cancel/", given)
        assert "no job was selected" in said(operator)
    assert "there is no such field" in text(operator.get(f"{BULK}cancel/", {"q": "colour:red"}))


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
        "3 jobs were cancelled. Jobs of these queues do the rest: high, low. (Queue: default, high, low, "
        "Filter: client:bakery, "
    )
    assert "No worker serves queue high now" in page
    for queue in ("high", "low"):
        (job,) = readers.search([(queue, "queued")], filter=Selection(client="")).page().jobs
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

    page = text(operator.post(f"{BULK}cancel/", fields))

    assert "2 jobs were cancelled. Jobs of these queues do the rest: high." in page
    assert "The rest could not be enqueued. Queue low is full" in page
    assert "Repeat the action to continue." in page
    assert logged()[0].startswith("2 jobs were cancelled. Jobs of these queues do the rest: high. Queue low is full")


def test_dead_letters_of_many_queues_are_counted_together(broker, operator, round_trips):
    for number in range(6):
        dead_letter(broker, client="bakery", queue=f"q{number}")
    operator.get(CLIENTS)
    del round_trips[:]

    html = text(operator.get(f"{BULK}requeue/?q=client:bakery"))

    assert "Requeue 6 dead letters?" in html
    assert len(round_trips) <= 10

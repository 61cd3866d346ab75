"""Why a job does not run yet."""

import re
from datetime import datetime, timedelta, timezone

import pytest

from django_rtq.admin.display.waiting_reason import waiting_reason
from django_rtq.inspector.details import JobDetails
from django_rtq.inspector.queue_position import QueuePosition
from django_rtq.jobs.job import JobState
from tests.admin.conftest import text
from tests.support.jobs import QUEUE, queued_job, scheduled_job

NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=timezone.utc)
CLEAR = {"now": NOW, "paused_at": None, "workers": 2, "ahead": 0, "after": "", "promoted_at": NOW}
NEXT = "It is the next job of its client. It starts when the client gets its turn and a worker is free."


def at(**ago):
    return NOW - timedelta(**ago)


@pytest.mark.parametrize(
    ("state", "job", "standing", "said"),
    [
        ("queued", {"client": "x"}, {}, NEXT),
        ("queued", {"client": "x"}, {"ahead": 7}, "Other jobs of its client are ahead of it, at most 7."),
        ("queued", {"client": "x"}, {"ahead": 1000}, "Many other jobs of its client are ahead of it."),
        ("queued", {}, {"ahead": 7}, "Other jobs without a client are ahead of it, at most 7."),
        ("queued", {}, {"ahead": 1000}, "Many other jobs without a client are ahead of it."),
        ("queued", {}, {"ahead": None}, "It is waiting for its turn."),
        (
            "queued",
            {"expires_at": at(seconds=1)},
            {},
            "It has expired and will be dropped when its turn comes.",
        ),
        ("queued", {}, {"paused_at": at(minutes=5)}, "The queue was paused 5 min ago, so its jobs do not start."),
        ("queued", {}, {"workers": 0}, "No worker serves this queue."),
        (
            "queued",
            {},
            {"client_paused_at": at(minutes=5)},
            "Its client was paused 5 min ago, so the jobs of this client do not start.",
        ),
        (
            "queued",
            {},
            {"is_client_at_limit": True, "is_queue_at_limit": True},
            "Its client runs as many jobs as its limit allows. It starts when one of them ends. "
            "The queue runs as many jobs as its limit allows.",
        ),
        (
            "queued",
            {},
            {"client_starts_at": at(milliseconds=-340), "queue_starts_at": at(seconds=-2)},
            "Its client has started as many jobs as its rate allows. The next one may start in 340 ms. "
            "The queue has started as many jobs as its rate allows. The next one may start in 2.0 s.",
        ),
        (
            "queued",
            {},
            {"workers": 0, "paused_at": at(seconds=20)},
            "The queue was paused 20 s ago, so its jobs do not start. No worker serves this queue.",
        ),
        ("scheduled", {"due_at": at(minutes=-12)}, {}, "It is due in 12 min."),
        ("retrying", {"due_at": at(minutes=-12)}, {"workers": 0}, "It is due in 12 min. No worker serves this queue."),
        (
            "scheduled",
            {"due_at": at(seconds=20)},
            {"promoted_at": at(seconds=30)},
            "It was due 20 s ago and will be queued at the scheduler's next check.",
        ),
        (
            "scheduled",
            {"due_at": at(minutes=20)},
            {"promoted_at": at(minutes=30)},
            "It was due 20 min ago, but no scheduler is running for this queue.",
        ),
        (
            "scheduled",
            {"due_at": at(hours=-1)},
            {"after": "first"},
            "It starts after job first has finished, because unique jobs run one at a time.",
        ),
        ("running", {}, {"paused_at": NOW, "workers": 0}, ""),
        ("dead", {}, {"paused_at": NOW, "workers": 0}, ""),
        ("succeeded", {}, {"paused_at": NOW, "workers": 0}, ""),
    ],
)
def test_what_a_job_waits_for_is_said_in_words(state, job, standing, said):
    details = JobDetails(id="a", queue=QUEUE, state=JobState(state), **job)
    assert waiting_reason(details, QueuePosition(**{**CLEAR, **standing})) == said


def reason(client, job):
    """The waiting reason on the page of a job."""
    html = text(client.get(f"/admin/django_rtq/job/{job.id}/?queue={QUEUE}"))
    found = re.search(r'<p class="rtq-why">(.*?)</p>', html)
    return found and found[1]


def test_the_page_of_a_job_says_it_in_one_round_trip(broker, viewer, inspector, round_trips):
    first, behind, later = (seed(broker, client="x") for seed in (queued_job, queued_job, scheduled_job))
    broker.sign_on([QUEUE], "w1")
    round_trips.clear()

    assert reason(viewer, first) == NEXT
    assert len(round_trips) == 1
    assert reason(viewer, behind) == "Other jobs of its client are ahead of it, at most 1."
    assert reason(viewer, later).startswith("It is due in ")

    inspector.pause(QUEUE)
    assert reason(viewer, behind).startswith("The queue was paused ")


def test_what_runs_gives_no_reason(jobs, viewer):
    assert reason(viewer, jobs.running) is None
    assert reason(viewer, jobs.dead) is None

"""Why a job does not run yet."""

from datetime import datetime, timedelta, timezone

import pytest

from django_rtq.console.reading.details import Holds
from django_rtq.console.reading.jobs.waiting_reason import QueuePosition, waiting_reason
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import JobState
from tests.support.jobs import QUEUE

NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=timezone.utc)
CLEAR = {"now": NOW, "workers": 2, "ahead": 0, "clients_ahead": 0, "promoted_at": NOW}
NEXT = "It is the next job of the queue."
BUSY = "All workers of the queue are busy or quiet."
PAUSED, BY_EVE = Holds(paused_seconds=300), Holds(paused_seconds=300, paused_by="eve")
QUEUE_STOPS, CLIENT_STOPS = "so its jobs do not start.", "so the jobs of this client do not start."


def at(**ago):
    return NOW - timedelta(**ago)


@pytest.mark.parametrize(
    ("state", "job", "standing", "said"),
    [
        ("queued", {"client": "x"}, {}, NEXT),
        ("queued", {}, {"are_workers_busy": True}, f"{NEXT} {BUSY}"),
        ("queued", {"client": "x"}, {"ahead": 7}, "Ahead of it: up to 7 jobs of its client."),
        ("queued", {"client": "x"}, {"clients_ahead": 1}, "Ahead of it: the turn of 1 other client."),
        (
            "queued",
            {"client": "x"},
            {"ahead": 1, "clients_ahead": 1200, "are_workers_busy": True},
            f"Ahead of it: up to 1 job of its client, the turns of 1,200 other clients. {BUSY}",
        ),
        ("queued", {"client": "x"}, {"ahead": 1000}, "Ahead of it: more than 1,000 jobs of its client."),
        ("queued", {}, {"ahead": 7}, "Ahead of it: up to 7 jobs without a client."),
        ("queued", {}, {"ahead": 1000}, "Ahead of it: more than 1,000 jobs without a client."),
        ("queued", {"client": "x"}, {"clients_ahead": None}, "It is the next job of its client."),
        ("queued", {}, {"clients_ahead": None}, "It is the next job without a client."),
        ("queued", {}, {"ahead": None}, "It is waiting for its turn."),
        ("queued", {"expires_at": at(seconds=1)}, {}, "It has expired and will be dropped when its turn comes."),
        ("queued", {}, {"queue_holds": PAUSED}, f"The queue was paused 5 min ago, {QUEUE_STOPS}"),
        ("queued", {}, {"queue_holds": BY_EVE}, f"The queue was paused by eve, 5 min ago, {QUEUE_STOPS}"),
        ("queued", {}, {"workers": 0}, "No worker serves this queue."),
        ("queued", {}, {"client_holds": BY_EVE}, f"Its client was paused by eve, 5 min ago, {CLIENT_STOPS}"),
        ("queued", {}, {"client_holds": PAUSED}, f"Its client was paused 5 min ago, {CLIENT_STOPS}"),
        (
            "queued",
            {},
            {"client_holds": Holds(at_limit=2), "queue_holds": Holds(at_limit=1)},
            "The queue is at its limit of 1 running job. Its client is at its limit of 2 running jobs.",
        ),
        (
            "queued",
            {},
            {"client_holds": Holds(starts_in_seconds=0.34), "queue_holds": Holds(starts_in_seconds=2)},
            "The queue has started as many jobs as its rate allows. The next one may start in 2.0 s. "
            "Its client has started as many jobs as its rate allows. The next one may start in 340 ms.",
        ),
        (
            "queued",
            {},
            {"workers": 0, "queue_holds": Holds(paused_seconds=20)},
            f"The queue was paused 20 s ago, {QUEUE_STOPS} No worker serves this queue.",
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
        ("running", {}, {"workers": 0}, ""),
        ("dead", {}, {"workers": 0}, ""),
        ("succeeded", {}, {"workers": 0}, ""),
    ],
)
def test_what_a_job_waits_for_is_said_in_words(state, job, standing, said):
    details = JobDetails(id="a", queue=QUEUE, state=JobState(state), **job)
    assert waiting_reason(details, QueuePosition(**{**CLEAR, **standing})) == said

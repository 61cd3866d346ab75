"""What the time of a job was spent on."""

from datetime import datetime, timedelta, timezone

import pytest

from django_rtq.console.admin.display.charts.time_bar import parts_of, time_bar
from django_rtq.console.admin.display.jobs import steps
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import JobState

MADE = datetime(2026, 11, 22, 10, tzinfo=timezone.utc)


def at(seconds):
    return MADE + timedelta(seconds=seconds)


def job(state, **fields):
    return JobDetails(id="j", queue="q", state=JobState(state), **{"made_at": MADE, **fields})


def failure(ended, seconds):
    return {"at": at(ended).timestamp() * 1000, "seconds": seconds}


@pytest.mark.parametrize(
    ("details", "parts"),
    [
        (job("queued", ready_at=at(0.5)), [("wait", 100)]),
        (job("queued", ready_at=at(60)), [("delay", 60), ("wait", 40)]),
        (job("scheduled", ready_at=at(900), due_at=at(900)), [("delay", 100)]),
        (job("running", claimed_at=at(30)), [("wait", 30), ("run", 70)]),
        (job("succeeded", finished_at=at(50), seconds=20.0), [("before", 30), ("run", 20)]),
        (job("succeeded", finished_at=at(50), seconds=1e300), [("run", 50)]),
        (
            job("succeeded", errors=[failure(20, 5)], finished_at=at(50), seconds=10.0),
            [("wait", 15), ("failed", 5), ("retry", 20), ("run", 10)],
        ),
        (job("succeeded"), []),
        (job("cancelled", finished_at=at(50)), []),
        (job("queued", made_at=None), []),
        (job("dead", errors=[failure(20, 5)], died_at=at(20)), [("wait", 15), ("failed", 5)]),
        (
            job("retrying", errors=[failure(20, 5), failure(60, 10)], due_at=at(500)),
            [("wait", 15), ("failed", 5), ("retry", 30), ("failed", 10), ("retry", 40)],
        ),
        (
            job("running", errors=[failure(20, 5)], claimed_at=at(90)),
            [("wait", 15), ("failed", 5), ("retry", 70), ("run", 10)],
        ),
        # requeued
        (
            job("dead", errors=[failure(20, 5), failure(70, 10)], ready_at=at(50), died_at=at(70)),
            [("wait", 15), ("failed", 5), ("dead", 30), ("wait", 10), ("failed", 10)],
        ),
        (
            job("queued", errors=[failure(20, 5)], ready_at=at(50)),
            [("wait", 15), ("failed", 5), ("dead", 30), ("wait", 50)],
        ),
        (
            job("running", errors=[failure(80, 5)], ready_at=at(50), claimed_at=at(95)),
            [("delay", 50), ("wait", 25), ("failed", 5), ("retry", 15), ("run", 5)],
        ),
        (job("dead", errors=[{"at": "x"}, {}, {"at": -1e30, "seconds": 1}]), []),
        (job("dead", errors=[failure(-50, 5), failure(10, 500)]), [("failed", 10)]),
    ],
)
def test_the_time_is_divided(details, parts):
    found = parts_of(details, at(100))
    assert [(part.kind, pytest.approx(part.seconds)) for part in found] == parts
    assert (time_bar(details, at(100)) is None) == (not parts)


def test_a_requeued_job_says_so_in_its_place():
    details = job("dead", errors=[failure(20, 5), failure(70, 10)], ready_at=at(50), died_at=at(70))
    titles = [step.title for step in steps(details)]
    assert titles == ["enqueued", "attempt ? failed", "requeued", "attempt ? failed", "dead"]


def test_the_parts_are_drawn_in_proportion_and_short_ones_can_be_seen():
    bar = time_bar(job("running", claimed_at=at(99.9999)), at(100))
    assert [(key["css"], key["title"]) for key in bar["legend"]] == [("rtq-part-wait", "wait"), ("rtq-part-run", "run")]
    assert 'width="997.0"' in bar["svg"]
    assert 'width="3.0"' in bar["svg"]
    assert 'aria-label="Time of this job: wait 100 s, run &lt; 1 ms"' in bar["svg"]

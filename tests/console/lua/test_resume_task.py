"""Jobs of a task that was paused go back to their lanes."""

import pytest

from tests.protocol.model.task_calls import CHARGE, resumed
from tests.support.jobs import QUEUE, claim, claim_all, names, queued_job
from tests.support.single_steps import promote
from tests.support.snapshots import changes, snapshot

TASK = "charge"


@pytest.fixture
def pauses(inspector):
    return inspector.task_pauses


def hold(broker, pauses, *names, **options):
    """Jobs that a claim has met while their task was paused."""
    pauses.pause_task(TASK, QUEUE)
    jobs = [queued_job(broker, name, body=CHARGE, **options) for name in names]
    assert claim(broker) == []
    return jobs


def test_nothing_is_left_of_the_pause(redis, broker, pauses):
    before = snapshot(redis)
    (job,) = hold(broker, pauses, "a")

    assert pauses.resume_task(TASK, QUEUE) == [QUEUE]
    assert claim(broker) == [job.id]

    left = changes(before, snapshot(redis))
    assert {"paused", "scheduled", "scheduled_by_client", "waiting_since"}.isdisjoint(left)


def test_they_come_in_their_order_and_before_later_jobs_of_their_client(broker, pauses):
    hold(broker, pauses, *"abc", client="acme")
    queued_job(broker, "d", client="acme", body=CHARGE)
    queued_job(broker, "e", client="acme")

    pauses.resume_task(TASK, QUEUE)

    assert names(claim(broker, 5)) == [*"abcde"]


def test_many_go_back_in_steps(broker, inspector, pauses):
    jobs = hold(broker, pauses, *map(str, range(230)))

    assert pauses.resume_task(TASK, QUEUE) == [QUEUE]

    assert inspector.queues.get(QUEUE).paused_tasks == ()
    assert claim(broker, 500) == [job.id for job in jobs]


def test_the_scheduler_goes_on_when_the_caller_has_died(broker, inspector):
    jobs = resumed(broker)
    (pause,) = inspector.queues.get(QUEUE).paused_tasks
    assert (pause.is_over, pause.held) == (True, 3)

    assert promote(broker, QUEUE, limit=2)[0] == 0.0  # at once again
    promote(broker, QUEUE, limit=2)

    assert inspector.queues.get(QUEUE).paused_tasks == ()
    assert set(claim_all(broker)) == {job.id for job in jobs if not job.id.endswith("-d")}

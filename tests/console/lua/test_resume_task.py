"""Jobs of a task that was paused go back to their lanes."""

import pytest

from tests.protocol.model.task_calls import CHARGE
from tests.support.jobs import QUEUE, claim, queued_job

TASK = "charge"


@pytest.fixture
def pauses(readers):
    return readers.task_pauses


def hold(broker, pauses, *names, **options):
    """Jobs that a claim has met while their task was paused."""
    pauses.pause_task(TASK, QUEUE)
    jobs = [queued_job(broker, name, body=CHARGE, **options) for name in names]
    assert claim(broker) == []
    return jobs


def test_many_go_back_in_steps(broker, readers, pauses):
    jobs = hold(broker, pauses, *map(str, range(230)))

    assert pauses.resume_task(TASK, QUEUE) == [QUEUE]

    assert readers.queues.get(QUEUE).paused_tasks == ()
    assert claim(broker, 500) == [job.id for job in jobs]

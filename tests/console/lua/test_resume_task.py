"""Jobs of a task that was paused go back to their lanes."""

from tests.protocol.model.task_calls import CHARGE
from tests.support.jobs import QUEUE, claim, queued_job

TASK = "charge"


def hold(broker, rtq, *names, **options):
    """Jobs that a claim has met while their task was paused."""
    rtq.tasks[TASK].pause(QUEUE)
    jobs = [queued_job(broker, name, body=CHARGE, **options) for name in names]
    assert claim(broker) == []
    return jobs


def test_many_go_back_in_steps(broker, readers, rtq):
    jobs = hold(broker, rtq, *map(str, range(230)))

    assert rtq.tasks[TASK].resume(QUEUE) == [QUEUE]

    assert readers.queues.get(QUEUE).paused_tasks == ()
    assert claim(broker, 500) == [job.id for job in jobs]

"""One claim for several queues, in the order of the worker."""

import pytest

from tests.core.broker.test_claim import claim_from
from tests.support.jobs import WORKER, queued_job


@pytest.mark.parametrize("place", [0, 1, 2, 7, 63, 98, 99])
def test_work_is_found_in_any_of_many_queues(redis, broker, place):
    queues = [f"q{number}" for number in range(100)]
    job, later = queued_job(broker, queue=queues[place]), queued_job(broker, queue=queues[99])

    first, *others = claim_from(broker, *queues, wanted=2)

    assert (first.queue, first.ids[0]) == (queues[place], job.id.encode())
    assert [i for part in (first, *others) for i in part.ids] == [job.id.encode(), later.id.encode()]


@pytest.mark.parametrize("place", [0, 50])
def test_a_claim_looks_at_no_queue_behind_the_first_one_with_work(redis, broker, place):
    queues = [f"q{number}" for number in range(100)]
    queued_job(broker, queue=queues[place])
    queued_job(broker, queue=queues[place + 1])
    broker.sign_on(queues, WORKER)

    with redis.monitor() as monitor:
        broker.claim(WORKER, queues, 1)
        redis.echo(b"over")
        lines = []
        while not lines or b"over" not in lines[-1]:
            lines.append(monitor.connection.read_response())

    scripted = [line for line in lines if b" lua] " in line]
    assert len(scripted) < 30
    assert not [line for line in scripted if f"{{rtq:{queues[place + 1]}}}:".encode() in line and b"EXISTS" not in line]

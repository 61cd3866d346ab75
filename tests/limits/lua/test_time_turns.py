"""fair_by="seconds": clients get equal times of the workers, however long their jobs are."""

import pytest

from tests.protocol.model.time_shares import Workers
from tests.support.jobs import QUEUE, claimed_jobs, new_job, settle
from tests.support.mutant import OWN_CLOCK, mutated

pytestmark = pytest.mark.long

LENGTHS = {"short": 5, "middle": 10, "long": 50}


@pytest.fixture
def workers(redis, broker, rtq):
    """Makes workers for a queue that is fair by seconds."""

    def make(**options):
        found = Workers(redis, broker, **options)
        rtq.queues[QUEUE].limit(fair_by="seconds")
        return found

    with mutated(OWN_CLOCK):
        yield make
    redis.delete("clock")


def shares(workers):
    total = sum(workers.used.values())
    return {client: used / total for client, used in workers.used.items()}


@pytest.mark.parametrize(("number", "batch"), [(1, 1), (4, 1), (1, 20), (3, 7)])
def test_clients_get_equal_times(workers, number, batch):
    workers = workers(number=number, batch=batch)
    for client, ms in LENGTHS.items():
        workers.enqueue(client, ms, 4000 * number // ms + 100)

    workers.run(6000 // (number + 1))

    assert shares(workers) == pytest.approx(dict.fromkeys(LENGTHS, 1 / 3), rel=0.1)


def test_weights_divide_the_time(workers, rtq):
    workers = workers(number=2)
    rtq.clients["long"].limit(QUEUE, weight=2)
    for client, ms in LENGTHS.items():
        workers.enqueue(client, ms, 8000 // ms + 100)

    workers.run(4000)

    assert shares(workers) == pytest.approx({"short": 0.25, "middle": 0.25, "long": 0.5}, rel=0.1)


def test_who_worked_alone_owes_nobody(workers):
    workers = workers()
    workers.enqueue("busy", 50, 200)
    workers.run(5000)
    workers.used.clear()

    workers.enqueue("new", 5, 400)
    workers.run(1000)

    assert shares(workers) == pytest.approx({"new": 0.5, "busy": 0.5}, rel=0.15)


def test_who_enqueues_one_job_after_the_other_gets_no_more(workers):
    workers = workers()
    workers.enqueue("others", 5, 600)
    workers.enqueue("chain", 100)

    workers.run(2000, on_end=lambda client, ms: client == "chain" and workers.enqueue("chain", ms))

    assert shares(workers) == pytest.approx({"others": 0.5, "chain": 0.5}, rel=0.15)


def used(redis, broker):
    return {field.decode(): text.decode() for field, text in redis.hgetall(broker.keys.of(QUEUE).job_times).items()}


@pytest.fixture
def by_time(rtq):
    rtq.queues[QUEUE].limit(fair_by="seconds")


def test_without_it_nothing_is_stored(redis, broker, by_time, rtq):
    (job,) = claimed_jobs(broker, new_job(client="x"))

    rtq.queues[QUEUE].limit(fair_by="settings")

    assert used(redis, broker) == {}
    settle(broker, "ack", job)
    assert used(redis, broker) == {}

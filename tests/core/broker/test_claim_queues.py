"""One claim for several queues, in the order of the worker."""

import pytest

from tests.support.jobs import QUEUE, WORKER, names, queued_job
from tests.support.snapshots import place_of, snapshot


def claim_from(broker, *queues, wanted=10, **options):
    """What each queue answers to a worker that has signed on everywhere."""
    broker.sign_on(queues, WORKER)
    return broker.claim(WORKER, queues, wanted, **options).claimed


def test_queues_are_emptied_in_the_order_that_the_worker_names(redis, broker):
    for queue in ("low", "high"):
        for number in range(2):
            queued_job(broker, f"{queue}{number}", queue=queue)

    high, low = claim_from(broker, "high", "low", wanted=3)

    assert (high.queue, names(high.ids)) == ("high", ["high0", "high1"])
    assert (low.queue, names(low.ids)) == ("low", ["low0"])


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


# Rights


@pytest.mark.parametrize("known_in", [[], ["low"]])
def test_a_worker_that_is_unknown_in_the_first_queue_with_work_gets_nothing(redis, broker, known_in):
    queued_job(broker)
    queued_job(broker, queue="low")
    broker.sign_on(known_in, WORKER)
    before = snapshot(redis)

    (claimed,) = broker.claim(WORKER, [QUEUE, "low"], 5).claimed

    assert (claimed.queue, claimed.status, claimed.ids) == (QUEUE, "unknown", [])
    assert snapshot(redis) == before


def test_what_a_worker_got_before_a_queue_where_it_is_unknown_is_told(redis, broker):
    first, second = queued_job(broker), queued_job(broker, queue="low")
    broker.sign_on([QUEUE], WORKER)

    answers = [broker.claim(WORKER, [QUEUE, "low"], 5).claimed for _ in range(2)]

    assert [[(part.queue, part.status, part.ids) for part in answer] for answer in answers] == [
        [(QUEUE, "ok", [first.id.encode()])],
        [("low", "unknown", [])],
    ]
    assert place_of(redis, second) == "low:lane:0:"


@pytest.mark.parametrize("queues", [[QUEUE], ["other", QUEUE], [QUEUE, "other"]])
def test_a_worker_that_is_unknown_hears_of_it_also_if_there_is_no_work(redis, broker, queues):
    broker.sign_on(["other"], WORKER)

    (claimed,) = broker.claim(WORKER, queues, 5).claimed

    assert (claimed.queue, claimed.status) == (QUEUE, "unknown")

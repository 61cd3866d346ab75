"""A client of weight 5 gets five starts where one of weight 1 gets one."""

import itertools
from collections import Counter, deque

import pytest

from tests.support.jobs import QUEUE, claim, names, new_job

pytestmark = pytest.mark.long

WEIGHTS = {"a": 1, "b": 2, "c": 5, "d": 10}


def enqueue_many(broker, client, jobs):
    broker.enqueue(QUEUE, [new_job(client, client=client) for _ in range(jobs)])


def starts(broker, sizes, total):
    """The names of the clients whose jobs are claimed, in batches of these sizes in turn."""
    found, sizes = [], itertools.cycle(sizes)
    while len(found) < total:
        found += names(claim(broker, min(next(sizes), total - len(found))))
    return found


@pytest.mark.parametrize("sizes", [(1,), (7,), (64,), (500,), (1, 3, 40, 200)], ids=str)
def test_starts_are_shared_by_weight(broker, sizes, rtq):
    for client, weight in WEIGHTS.items():
        rtq.clients[client].limit(QUEUE, weight=weight)
        enqueue_many(broker, client, 1500)

    total = 1800
    counts = Counter(starts(broker, sizes, total))

    for client, weight in WEIGHTS.items():
        assert counts[client] == pytest.approx(total * weight / 18, rel=0.02)


def test_the_starts_of_a_heavy_client_are_spread_out(broker, rtq):
    rtq.clients["heavy"].limit(QUEUE, weight=5)
    for client in ("heavy", *"abcde"):
        enqueue_many(broker, client, 60)

    found = "".join(client[0] for client in starts(broker, (1,), 100))

    assert "hh" not in found
    for start in range(80):
        assert 9 <= found[start : start + 20].count("h") <= 11


def test_who_enqueues_one_job_after_the_other_gets_its_share(broker, rtq):
    rtq.clients["chain"].limit(QUEUE, weight=2)
    for client in ("chain", *"abcd"):
        enqueue_many(broker, client, 1 if client == "chain" else 100)
    running, counts = deque(), Counter()

    for _ in range(240):
        running += names(claim(broker))
        counts[running[-1]] += 1
        if len(running) == 2 and running.popleft() == "chain":  # two jobs run at a time
            enqueue_many(broker, "chain", 1)

    assert counts["chain"] == pytest.approx(80, abs=2)

"""A client of weight 5 gets five starts where one of weight 1 gets one."""

import itertools
from collections import Counter, deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.jobs import QUEUE, WORKER, claim, names, new_job

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
def test_starts_are_shared_by_weight(broker, limits, sizes):
    for client, weight in WEIGHTS.items():
        limits.set_client(QUEUE, client, weight=weight)
        enqueue_many(broker, client, 1500)

    total = 1800
    counts = Counter(starts(broker, sizes, total))

    for client, weight in WEIGHTS.items():
        assert counts[client] == pytest.approx(total * weight / 18, rel=0.02)


def test_the_starts_of_a_heavy_client_are_spread_out(broker, limits):
    limits.set_client(QUEUE, "heavy", weight=5)
    for client in ("heavy", *"abcde"):
        enqueue_many(broker, client, 60)

    found = "".join(client[0] for client in starts(broker, (1,), 100))

    assert "hh" not in found
    for start in range(80):
        assert 9 <= found[start : start + 20].count("h") <= 11


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("enqueue"), st.sampled_from(("x", "xy", "z", "ü")), st.sampled_from([0, 0, 7])),
        st.tuples(st.just("claim"), st.integers(1, 12)),
        st.tuples(
            st.just("weight"), st.sampled_from(("xy", "z")), st.sampled_from((0.01, 0.3, 1, 2, 1000, "settings"))
        ),
    ),
    max_size=40,
)


@settings(max_examples=60)
@given(steps=STEPS)
def test_a_batch_brings_what_as_many_single_claims_bring(redis, broker, limits, steps):
    redis.flushdb()
    broker.sign_on(["single", "batch"], WORKER)
    for queue in ("single", "batch"):
        limits.set_client(queue, "x", weight=3)

    for step, *details in [*steps, ("claim", 100)]:
        if step == "enqueue":
            job = new_job(client=details[0], priority=details[1])
            broker.enqueue("single", [job])
            broker.enqueue("batch", [job])
        elif step == "weight":
            for queue in ("single", "batch"):
                limits.set_client(queue, details[0], weight=details[1])
        else:
            singles = [part.ids for _ in range(details[0]) for part in broker.claim(WORKER, ["single"], 1).claimed]
            batch = [job_id for part in broker.claim(WORKER, ["batch"], details[0]).claimed for job_id in part.ids]
            assert batch == [job_id for ids in singles for job_id in ids]


def test_who_enqueues_one_job_after_the_other_gets_its_share(broker, limits):
    limits.set_client(QUEUE, "chain", weight=2)
    for client in ("chain", *"abcd"):
        enqueue_many(broker, client, 1 if client == "chain" else 100)
    running, counts = deque(), Counter()

    for _ in range(240):
        running += names(claim(broker))
        counts[running[-1]] += 1
        if len(running) == 2 and running.popleft() == "chain":  # two jobs run at a time
            enqueue_many(broker, "chain", 1)

    assert counts["chain"] == pytest.approx(80, abs=2)


@pytest.mark.parametrize("change", ["client", "default", "end"])
def test_a_light_client_that_becomes_heavy_does_not_wait_for_its_old_turn(broker, limits, change):
    limits.set_client(QUEUE, "light", weight=0.01)
    for client in ("light", "a", "b"):
        enqueue_many(broker, client, 100)
    assert "light" in starts(broker, (1,), 6)  # its next turn would be after 600 others

    if change == "client":
        limits.set_client(QUEUE, "light", weight=1)
    elif change == "default":
        limits.set_default(QUEUE, weight=0.01)
    else:
        limits.set_client(QUEUE, "light", weight="settings")

    assert Counter(starts(broker, (1,), 31))["light"] in (10, 11)

"""A client of weight 5 gets five starts where one of weight 1 gets one."""

import itertools
from collections import Counter, deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.jobs import QUEUE, WORKER, claim, claim_all, names, new_job, queued_job

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


def test_they_are_spread_out_among_clients_that_waited_before(broker, limits):
    for client in ("heavy", *"abcde"):
        for _ in range(20):  # each call takes a number
            enqueue_many(broker, client, 2)

    limits.set_client(QUEUE, "heavy", weight=5)

    assert "hhh" not in "".join(client[0] for client in starts(broker, (1,), 40))


def test_the_weights_of_others_are_as_the_default(broker, limits):
    limits.set_default(QUEUE, weight=100)
    limits.set_client(QUEUE, "small", weight=50)
    for client in ("small", "a", "b"):
        enqueue_many(broker, client, 200)

    counts = Counter(starts(broker, (16,), 250))

    assert counts == {"small": 50, "a": 100, "b": 100}


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


def test_who_comes_back_has_saved_up_nothing(broker, limits):
    limits.set_client(QUEUE, "away", weight=2)
    enqueue_many(broker, "busy", 400)
    enqueue_many(broker, "away", 1)
    starts(broker, (10,), 300)

    enqueue_many(broker, "away", 200)
    counts = Counter(starts(broker, (1,), 60))

    assert counts == {"away": 40, "busy": 20}


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


def test_who_comes_and_goes_gets_its_turn_soon_if_all_are_heavy(broker, limits):
    for client in ("busy", "new"):
        limits.set_client(QUEUE, client, weight=1000)
    enqueue_many(broker, "busy", 100)
    starts(broker, (1,), 10)

    queued_job(broker, "new", client="new")

    assert "new" in names(claim(broker, 2))


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


def test_weights_and_caps_hold_together(broker, limits):
    limits.set_client(QUEUE, "heavy", weight=10, max_running=2)
    for client in ("heavy", "a", "b"):
        enqueue_many(broker, client, 10)

    counts = Counter(starts(broker, (8,), 16))

    assert counts == {"heavy": 2, "a": 7, "b": 7}
    assert limits.read(QUEUE).clients["heavy"].is_blocked


def test_without_the_last_weight_clients_take_turns_as_before(redis, broker, limits):
    limits.set_client(QUEUE, "x", weight=5)
    for client in "xyz":
        enqueue_many(broker, client, 20)
    starts(broker, (5,), 10)

    limits.set_client(QUEUE, "x", weight="settings")
    enqueue_many(broker, "new", 20)
    starts(broker, (1,), 4)

    assert not redis.exists(broker.keys.of(QUEUE).limits)
    assert Counter(starts(broker, (1,), 16)) == dict.fromkeys(("x", "y", "z", "new"), 4)


def test_all_jobs_come_in_the_order_of_their_client(broker, limits):
    limits.set_client(QUEUE, "y", weight=7)
    jobs = [queued_job(broker, client="xyz"[number % 3]) for number in range(90)]

    found = claim_all(broker, 9)

    for start in range(3):
        mine = [job.id for job in jobs[start::3]]
        assert [job_id for job_id in found if job_id in mine] == mine


@pytest.mark.parametrize("wanted", [1, 10, 500])
def test_very_many_clients_enter_the_ring_in_their_order(broker, limits, wanted):
    limits.set_client(QUEUE, "heavy", weight=2)
    jobs = [new_job(client=f"c{number}") for number in range(1200)]
    for start in range(0, 1200, 400):
        broker.enqueue(QUEUE, jobs[start : start + 400])

    assert claim_all(broker, wanted) == [job.id for job in jobs]

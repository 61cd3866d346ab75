"""Whose turn it is: client after client within a band, band after band."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.jobs import QUEUE, WORKER, claim, claim_all, lose_record, names, new_job, queued_job


def test_the_jobs_of_a_client_come_in_their_order(redis, broker):
    jobs = [queued_job(broker, client="x") for _ in range(20)]

    assert claim_all(broker, 3) == [job.id for job in jobs]


@pytest.mark.parametrize("wanted", [1, 64])
def test_a_flood_of_one_client_delays_another_by_a_turn(redis, broker, wanted):
    broker.enqueue(QUEUE, [new_job(client="flood") for _ in range(20_000)])
    few = [queued_job(broker, client="few") for _ in range(10)]

    first = itertools.chain.from_iterable(claim(broker, wanted) for _ in range(-(-30 // wanted)))

    assert {job.id for job in few} <= set(list(first)[:30])


def test_who_was_served_goes_to_the_end_and_who_is_new_too(redis, broker):
    for client in "xyz":
        queued_job(broker, client, client=client)
        queued_job(broker, client, client=client)

    first = claim(broker, 2)
    queued_job(broker, "new", client="new")

    assert names(first + claim_all(broker, 1)) == ["x", "y", "z", "x", "y", "new", "z"]


def test_a_higher_priority_comes_first_whoever_waits(redis, broker):
    for priority in (0, 10, -5, 10):
        queued_job(broker, str(priority), priority=priority, client=str(priority))

    assert names(claim(broker, 3)) == ["10", "10", "0"]
    assert names(claim(broker, 3)) == ["-5"]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("enqueue"), st.sampled_from("xyz"), st.sampled_from([0, 0, 7])),
        st.tuples(st.just("claim"), st.integers(1, 12)),
    ),
    max_size=40,
)


@settings(max_examples=40)
@given(steps=STEPS)
def test_a_batch_brings_what_as_many_single_claims_bring(redis, broker, steps):
    redis.flushdb()
    broker.sign_on(["single", "batch"], WORKER)

    for step, *details in [*steps, ("claim", 100)]:
        if step == "enqueue":
            job = new_job(client=details[0], priority=details[1])
            broker.enqueue("single", [job])
            broker.enqueue("batch", [job])
            continue
        singles = [part.ids for _ in range(details[0]) for part in broker.claim(WORKER, ["single"], 1).claimed]
        batch = [job_id for part in broker.claim(WORKER, ["batch"], details[0]).claimed for job_id in part.ids]
        assert batch == [job_id for ids in singles for job_id in ids]


@settings(max_examples=40)
@given(
    jobs=st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from(["good", "good", "suspect", "lost"])), max_size=25),
    wanted=st.integers(2, 12),
)
def test_suspects_and_ids_without_a_record_do_not_change_the_turns(redis, broker, jobs, wanted):
    redis.flushdb()
    for number, (client, past) in enumerate(jobs):
        job = queued_job(broker, f"{client}{number}", client=client)
        if past == "suspect":
            redis.hset(broker.keys.of(QUEUE).crashes, job.id, 1)
        if past == "lost":
            lose_record(broker, job)
    copy = {key: redis.dump(key) for key in redis.scan_iter()}
    batches = claim_all(broker, wanted)
    redis.flushdb()
    for key, value in copy.items():
        redis.restore(key, 0, value)

    assert claim_all(broker, 1) == batches


@settings(max_examples=60)
@given(
    jobs=st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("ggscc")), max_size=25),
    wanted=st.integers(1, 12),
    slots=st.integers(1, 12),
)
def test_the_turns_are_those_that_they_would_be_without_the_cancelled_jobs(redis, broker, jobs, wanted, slots):
    """Whether they are claimed one by one, in batches or in groups."""
    redis.flushdb()
    keys, left = broker.keys.of(QUEUE), []
    for number, (client, past) in enumerate(jobs):
        job = queued_job(broker, f"{client}{number}", client=client)
        if past == "s":
            redis.hset(keys.crashes, job.id, 1)
        if past == "c":
            lose_record(broker, job)
            redis.hset(keys.cancelled_in_lane, job.id, f"0:{client}")
        else:
            left.append((client, job.id))

    expected, clients = [], list(dict.fromkeys(client for client, _ in jobs))
    lines = {client: [job_id for each, job_id in left if each == client] for client in clients}
    while any(lines.values()):
        expected += [lines[client].pop(0) for client in clients if lines[client]]

    assert claim_all(broker, wanted, idle=slots) == expected
    assert not redis.exists(keys.cancelled_in_lane)


@settings(max_examples=25)
@given(lines=st.dictionaries(st.sampled_from("vwxyz"), st.integers(1, 30), min_size=1), wanted=st.integers(1, 40))
def test_between_two_turns_of_a_client_every_other_has_one(redis, broker, lines, wanted):
    redis.flushdb()
    for client, length in lines.items():
        broker.enqueue(QUEUE, [new_job(client, client=client) for _ in range(length)])

    served = names(claim_all(broker, wanted))

    waiting = dict(lines)
    while served:
        turn = [client for client in waiting if waiting[client]]
        now, served = served[: len(turn)], served[len(turn) :]
        assert now == turn
        waiting.update((client, waiting[client] - 1) for client in turn)
    assert not any(waiting.values())

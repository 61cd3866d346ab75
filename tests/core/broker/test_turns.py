"""Whose turn it is: client after client within a band, band after band."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.jobs import QUEUE, claim, claim_all, names, new_job, queued_job


@pytest.mark.parametrize("wanted", [1, 64])
def test_a_flood_of_one_client_delays_another_by_a_turn(redis, broker, wanted):
    broker.enqueue(QUEUE, [new_job(client="flood") for _ in range(20_000)])
    few = [queued_job(broker, client="few") for _ in range(10)]

    first = itertools.chain.from_iterable(claim(broker, wanted) for _ in range(-(-30 // wanted)))

    assert {job.id for job in few} <= set(list(first)[:30])


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

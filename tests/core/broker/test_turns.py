"""Whose turn it is: client after client within a band, band after band."""

import itertools

import pytest

from tests.support.jobs import QUEUE, claim, new_job, queued_job


@pytest.mark.parametrize("wanted", [1, 64])
def test_a_flood_of_one_client_delays_another_by_a_turn(redis, broker, wanted):
    broker.enqueue(QUEUE, [new_job(client="flood") for _ in range(20_000)])
    few = [queued_job(broker, client="few") for _ in range(10)]

    first = itertools.chain.from_iterable(claim(broker, wanted) for _ in range(-(-30 // wanted)))

    assert {job.id for job in few} <= set(list(first)[:30])

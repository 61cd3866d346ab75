"""Whose jobs wait, and who kept the workers busy."""

import pytest

from django_rtq.console.inspector.metrics import reader as metrics
from django_rtq.core.broker.settlement import Settlement
from tests.support.jobs import QUEUE, queued_job


def serve(broker, *clients):
    """(client, runs, seconds) each."""
    flat = [value for name, runs, seconds in clients for value in (name, runs, round(seconds * 1e6))]
    broker.settle("w1", QUEUE, Settlement(metrics=[(0, 0, 0, *flat)]))


def test_who_has_most_jobs_comes_first(redis, broker, inspector):
    for client in "xyyyz":
        queued_job(broker, client=client)
    queued_job(broker, client="x", priority=5)

    found = inspector.metrics.clients(QUEUE)

    assert [(one.client, one.queued) for one in found.clients] == [("y", 3), ("x", 2), ("z", 1)]
    assert (found.lanes, found.searched) == (4, 4)
    assert all(0 <= one.oldest_seconds < 5 for one in found.clients)


def test_who_was_busy_has_a_share_of_all_the_work(redis, broker, inspector):
    queued_job(broker, client="x")
    serve(broker, ("x", 1, 1.0), ("y", 50, 3.0))

    found = inspector.metrics.clients(QUEUE, by="share").clients

    assert [(one.client, one.share, one.done_lately, one.busy_seconds) for one in found] == [
        ("y", 0.75, 50, 3.0),
        ("x", 0.25, 1, 1.0),
    ]
    assert [(one.queued, one.oldest_seconds is None) for one in found] == [(0, True), (1, False)]


def test_the_work_of_an_hour_counts(redis, broker, inspector):
    keys, slice_ = broker.keys.of(QUEUE), redis.time()[0] // 600
    for back in (0, 5, 6):
        redis.zadd(keys.client_time + str(slice_ - back).encode(), {"x": 1_000_000})
        redis.hset(keys.client_runs + str(slice_ - back).encode(), mapping={"x": 1, "\n": 2_000_000})

    (one,) = inspector.metrics.clients(QUEUE).clients

    assert (one.done_lately, one.busy_seconds, one.share) == (2, 2.0, 0.5)


def test_nobody_was_there(redis, inspector):
    assert inspector.metrics.clients("never").clients == []


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_no_more_are_told_than_were_asked_for(redis, broker, inspector, limit):
    for client in "xxyzz":
        queued_job(broker, client=client)
    serve(broker, ("a", 1, 1.0))

    assert len(inspector.metrics.clients(QUEUE, limit).clients) == min(limit, 4)


def test_of_very_many_lanes_those_are_looked_at_that_wait_longest(redis, broker, inspector, monkeypatch):
    monkeypatch.setattr(metrics, "MAX_LANES", 2)
    for client in "xyz":
        queued_job(broker, client=client)
        redis.zadd(broker.keys.of(QUEUE).lanes, {f"0:{client}": 1000 * (ord(client) - ord("x"))})

    found = inspector.metrics.clients(QUEUE)

    assert sorted(one.client for one in found.clients) == ["x", "y"]
    assert (found.lanes, found.searched) == (3, 2)


def test_a_client_may_be_called_anything(redis, broker, inspector):
    for client in ("", "a:b c", "ü", "\x1b[2J"):
        queued_job(broker, client=client)

    assert sorted(one.client for one in inspector.metrics.clients(QUEUE).clients) == sorted(
        ["", "a:b c", "ü", "\x1b[2J"]
    )

"""The jobs of clients in their queues, their limits, why they wait, and their part of recent runs."""

import re

import pytest

from django_rtq.console.reading import clients
from django_rtq.limits.limit_kinds import Limit
from tests.support.jobs import QUEUE, claimed_job, queued_job


def test_its_limits_are_told_with_their_source(broker, readers, rtq):
    rtq.queues[QUEUE].limit_clients(max_running=1)
    broker.limits.change(QUEUE, {"settings:client:x": "max_running=3"})
    rtq.clients["x"].pause(QUEUE, by="me")

    (found,) = readers.clients.get("x", [QUEUE])
    (other,) = readers.clients.get("y", [QUEUE])

    assert found.limits == found.in_force == {"max_running": Limit(value=3, is_from_settings=True)}
    assert found.queue_state.default == other.in_force == {"max_running": Limit(value=1, is_from_settings=False)}
    assert (found.pause.by, other.pause) == ("me", None)


def test_its_rate_and_the_queue_say_when_it_may_start_a_job(broker, readers, rtq):
    rtq.clients["x"].limit(QUEUE, rate="1/h")
    claimed_job(broker, client="x")
    queued_job(broker, client="x")

    (found,) = readers.clients.get("x", [QUEUE])

    assert 3500 < found.holds.starts_in_seconds <= 3600
    assert found.reason == "next start in 60 min"
    rtq.queues[QUEUE].pause()
    rtq.clients["x"].pause(QUEUE, by="eve")
    (found,) = readers.clients.get("x", [QUEUE])
    assert re.fullmatch(r"paused by eve, [^;]+ ago; the queue: paused [^;]+ ago", found.reason)


def count_runs(redis, broker, back, queue=QUEUE, **clients):
    """Store the counters of ten minutes, so many slices back: client -> (runs, seconds)."""
    keys, name = broker.keys.of(queue), str(redis.time()[0] // 600 - back).encode()
    runs, seconds = (sum(each[place] for each in clients.values()) for place in (0, 1))
    sums = {"\n": round(seconds * 1e6), "\nruns": runs}
    redis.hset(keys.client_runs + name, mapping={**{one: each[0] for one, each in clients.items()}, **sums})
    redis.zadd(keys.client_time + name, {one: each[1] * 1e6 for one, each in clients.items()})


def shares(client):
    """Its parts of recent runs, and its fair share."""
    return client.starts, client.time, client.fair


def test_its_parts_of_recent_runs_stand_beside_its_fair_share(redis, broker, readers, rtq):
    queued_job(broker, client="waits")
    count_runs(redis, broker, 0, x=(30, 1), y=(10, 3))
    rtq.clients["x"].limit(QUEUE, weight=3)

    _, found = readers.clients.in_queue(QUEUE, ["x", "y", "waits", "z"])

    assert [*map(shares, found)] == [(0.75, 0.25, 0.6), (0.25, 0.75, 0.2), (0, 0, 0.2), (0, 0, None)]


@pytest.mark.parametrize("back", [0, 1])
def test_of_very_many_clients_some_stand_for_all(redis, broker, readers, back, rtq):
    queued_job(broker, client="x")
    count_runs(redis, broker, 0, x=(1, 1))
    count_runs(redis, broker, back, x=(1, 1), **{f"client{number}": (1, 1) for number in range(1999)})
    rtq.queues[QUEUE].limit_clients(weight=2)

    (found,) = readers.clients.get("x", [QUEUE])

    assert found.fair > 1 / 2010
    assert back == 1 or found.fair == pytest.approx(1 / 2000, rel=0.02)


def test_many_clients_are_read_in_parts(broker, readers):
    names = [f"client{number}" for number in range(1001)]
    queued_job(broker, client=names[-1])

    _, found = readers.clients.in_queue(QUEUE, names)

    assert [each.client for each in found] == names
    assert [each.queued for each in found[-2:]] == [0, 1]


def test_nothing_is_written_where_many_clients_have_limits(redis, broker, readers):
    limits = broker.keys.of(QUEUE).limits
    for number in range(5):
        queued_job(broker, client=f"c{number}")
    redis.hset(limits, mapping={f"client:c{number}": "max_running=1" for number in range(40)})  # as Redis loads it
    before = redis.object("encoding", limits)

    _, found = readers.clients.in_queue(QUEUE, [f"c{number}" for number in range(5)])

    assert {one.in_force["max_running"].value for one in found} == {1}
    assert redis.object("encoding", limits) == before


def test_of_a_queue_those_are_chosen_with_most_jobs_and_then_those_that_ran_longest(redis, broker, readers):
    for client in "xyyyz":
        queued_job(broker, client=client)
    queued_job(broker, client="x", priority=5)
    count_runs(redis, broker, 0, x=(10, 1), a=(30, 3))

    found = readers.clients.busiest(QUEUE)

    assert [(one.client, one.queued, one.starts) for one in found] == [
        *(("y", 3, 0), ("x", 2, 0.25), ("z", 1, 0), ("a", 0, 0.75))
    ]
    assert readers.clients.busiest("never") == []


def test_of_very_many_lanes_those_are_searched_that_wait_longest(redis, broker, readers, monkeypatch):
    monkeypatch.setattr(clients, "MAX_LANES", 2)
    for client in "xyz":
        queued_job(broker, client=client)
        redis.zadd(broker.keys.of(QUEUE).lanes, {f"0:{client}": 1000 * (ord(client) - ord("x"))})

    assert sorted(one.client for one in readers.clients.busiest(QUEUE)) == ["x", "y"]

"""What the function `limits_of` said of clients."""

import pytest

from django_rtq.broker.limits import IDLE_MS
from tests.broker.test_apply_settings import started_worker
from tests.support.jobs import QUEUE, WORKER, claim, new_job, queued_job
from tests.support.snapshots import snapshot


def of(limits, client="x"):
    return {name: limit.value for name, limit in limits.read(QUEUE).clients[client].limits.items()}


def make_old(broker, *clients, ms=IDLE_MS):
    """As if they had been asked for so long ago."""
    broker.redis.execute([("ZINCRBY", broker.keys.of(QUEUE).asked_limits, -ms - 1, client) for client in clients])


def test_it_stores_limits_and_their_source(broker, limits):
    broker.limits.keep(QUEUE, {"x": {"max_running": 2, "rate": "10/s", "weight": 5, "max_waiting": None}, "y": {}})

    (client,) = limits.read(QUEUE).clients.values()
    assert of(limits) == {"max_running": 2, "rate": "10/s", "weight": 5, "max_waiting": None}
    assert all(limit.is_from_function and not limit.is_from_settings for limit in client.limits.values())
    assert broker.limits.seconds_left(QUEUE, ["x", "y", "z"])[2] == 0.0
    assert all(50 < seconds <= 60 for seconds in broker.limits.seconds_left(QUEUE, ["x", "y"]))


def test_sent_twice_it_changes_nothing(broker, redis):
    said = {"x": {"max_running": 2, "weight": 5}}
    broker.limits.keep(QUEUE, said)
    before = snapshot(redis, times=False)

    broker.limits.keep(QUEUE, said)

    assert snapshot(redis, times=False) == before


def test_what_was_set_at_run_time_wins_and_settings_come_last(broker, limits):
    options = {"client": {"max_running": 1, "rate": "1/s", "max_waiting": 1, "burst": 1, "weight": 2}}
    options["clients"] = {"x": {"max_running": 2, "rate": "2/s", "max_waiting": 2, "burst": 2}}
    options["limits_of"] = "shop.tenants.limits"
    started_worker(broker, **options)
    limits.set_client(QUEUE, "x", max_running=4)

    broker.limits.keep(QUEUE, {"x": {"max_running": 3, "rate": "3/s", "max_waiting": 3}})

    assert of(limits) == {"max_running": 4, "rate": "3/s", "max_waiting": 3, "burst": 2}
    found = limits.read(QUEUE).clients["x"].limits
    assert [name for name, limit in found.items() if limit.is_set_here] == ["max_running"]
    assert [name for name, limit in found.items() if limit.is_from_function] == ["rate", "max_waiting"]
    assert [name for name, limit in found.items() if limit.is_from_settings] == ["burst"]
    limits.set_client(QUEUE, "x", max_running="settings")
    assert of(limits)["max_running"] == 3


def test_claims_keep_to_it_and_go_on_when_it_is_raised(broker):
    broker.limits.keep(QUEUE, {"x": {"max_running": 1}})
    broker.enqueue(QUEUE, [new_job(client="x") for _ in range(3)])
    broker.sign_on([QUEUE], WORKER)
    assert len(claim(broker, 3, worker=WORKER)) == 1
    assert claim(broker, 3, worker=WORKER) == []

    broker.limits.keep(QUEUE, {"x": {"max_running": 2}})

    assert len(claim(broker, 3, worker=WORKER)) == 1
    broker.limits.keep(QUEUE, {"x": {}})
    assert len(claim(broker, 3, worker=WORKER)) == 1


def test_clients_that_nobody_meets_are_forgotten(broker, redis):
    broker.limits.keep(QUEUE, {str(number): {"max_running": 2} for number in range(5)})
    make_old(broker, *map(str, range(5)))

    broker.limits.keep(QUEUE, {"x": {}})

    assert set(snapshot(redis)) == {"rtq:queues", "asked_limits"} & set(snapshot(redis))
    assert redis.zrange("{rtq:default}:asked_limits", 0, -1) == [b"x"]


@pytest.mark.parametrize("state", ["queued", "scheduled", "running"])
def test_a_client_with_jobs_is_not_forgotten(broker, limits, state):
    broker.limits.keep(QUEUE, {"x": {"max_running": 2}})
    queued_job(broker, client="x", due="+60000" if state == "scheduled" else "")
    broker.sign_on([QUEUE], WORKER)
    if state == "running":
        assert claim(broker, worker=WORKER)
    make_old(broker, "x")

    broker.limits.keep(QUEUE, {"y": {}})

    assert of(limits) == {"max_running": 2}


def test_more_clients_than_one_call_takes(broker, limits):
    broker.limits.keep(QUEUE, {str(number): {"max_running": 2} for number in range(250)})

    assert len(limits.read(QUEUE).clients) == 250


def test_workers_without_the_function_remove_what_it_said(broker, redis):
    broker.limits.keep(QUEUE, {"x": {"max_running": 2}})
    started_worker(broker, limits_of="shop.tenants.limits")
    assert redis.exists("{rtq:default}:limits", "{rtq:default}:asked_limits") == 2

    started_worker(broker)

    assert not redis.exists("{rtq:default}:limits", "{rtq:default}:limit_sources", "{rtq:default}:asked_limits")

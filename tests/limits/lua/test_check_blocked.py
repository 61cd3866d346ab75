"""Clients that are blocked go on when they may."""

from django_rtq.core.broker.scripts import SCRIPTS
from tests.support.jobs import QUEUE, claim, queued_job
from tests.support.snapshots import snapshot


def check(broker, *clients):
    return broker.redis.execute_one(SCRIPTS["check_blocked"].call(broker.keys.of(QUEUE), clients))


def test_who_may_go_on_takes_turns_again(redis, broker, rtq):
    rtq.queues[QUEUE].limit_clients(max_running=0)
    x, y = queued_job(broker, client="x"), queued_job(broker, client="y")
    assert claim(broker, 5) == []
    redis.hset("{rtq:default}:limits", "client:x", "max_running=none")

    assert check(broker, "x", "y", "nobody") == 1

    assert claim(broker, 5) == [x.id]
    assert snapshot(redis)["blocked"] == {"y": "0"}
    assert y.id in snapshot(redis)["jobs"]


def test_the_second_time_changes_nothing(redis, broker, rtq):
    rtq.queues[QUEUE].limit_clients(max_running=0)
    queued_job(broker, client="x")
    claim(broker, 5)
    before = snapshot(redis)

    assert check(broker, "x") == check(broker, "x") == 1

    assert snapshot(redis) == before

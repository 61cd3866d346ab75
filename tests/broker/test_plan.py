"""The plan: what people made and switched, as schedulers read it."""

import pytest

from django_rtq.broker.schedule_store import StoredSchedules
from django_rtq.exceptions import BrokerFull
from tests.support.jobs import QUEUE
from tests.support.snapshots import snapshot

ROW = {"task": "shop.tasks.report", "args": [[], {}, "ü"], "every": 0.5}


def test_nobody_has_planned_anything(broker):
    assert broker.plan.read() == StoredSchedules()
    assert broker.plan.latest == b""


def test_rows_are_as_they_were_put(broker):
    broker.plan.change({"a": ROW, "row:b": ROW})
    broker.plan.change({"a": None})
    broker.plan.switch("a", on=False)
    broker.plan.switch("switch:c", on=True)

    state = broker.plan.read()

    assert state.rows == {"row:b": ROW}
    assert state.switches["a"] == "off"
    assert state.switches["switch:c"].startswith("on ")


def test_each_change_has_a_version_that_travels_with_what_schedulers_ask(broker):
    seen = []
    for change in (
        lambda: broker.plan.change({"a": ROW}),
        lambda: broker.plan.change({"a": ROW}),
        lambda: broker.plan.change({"a": None}),
        lambda: broker.plan.switch("b", on=False),
    ):
        change()
        version = broker.plan.read().version
        for ask in (
            lambda: broker.tend([QUEUE]),
            lambda: broker.schedules([QUEUE]),
            lambda: broker.heartbeat([QUEUE], {}, {QUEUE: 0}, promote=True),
        ):
            broker.plan.notice(b"old")
            ask()
            assert broker.plan.latest == version
        seen.append(version)

    assert len(set(seen)) == 4


def test_a_switch_that_was_on_again_is_another_one(broker):
    broker.plan.switch("a", on=True)
    before = broker.plan.read().switches["a"]
    broker.plan.switch("a", on=True)

    assert broker.plan.read().switches["a"] != before


def test_what_redis_has_lost_is_put_back_as_it_was(redis, broker):
    broker.plan.change({"a": ROW, "b": ROW})
    broker.plan.switch("c", on=False)
    before = broker.plan.read()
    redis.flushall()

    broker.plan.restore(before)
    broker.plan.restore(before)  # others had noticed too

    assert broker.plan.read() == before


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_lost_connection_costs_nothing(redis, broker, moment):
    broker.plan.read()
    redis.drop_connection(moment, around=b"HSET")
    broker.plan.change({"a": ROW, "b": None}, wake=["low"])

    assert broker.plan.read().rows == {"a": ROW}
    assert snapshot(redis)["low:due_signal"] == {"due": 0}


def test_a_full_server_refuses_in_words(redis, broker):
    with redis.full_memory(), pytest.raises(BrokerFull):
        broker.plan.change({"a": ROW})

    assert broker.plan.read() == StoredSchedules()


def test_what_is_no_row_is_told_and_not_obeyed(redis, broker):
    redis.hset("rtq:plan", mapping={"row:a": "{", "row:b": "[]", "row:c": "5"})

    assert broker.plan.read().rows == {"a": {}, "b": {}, "c": {}}

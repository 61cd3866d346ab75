"""The plan: what people made and switched, as schedulers read it."""

import pytest

from django_rtq.core.broker.schedule_store import StoredSchedules
from django_rtq.exceptions import BrokerFull
from tests.support.jobs import QUEUE

ROW = {"task": "shop.tasks.report", "args": [[], {}, "ü"], "every": 0.5}


def test_nobody_has_planned_anything(broker):
    assert broker.schedules.read() == StoredSchedules()
    assert broker.schedules.latest_version == b""


def test_rows_are_as_they_were_put(broker):
    broker.schedules.update({"a": ROW, "row:b": ROW})
    broker.schedules.update({"a": None})
    broker.schedules.set_enabled("a", enabled=False)
    broker.schedules.set_enabled("switch:c", enabled=True)

    state = broker.schedules.read()

    assert state.rows == {"row:b": ROW}
    assert state.switches["a"] == "off"
    assert state.switches["switch:c"].startswith("on ")


def test_each_change_has_a_version_that_travels_with_what_schedulers_ask(broker):
    seen = []
    for change in (
        lambda: broker.schedules.update({"a": ROW}),
        lambda: broker.schedules.update({"a": ROW}),
        lambda: broker.schedules.update({"a": None}),
        lambda: broker.schedules.set_enabled("b", enabled=False),
    ):
        change()
        version = broker.schedules.read().version
        for ask in (
            lambda: broker.maintain([QUEUE]),
            lambda: broker.schedules.states([QUEUE]),
            lambda: broker.heartbeat([QUEUE], {}, promote=True),
        ):
            broker.schedules.set_version(b"old")
            ask()
            assert broker.schedules.latest_version == version
        seen.append(version)

    assert len(set(seen)) == 4


def test_a_switch_that_was_on_again_is_another_one(broker):
    broker.schedules.set_enabled("a", enabled=True)
    before = broker.schedules.read().switches["a"]
    broker.schedules.set_enabled("a", enabled=True)

    assert broker.schedules.read().switches["a"] != before


def test_what_redis_has_lost_is_put_back_as_it_was(redis, broker):
    broker.schedules.update({"a": ROW, "b": ROW})
    broker.schedules.set_enabled("c", enabled=False)
    before = broker.schedules.read()
    redis.flushall()

    broker.schedules.restore(before)
    broker.schedules.restore(before)  # others had noticed too

    assert broker.schedules.read() == before


def test_a_full_server_refuses_in_words(redis, broker):
    with redis.full_memory(), pytest.raises(BrokerFull):
        broker.schedules.update({"a": ROW})

    assert broker.schedules.read() == StoredSchedules()


def test_what_is_no_row_is_told_and_not_obeyed(redis, broker):
    redis.hset("rtq:plan", mapping={"row:a": "{", "row:b": "[]", "row:c": "5"})

    assert broker.schedules.read().rows == {"a": {}, "b": {}, "c": {}}

"""A workflow that is over is deleted."""

import pytest

from tests.support.jobs import QUEUE
from tests.support.server_clock import server_ms
from tests.support.snapshots import snapshot
from tests.support.workflows import FLOW, begun_flow, claim_members, end, new_flow


def test_nothing_of_it_is_left(redis, broker):
    begun_flow(broker, {"keep": True, "next": "1"}, {"after": "0"}, key="flow\nmay")
    for _ in range(2):
        end(broker, "ack", *claim_members(broker))
    before = snapshot(redis).keys()

    assert broker.workflows.forget(FLOW, latest_ms=server_ms(redis)) == "forgotten"

    gone = before - snapshot(redis).keys()
    assert {name.partition(":")[0] for name in gone} == {
        *(
            "workflow",
            "workflows",
            "workflow_states",
            "workflow_keys",
            "workflow_steps",
            "members",
            "step_results",
            "workflow_signal",
        ),
    }
    assert broker.workflows.forget(FLOW, latest_ms=server_ms(redis)) == "missing"


@pytest.mark.parametrize("verb", [None, "bury"])
def test_one_that_is_not_over_stays(redis, broker, verb):
    begun_flow(broker, {})
    if verb:
        end(broker, verb, *claim_members(broker))
    before = snapshot(redis)

    assert broker.workflows.forget(FLOW, latest_ms=server_ms(redis)) == "open"

    assert snapshot(redis) == before


def test_one_that_ended_just_now_stays(redis, broker):
    begun_flow(broker, {})
    broker.workflows.cancel(FLOW)

    assert broker.workflows.forget(FLOW, latest_ms=server_ms(redis) - 60_000) == "open"


def test_one_in_which_something_happened_then_is_forgotten(redis, broker):
    begun_flow(broker, {})
    broker.workflows.cancel(FLOW)
    redis.zadd(broker.keys.of(QUEUE).workflows, {FLOW: 5})

    assert broker.workflows.forget(FLOW, latest_ms=4) == "open"
    assert broker.workflows.forget(FLOW, latest_ms=5) == "forgotten"


def test_old_ones_are_forgotten(redis, broker):
    begun_flow(broker, {})
    broker.workflows.cancel(FLOW)
    keys = broker.keys.of(QUEUE)
    redis.zadd(keys.workflows, {FLOW: 1})

    broker.workflows.forget_old()

    assert "workflows" not in snapshot(redis)


def test_one_that_was_never_whole_is_forgotten_after_a_minute(redis, broker):
    flow, keys = new_flow({}), broker.keys.of(QUEUE)
    redis.hset(keys.workflow + FLOW.encode(), mapping={"state": "making", "token": "x"})
    redis.zadd(keys.unstarted, {FLOW: server_ms(redis) - 10_000})
    broker.workflows.sweep([QUEUE])
    assert "unstarted" in snapshot(redis)
    redis.zadd(keys.unstarted, {FLOW: server_ms(redis) - 61_000})

    broker.workflows.sweep([QUEUE])

    assert not {"unstarted", f"workflow:{FLOW}"} & snapshot(redis).keys()
    assert broker.workflows.store(flow)[0] == "ok"


def test_of_one_that_is_gone_no_list_knows(redis, broker):
    keys = broker.keys.of(QUEUE)
    redis.zadd(keys.workflows, {FLOW: 1, "c" * 12: 1})
    redis.zadd(keys.unstarted, {FLOW: 1, "c" * 12: 1})

    assert broker.workflows.forget(FLOW, latest_ms=2) == "missing"

    assert [redis.zrange(key, 0, -1) for key in (keys.workflows, keys.unstarted)] == [[b"c" * 12]] * 2


def test_a_key_that_another_one_has_stays(redis, broker):
    begun_flow(broker, {}, key="flow\nmay")
    broker.workflows.cancel(FLOW)
    broker.workflows.cancel_members(FLOW)
    broker.workflows.store(new_flow({}, flow_id="c" * 12, key="flow\nmay"))

    assert broker.workflows.forget(FLOW, latest_ms=server_ms(redis)) == "forgotten"

    assert snapshot(redis)["workflow_keys"] == {"flow\nmay": "c" * 12}
    assert "unstarted" in snapshot(redis)  # the other one

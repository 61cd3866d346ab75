"""A workflow that is over is deleted."""

import pytest

from django_rtq.workflows import store as workflows
from django_rtq.workflows import workflow_store
from django_rtq.workflows.store import STATES
from tests.support.jobs import QUEUE
from tests.support.snapshots import snapshot
from tests.support.waiting import server_ms
from tests.support.workflows import FLOW, begun_flow, claim_members, end, new_flow


def test_nothing_of_it_is_left(redis, broker):
    begun_flow(broker, {"keep": True, "next": "1"}, {"after": "0"}, key="flow\nmay")
    for _ in range(2):
        end(broker, "ack", *claim_members(broker))
    redis.zadd(broker.keys.of(QUEUE).stuck_workflows, {f"{FLOW} flow": 1})
    before = snapshot(redis).keys()

    assert workflow_store(broker).forget(FLOW, latest_ms=server_ms(redis)) == "forgotten"

    gone = before - snapshot(redis).keys()
    assert {name.partition(":")[0] for name in gone} == {
        *(
            "workflow",
            "workflows",
            "workflow_states",
            "stuck_workflows",
            "workflow_keys",
            "workflow_steps",
            "members",
            "step_results",
            "workflow_signal",
        ),
    }
    assert workflow_store(broker).forget(FLOW, latest_ms=server_ms(redis)) == "missing"


@pytest.mark.parametrize("verb", [None, "bury"])
def test_one_that_is_not_over_stays(redis, broker, verb):
    begun_flow(broker, {})
    if verb:
        end(broker, verb, *claim_members(broker))
    before = snapshot(redis)

    assert workflow_store(broker).forget(FLOW, latest_ms=server_ms(redis)) == "open"

    assert snapshot(redis) == before


def test_one_that_ended_just_now_stays(redis, broker):
    begun_flow(broker, {})
    workflow_store(broker).cancel(FLOW)

    assert workflow_store(broker).forget(FLOW, latest_ms=server_ms(redis) - 60_000) == "open"


def test_its_end_counts_and_not_what_happened_later(redis, broker):
    begun_flow(broker, {})
    workflow_store(broker).cancel(FLOW)
    redis.hset(broker.keys.of(QUEUE).workflow + FLOW.encode(), "ended", 5)

    assert workflow_store(broker).forget(FLOW, latest_ms=4) == "open"
    assert workflow_store(broker).forget(FLOW, latest_ms=5) == "forgotten"


def ended_flows(redis, broker, number, *, ended_ms=1, state="succeeded"):
    """So many workflows that are over since then."""
    keys = broker.keys.of(QUEUE)
    for flow in (f"{number:012x}" for number in range(number)):
        redis.hset(
            keys.workflow + flow.encode(),
            mapping={"state": state, "steps": 0, "name": "many", "ended": ended_ms},
        )
        redis.zadd(keys.workflows, {flow: ended_ms})
        redis.zadd(keys.workflow_states, {f"{flow} many": STATES.index(state) * workflows.STATE_PLACE + ended_ms})


def kept_flows(redis, broker):
    keys = broker.keys.of(QUEUE)
    return redis.zcard(keys.workflows), redis.zcard(keys.workflow_states), len(redis.keys(keys.workflow + b"*"))


@pytest.mark.parametrize("state", ["succeeded", "failed", "cancelled"])
def test_those_that_ended_long_ago_are_forgotten_until_none_is_left(redis, broker, state):
    ended_flows(redis, broker, 250, state=state)
    begun_flow(broker, {})
    redis.zadd(broker.keys.of(QUEUE).workflows, {FLOW: 1})  # open, and nothing happened in it for long

    assert [workflow_store(broker).forget_old() for _ in range(3)] == [False, False, True]

    assert kept_flows(redis, broker) == (1, 1, 1)


def test_of_too_many_those_go_that_ended_first(redis, broker, monkeypatch):
    monkeypatch.setattr(workflows, "MOST_WORKFLOWS", 3)
    now, keys = server_ms(redis), broker.keys.of(QUEUE)
    ended_flows(redis, broker, 5, ended_ms=now)
    redis.zincrby(keys.workflow_states, -1, f"{4:012x} many")
    redis.zadd(keys.workflow_states, {f"{3:012x} many": 3 * workflows.STATE_PLACE + now - 2})  # failed, before
    for number in (3, 4):
        redis.hset(keys.workflow + f"{number:012x}".encode(), "ended", now - 2)

    assert workflow_store(broker).forget_old()

    assert sorted(redis.zrange(keys.workflows, 0, -1)) == [f"{number:012x}".encode() for number in range(3)]


def test_what_names_no_workflow_leaves_the_index(redis, broker):
    states = broker.keys.of(QUEUE).workflow_states
    redis.zadd(states, {"garbage": 2 * workflows.STATE_PLACE, "": 4 * workflows.STATE_PLACE})

    workflow_store(broker).forget_old()

    assert not redis.exists(states)


def test_a_broken_one_keeps_none_of_the_others(redis, broker, keys, monkeypatch, caplog):
    monkeypatch.setattr(workflows, "FORGOTTEN_AT_ONCE", 2)
    workflows._log_broken.cache_clear()
    ended_flows(redis, broker, 6)
    for number in range(2):
        redis.delete(keys.workflow + f"{number:012x}".encode())
        redis.set(keys.workflow + f"{number:012x}".encode(), "garbage")
    redis.hset(keys.workflow + f"{2:012x}".encode(), "state", "running")  # its index says something else
    redis.zadd(keys.workflow_states, {"garbage": 2 * workflows.STATE_PLACE, "": 4 * workflows.STATE_PLACE})

    store = workflow_store(broker)
    assert [store.forget_old() for _ in range(5)] == [False] * 4 + [True]

    assert kept_flows(redis, broker) == (3, 3, 3)
    assert caplog.text.count("is broken") == 2


def test_one_that_was_never_whole_is_forgotten_after_a_minute(redis, broker):
    flow, keys = new_flow({}), broker.keys.of(QUEUE)
    redis.hset(keys.workflow + FLOW.encode(), mapping={"state": "making", "token": "x"})
    redis.zadd(keys.unstarted, {FLOW: server_ms(redis) - 10_000})
    workflow_store(broker).sweep([QUEUE])
    assert "unstarted" in snapshot(redis)
    redis.zadd(keys.unstarted, {FLOW: server_ms(redis) - 61_000})

    workflow_store(broker).sweep([QUEUE])

    assert not {"unstarted", f"workflow:{FLOW}"} & snapshot(redis).keys()
    assert workflow_store(broker).store(flow)[0] == "ok"


def test_of_one_that_is_gone_no_list_knows(redis, broker, keys):
    redis.zadd(keys.workflows, {FLOW: 1, "c" * 12: 1})
    redis.zadd(keys.unstarted, {FLOW: 1, "c" * 12: 1})

    assert workflow_store(broker).forget(FLOW, latest_ms=2) == "missing"

    assert [redis.zrange(key, 0, -1) for key in (keys.workflows, keys.unstarted)] == [[b"c" * 12]] * 2


def test_a_key_that_another_one_has_stays(redis, broker):
    begun_flow(broker, {}, key="flow\nmay")
    workflow_store(broker).cancel(FLOW)
    workflow_store(broker).cancel_members(FLOW)
    workflow_store(broker).store(new_flow({}, flow_id="c" * 12, key="flow\nmay"))

    assert workflow_store(broker).forget(FLOW, latest_ms=server_ms(redis)) == "forgotten"

    assert snapshot(redis)["workflow_keys"] == {"flow\nmay": "c" * 12}
    assert "unstarted" in snapshot(redis)  # the other one

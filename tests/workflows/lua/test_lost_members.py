"""Running workflows are compared with their jobs: what ended unheard is heard of, and what cannot be known is told."""

import logging

import pytest

from django_rtq.console.reading.overview import workflow_states
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.workflows import workflow_store
from tests.support.console_steps import requeue_elsewhere
from tests.support.jobs import QUEUE, WORKER, lose_record
from tests.support.snapshots import live_jobs, snapshot
from tests.support.waiting import server_ms
from tests.support.workflows import FLOW, begun_flow, claim_members, claimed_flow, end, fields_of, new_flow, states_of

CHAIN = ({"size": 2, "next": "1"}, {"after": "0"})
OUTCOME = '{"state":"succeeded","task":"t","result":7}'


def compare(redis, broker, *flows, quiet_leases=5, store=None):
    """Compare, after so many leases in which nothing has happened in these workflows."""
    quiet_ms = quiet_leases * broker.config.lease_seconds * 1000
    redis.zadd(broker.keys.of(QUEUE).workflows, dict.fromkeys(flows or [FLOW], server_ms(redis) - quiet_ms))
    (store or workflow_store(broker)).compare()


def settle_as_old_worker(broker, state, *members, outcome=OUTCOME, keep_ms=60_000):
    """A worker that knows no workflows settles them as any other jobs."""
    verb = "ack" if state == "succeeded" else "finish_cancel"
    rows = [text for member in members for text in (verb, member.id, keep_ms, outcome, 1)]
    call = SCRIPTS["settle"].call(broker.keys.of(QUEUE), (1000, *rows), worker=WORKER)
    assert broker.redis.execute_one(call) == []


def stuck(broker):
    return [flow.id for flow in broker.redis.run(workflow_states(broker)).stuck]


@pytest.mark.parametrize("keep", [False, True])
def test_members_that_have_succeeded_unheard_are_heard_of(redis, broker, keep):
    begun_flow(broker, {"size": 2, "next": "1", "keep": keep}, {"after": "0"})
    settle_as_old_worker(broker, "succeeded", *claim_members(broker))
    workflow_store(broker).sweep([QUEUE])
    assert states_of(broker) == ["started", "waiting"]

    compare(redis, broker)

    assert states_of(broker) == ["succeeded", "started"]
    assert workflow_store(broker).outcomes(FLOW, [0, 1]) == ([OUTCOME.encode()] * 2 if keep else [None] * 2)
    assert len(live_jobs(redis)) == 1
    end(broker, "ack", *claim_members(broker))
    compare(redis, broker)
    assert fields_of(broker)["state"] == "succeeded"
    assert stuck(broker) == []


@pytest.mark.parametrize("state", ["cancelled", "expired"])
def test_members_that_have_failed_unheard_are_heard_of(redis, broker, state):
    begun_flow(broker, *CHAIN)
    settle_as_old_worker(broker, state, *claim_members(broker), outcome=f'{{"state":"{state}"}}')
    redis.delete(broker.keys.of(QUEUE).ended_members)

    compare(redis, broker)

    assert states_of(broker) == ["failed", "skipped"]
    assert fields_of(broker)["ends:0"] == "0 0 2"


@pytest.mark.parametrize("lost", ["result", "all"])
def test_of_which_nobody_knows_how_they_ended_the_workflow_is_stuck(redis, broker, caplog, lost):
    first, second = claimed_flow(broker, {"size": 2, "next": "1", "keep": True}, {"after": "0"})
    end(broker, "ack", second)
    if lost == "result":
        settle_as_old_worker(broker, "succeeded", first, outcome="")
    else:
        lose_record(broker, first)
        redis.delete(broker.keys.of(QUEUE).running(WORKER))

    with caplog.at_level(logging.ERROR, "django_rtq"):
        compare(redis, broker)
        compare(redis, broker)

    assert caplog.text.count(f"workflow {FLOW} (flow) is stuck") == 1
    assert stuck(broker) == [FLOW]
    assert states_of(broker) == ["started", "waiting"]
    workflow_store(broker).cancel(FLOW)
    compare(redis, broker)
    assert stuck(broker) == []


def test_one_that_is_heard_of_after_all_is_stuck_no_more(redis, broker):
    first, _ = claimed_flow(broker, *CHAIN)
    redis.hdel(broker.keys.of(QUEUE).jobs, first.id)
    compare(redis, broker)
    assert stuck(broker) == [FLOW]

    redis.hset(broker.keys.of(QUEUE).jobs, first.id, "0 3 1 0 \n{}")
    compare(redis, broker, quiet_leases=0)

    assert stuck(broker) == []


def test_one_without_any_job_is_stuck(redis, broker):
    """Its next step never started."""
    begun_flow(broker, *CHAIN)
    end(broker, "ack", *claim_members(broker))
    lose_record(broker, *claim_members(broker))
    redis.hset(broker.keys.of(QUEUE).workflow + FLOW.encode(), "state:1", "waiting")
    redis.hdel(broker.keys.of(QUEUE).workflow + FLOW.encode(), "at:1:0")

    compare(redis, broker)

    assert stuck(broker) == [FLOW]


def test_parts_whose_workflow_is_forgotten_by_heartbeats_start(redis, broker):
    workflow_store(broker).store(new_flow({"size": 2}))
    redis.delete(broker.keys.of(QUEUE).unstarted)

    compare(redis, broker)

    assert len(live_jobs(redis)) == 2
    compare(redis, broker)
    assert stuck(broker) == []


def live_members(broker):
    """Members that are queued, delayed, running, dead, and in another queue."""
    begun_flow(broker, {"size": 1}, {"size": 3}, {"size": 1, "due": "+60000"}, on_dead="go_on")
    _, *dead = claim_members(broker, 3)
    end(broker, "bury", *dead)
    requeue_elsewhere(broker, dead[:1], "low")


def test_of_live_members_nothing_is_noted(redis, broker):
    live_members(broker)
    workflow_store(broker).sweep([QUEUE, "low"])
    before = snapshot(redis)

    compare(redis, broker)

    assert {name for name in before if snapshot(redis)[name] != before[name]} <= {"workflows"}
    assert stuck(broker) == []


def test_what_is_noted_is_left_to_the_sweep(redis, broker):
    begun_flow(broker, *CHAIN)
    settle_as_old_worker(broker, "cancelled", *claim_members(broker), outcome='{"state":"cancelled"}')
    noted = snapshot(redis).get("ended_members")

    compare(redis, broker, quiet_leases=3)

    assert snapshot(redis).get("ended_members") == noted


def test_all_are_compared_some_at_a_time(redis, broker, monkeypatch):
    flows = [f"{number:012x}" for number in range(25)]
    for flow in flows:
        begun_flow(broker, {}, flow_id=flow)
    redis.delete(broker.keys.of(QUEUE).jobs)

    store = workflow_store(broker)
    compare(redis, broker, *flows, store=store)
    assert len(stuck(broker)) == 20
    compare(redis, broker, *flows, store=store)
    assert len(stuck(broker)) == 25


def test_a_broken_one_stops_no_other(redis, broker):
    begun_flow(broker, {}, flow_id="a" * 12)
    redis.hdel(broker.keys.of(QUEUE).workflow + b"a" * 12, "size:0")
    begun_flow(broker, *CHAIN)
    settle_as_old_worker(broker, "succeeded", *claim_members(broker)[1:])

    compare(redis, broker, "a" * 12, FLOW)

    assert states_of(broker) == ["succeeded", "started"]

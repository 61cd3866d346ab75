"""The log of a workflow ends after any of its commands. Then it ends all the same, and each step has started once."""

import pytest

from django_rtq.workflows import workflow_store
from tests.protocol.test_torn_log import copy_of, recover, restore, writes_of
from tests.support.jobs import QUEUE, settlement
from tests.support.nightly import IS_NIGHTLY
from tests.support.snapshots import live_jobs, snapshot
from tests.support.workflows import FLOW, claim_members, fields_of, new_flow

pytestmark = pytest.mark.long

SIZE = 5
STEPS = (
    {"size": SIZE, "next": "1", "keep": True},
    {"size": SIZE, "after": "0", "next": "2"},
    {"size": SIZE, "after": "1"},
)
ALL = {f"{number:06x}" for number in range(SIZE * len(STEPS))}


def make(broker):
    workflow_store(broker).start(workflow_store(broker).store(new_flow(*STEPS))[2])


def work(broker, worker, *, ran):
    """Run what is there, two jobs at a time, until nothing is left. One dies first, and is requeued."""
    while members := claim_members(broker, 2, worker=worker):
        for member in members:
            ran.setdefault(member.id[-6:], set()).add(member.id)
        is_bad = any(member.id.endswith("6") for member in members) and "dead" not in ran
        verb = "bury" if is_bad else "ack"
        broker.settle(worker, QUEUE, settlement(verb, *members, outcome='{"result":1}'))
        if verb == "bury":
            ran["dead"] = {member.id for member in members}


def requeue_dead(broker, readers):
    dead = [job_id.decode() for job_id in broker.redis.execute_one(("ZRANGE", broker.keys.of(QUEUE).dead, 0, -1))]
    readers.actions.done("requeue", QUEUE, dead)


def live_once(broker, readers, worker, ran):
    for _ in range(2):
        work(broker, worker, ran=ran)
        requeue_dead(broker, readers)
    work(broker, worker, ran=ran)


def go_on(redis, broker):
    """What the next heartbeats do."""
    recover(broker)
    for _ in range(2):
        unstarted = broker.keys.of(QUEUE).unstarted
        for flow in redis.zrange(unstarted, 0, -1):
            redis.zadd(unstarted, {flow: 1})
        workflow_store(broker).sweep([QUEUE])


@pytest.mark.parametrize("third", range(3))
def test_it_ends_after_any_prefix_of_its_log(redis, broker, readers, third):
    copy, before = copy_of(redis), {}
    writes = writes_of(redis, lambda: (make(broker), live_once(broker, readers, "w1", before)))
    assert fields_of(broker)["state"] == "succeeded"
    assert before.keys() == {*ALL, "dead"}
    assert len(writes) > 150

    for kept in range(third, len(writes) + 1, 3 if IS_NIGHTLY else 9):
        restore(redis, copy, writes[:kept])
        go_on(redis, broker)
        ran = {}
        live_once(broker, readers, f"v{kept}", ran)
        go_on(redis, broker)
        live_once(broker, readers, f"v{kept}", ran)

        if not fields_of(broker):
            assert live_jobs(redis) == {}, kept  # it was never whole
            continue
        assert (fields_of(broker)["state"], kept) == ("succeeded", kept)
        assert {number: ids for number, ids in ran.items() if number != "dead" and len(ids) > 1} == {}, kept
        finished = {job_id[-6:] for job_id in snapshot(redis)["finished"]}
        assert finished == ALL, kept

        assert redis.hlen(broker.keys.of(QUEUE).step_results + FLOW.encode()) == SIZE

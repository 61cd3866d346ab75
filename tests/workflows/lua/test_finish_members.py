"""Members of workflows are settled, and their workflows go on, in one call."""

import random
from types import SimpleNamespace

import pytest

from django_rtq import signals
from django_rtq.core.broker import settlement as module
from django_rtq.core.broker.settlement import ACK_MEMBER, AT_ONCE, NOTE_TIME, Settlement
from django_rtq.workflows import workflow_store
from tests.support.jobs import QUEUE, WORKER, claim, queued_job, receiving, settle, settlement
from tests.support.snapshots import changes, live_jobs, snapshot
from tests.support.workflows import FLOW, begun_flow, claim_members, claimed_flow, fields_of, states_of

OTHER = "c" * 12
CHAIN = ({"size": 2, "next": "1"}, {"after": "0"})


def ends_of(broker, step=0):
    return fields_of(broker)[f"ends:{step}"]


def done_bits(redis, broker, step=0):
    return redis.get(broker.keys.of(QUEUE).members + f"{FLOW}:{step}:done".encode())


def test_who_is_settled_is_known_to_the_workflow(redis, broker):
    first, second = claimed_flow(broker, *CHAIN)

    settle(broker, "ack", first)
    assert (states_of(broker), ends_of(broker)) == (["started", "waiting"], "1 0 0")
    settle(broker, "ack", second)

    assert (states_of(broker), ends_of(broker)) == (["succeeded", "started"], "2 0 0")
    after = snapshot(redis)
    assert len(live_jobs(redis)) == 1
    assert f"running:{WORKER}" not in after
    assert "ended_members" not in after


@pytest.mark.parametrize("lost", ["all", "the end"])
def test_whose_added_steps_are_not_whole_is_stale(redis, broker, lost):
    """Redis has lost its last writes. The job stays with the worker, which gives it back; then it adds them again."""
    broker.limits.change(QUEUE, {"run:queue": "max_running=9"})
    other, _ = claimed_flow(broker, *CHAIN, flow_id=OTHER)
    first, second = claimed_flow(broker, *CHAIN)
    hash = broker.keys.of(QUEUE).workflow + FLOW.encode()
    redis.hset(broker.keys.of(QUEUE).workflow + OTHER.encode(), "added:0", "3 2 1 whole")
    if lost == "the end":
        redis.hset(hash, "added:0", "3 2 1 digest")

    assert sorted(settle(broker, "ack", first, other, second, keep_ms=-1 - 60_000)) == [first.id, second.id]
    assert settle(broker, "ack", second) == []
    assert ends_of(broker) == "1 0 0"
    assert redis.hexists(broker.keys.of(QUEUE).running(WORKER), first.id)
    assert redis.hget(broker.keys.of(QUEUE).running_counts, "queue") == b"2"

    redis.hset(hash, "added:0", "3 2 1 whole")
    assert settle(broker, "ack", first, keep_ms=-1 - 60_000) == []
    assert ends_of(broker) == "2 0 0"
    assert redis.hget(broker.keys.of(QUEUE).results, first.id).split(b" ")[1] == b"60000"


@pytest.mark.parametrize("is_gone", [True, False])
def test_whose_workflow_is_over_has_nothing_to_add(redis, broker, is_gone):
    (member,) = claimed_flow(broker, {})
    workflow_store(broker).cancel(FLOW)
    if is_gone:
        redis.delete(broker.keys.of(QUEUE).workflow + FLOW.encode())

    assert settle(broker, "ack", member, keep_ms=-1 - 60_000) == []


def test_how_long_they_ran_is_noted_before(broker):
    """It is noted where it is held that they run, which settling ends."""
    (member,) = claimed_flow(broker, {"size": 1})
    done = settlement("ack", member)
    done.add_time(member.id, 0.5)

    calls = done.commands(*[broker.keys.of(QUEUE)] * 2, WORKER, broker.config)

    assert [sent[0].verb for sent, _ in calls] == [NOTE_TIME, ACK_MEMBER]


def test_of_jobs_that_it_does_not_hold_nothing_is_known(redis, broker):
    begun_flow(broker, *CHAIN)
    mine, other = claim_members(broker, 1), claim_members(broker, 1, worker="w2")
    before = snapshot(redis, times=False)

    assert settle(broker, "ack", *other) == [other[0].id]
    assert changes(before, snapshot(redis, times=False)) == {}

    assert settle(broker, "ack", *other, *mine) == [other[0].id]
    assert ends_of(broker) == "1 0 0"


def test_jobs_of_a_workflow_that_is_gone_are_settled_all_the_same(redis, broker):
    members = claimed_flow(broker, {"size": 2})
    redis.delete(broker.keys.of(QUEUE).workflow + FLOW.encode())

    assert settle(broker, "ack", *members) == []

    assert live_jobs(redis) == {}
    assert not [name for name in snapshot(redis) if name.startswith(("members", "ended_members"))]


def test_members_of_another_queue_than_that_of_the_workflow(redis, broker):
    begun_flow(broker, {"queue": "low", "next": "1"}, {"after": "0"})
    (member,) = claim_members(broker, queue="low")

    assert broker.settle(WORKER, "low", settlement("ack", member)) == []

    assert states_of(broker) == ["succeeded", "started"]
    after = snapshot(redis)
    assert not [name for name in after if name.startswith(("low:members", "low:workflow"))]
    assert f"low:running:{WORKER}" not in after


@pytest.mark.parametrize("size", [1, 7, 8, 9, 64, 130])
def test_each_has_its_bit_whatever_the_order(redis, broker, size):
    begun_flow(broker, {"size": 3}, {"size": size})
    members = claim_members(broker, 3 + size)
    random.Random(size).shuffle(members)
    some = len(members) // 2

    settle(broker, "ack", *members[:some])
    half = {int(member.id[-6:], 16) - 3 for member in members[:some]} - {-1, -2, -3}
    assert bits(done_bits(redis, broker, 1)) == half
    settle(broker, "ack", *members[some:])

    assert bits(done_bits(redis, broker, 1)) == set(range(size))
    assert fields_of(broker)["state"] == "succeeded"


def bits(text):
    return {8 * i + place for i, byte in enumerate(text or b"") for place in range(8) if byte & 128 >> place}


def test_what_had_died_has_succeeded_now(redis, broker, readers):
    members = claimed_flow(broker, {"size": 9})
    settle(broker, "bury", *members[:8])
    settle(broker, "ack", members[8])
    assert ends_of(broker) == "1 8 0"
    readers.actions.done("requeue", QUEUE, [member.id for member in members[:5]])

    settle(broker, "ack", *claim_members(broker))

    assert ends_of(broker) == "6 3 0"
    assert fields_of(broker)["state"] == "blocked"


def test_results_are_kept_where_others_take_them(redis, broker):
    members = claimed_flow(broker, {"size": 2, "keep": True}, {"size": 2})

    settle(broker, "ack", *members, outcome='{"result": 7}')

    kept = redis.hgetall(broker.keys.of(QUEUE).step_results + FLOW.encode())
    assert kept == {b"0": b'{"result": 7}', b"1": b'{"result": 7}'}
    assert fields_of(broker)["kept_bytes"] == str(2 * len('{"result": 7}'))


def test_a_workflow_whose_last_job_succeeds_is_over_once(redis, broker, heard_ends):
    members = claimed_flow(broker, {"size": 2})
    settle(broker, "ack", *members)
    settle(broker, "ack", *members)

    assert heard_ends == [FLOW]


@pytest.fixture
def heard_ends():
    heard = []
    with receiving(lambda workflow_id, **_: heard.append(workflow_id), signals.workflow_ended):
        yield heard


# -- several workflows


def flows_of(broker, count, **step):
    flows = [f"{number:012x}" for number in range(1, count + 1)]
    for flow in flows:
        begun_flow(broker, step, flow_id=flow)
    return flows


def test_members_of_several_workflows_and_other_jobs_in_any_order(redis, broker):
    flows = flows_of(broker, 3, size=2)
    flows.append(begun_flow(broker, {"size": 2}, {"size": 2, "keep": True}))
    plain = queued_job(broker)
    claim(broker, wanted=11)
    ids = sorted(live_jobs(redis), key=lambda job_id: job_id[::-1])
    assert (len(ids), plain.id in ids) == (11, True)

    settle(broker, "ack", *[SimpleNamespace(id=job_id) for job_id in ids], worker="w2")

    assert [fields_of(broker, flow)["state"] for flow in flows] == ["succeeded"] * 4


def test_it_tells_of_each_workflow_once(redis, broker):
    """Also if other steps take the results of some of its jobs."""
    begun_flow(broker, {"size": 1, "keep": True}, {"size": 1})
    done = settlement("ack", *claim_members(broker))
    ((_, command),) = done.commands(*[broker.keys.of(QUEUE)] * 2, WORKER, broker.config)

    assert broker.redis.execute_one(command) == [[], FLOW.encode(), [b"ended", b"flow"]]


def test_a_call_is_about_few_workflows_and_jobs(monkeypatch):
    monkeypatch.setattr(module, "WORKFLOWS_AT_ONCE", 2)

    def parts(*workflows):
        done = Settlement()
        for number, flow in enumerate(workflows):
            done.add_ack(f"{0:012x}8{flow:03x}8{0:09x}{number:06x}".encode(), 1, b"")
        return [len(part) for part in module._of_few_workflows(done.reports)]

    assert parts() == []
    assert parts(1, 1, 2, 2) == [4]
    assert parts(1, 2, 1, 3, 3, 1, 2) == [3, 3, 1]
    assert parts(*[1] * (AT_ONCE + 1)) == [AT_ONCE, 1]


def test_a_call_that_is_refused_does_not_hold_up_the_others(redis, broker, monkeypatch):
    monkeypatch.setattr(module, "WORKFLOWS_AT_ONCE", 1)
    first, second = flows_of(broker, 2)
    members = claim_members(broker)
    hash_of_first = broker.keys.of(QUEUE).workflow + first.encode()
    texts = redis.hgetall(hash_of_first)
    redis.delete(hash_of_first)
    redis.set(hash_of_first, "no hash")
    done = {QUEUE: settlement("ack", *members)}

    result = broker.claim(WORKER, (), 0, settlements=done)

    assert result.error is not None
    assert fields_of(broker, second)["state"] == "succeeded"
    redis.delete(hash_of_first)
    redis.hset(hash_of_first, mapping=texts)
    broker.claim(WORKER, (), 0, settlements=done)
    assert fields_of(broker, first)["state"] == "succeeded"
    assert live_jobs(redis) == {}

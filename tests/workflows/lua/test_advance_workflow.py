"""A workflow hears which members have ended, and goes on."""

import pytest
from asgiref.sync import async_to_sync

from django_rtq.console.reading.members import recent_in
from django_rtq.console.reading.readers import readers_of
from django_rtq.core.jobs.job import new_job_id, with_shard
from django_rtq.workflows import store as workflows
from django_rtq.workflows import workflow_store
from django_rtq.workflows.for_core import traces_command
from django_rtq.workflows.store import member_id
from tests.support import sweeps
from tests.support.console_steps import requeue_elsewhere
from tests.support.jobs import QUEUE, settle, settlement
from tests.support.snapshots import live_jobs, snapshot
from tests.support.waiting import server_ms
from tests.support.workflows import (
    FLOW,
    advance,
    begun_flow,
    claim_members,
    claimed_flow,
    end,
    fields_of,
    part,
    states_of,
)

CHAIN = ({"size": 2, "next": "1"}, {"after": "0"})


def ends_of(broker):
    fields = fields_of(broker)
    return [fields[f"ends:{number}"] for number in range(int(fields["steps"]))]


def test_the_next_step_starts_after_the_last_success(redis, broker):
    first, second = claimed_flow(broker, *CHAIN)

    end(broker, "ack", first)
    assert (states_of(broker), ends_of(broker)) == (["started", "waiting"], ["1 0 0", "0 0 0"])

    end(broker, "ack", second)
    assert (states_of(broker), ends_of(broker)) == (["succeeded", "started"], ["2 0 0", "0 0 0"])
    (third,) = claim_members(broker)
    end(broker, "ack", third)
    members = {name: bits for name, bits in snapshot(redis).items() if name.startswith("members:")}
    assert members == {f"members:{FLOW}:0:done": "\\xc0", f"members:{FLOW}:1:done": "\\x80"}
    assert fields_of(broker)["state"] == "succeeded"
    assert "ended_members" not in snapshot(redis)


@pytest.mark.parametrize("verb", ["expire", "finish_cancel"])
def test_what_never_succeeds_fails_it_and_only_ends_are_followed(redis, broker, verb):
    (first,) = claimed_flow(broker, {"next": "1 3e"}, {"after": "0", "next": "2"}, {"after": "1"}, {"after": "0e"})

    end(broker, verb, first)

    assert states_of(broker) == ["failed", "skipped", "skipped", "started"]
    assert fields_of(broker)["state"] == "running"
    (last,) = claim_members(broker)
    end(broker, "ack", last)
    assert fields_of(broker)["state"] == "failed"


def test_a_dead_member_blocks_until_it_is_requeued(redis, broker, readers):
    first, second = claimed_flow(broker, *CHAIN)

    end(broker, "ack", first)
    end(broker, "bury", second)
    assert (fields_of(broker)["state"], ends_of(broker)[0]) == ("blocked", "1 1 0")

    assert readers.actions.done("requeue", QUEUE, [second.id]) == [second.id]
    assert f"members:{FLOW}:0:open" not in snapshot(redis)
    assert (fields_of(broker)["state"], ends_of(broker)[0]) == ("running", "1 0 0")
    (again,) = claim_members(broker)
    end(broker, "ack", again)
    assert states_of(broker) == ["succeeded", "started"]


@pytest.mark.parametrize(("on_dead", "state"), [("cancel", "cancelled"), ("go_on", "failed")])
def test_a_dead_member_need_not_block(redis, broker, on_dead, state):
    (member,) = claimed_flow(broker, {"next": "1"}, {"after": "0"}, on_dead=on_dead)

    end(broker, "bury", member)

    assert fields_of(broker)["state"] == state


def test_the_first_death_starts_a_step_once(redis, broker):
    first, second = claimed_flow(broker, {"size": 2}, {}, on_death=1)

    end(broker, "bury", first)
    (told,) = claim_members(broker)
    end(broker, "bury", second)
    assert claim_members(broker) == []

    end(broker, "bury", told)
    assert (states_of(broker), fields_of(broker)["state"]) == (["started", "started"], "blocked")


@pytest.mark.parametrize(("verb", "state"), [("ack", "succeeded"), ("expire", "failed")])
def test_a_step_for_the_first_death_ends(redis, broker, verb, state):
    begun_flow(broker, {}, {}, on_death=1)
    end(broker, "bury", *claim_members(broker))

    end(broker, verb, *claim_members(broker))

    assert (states_of(broker), fields_of(broker)["state"]) == (["started", state], "blocked")


def test_results_are_kept_where_others_take_them(redis, broker):
    begun_flow(broker, {"keep": True}, {})
    kept, other = sorted(claim_members(broker), key=lambda member: member.id[-6:])

    end(broker, "ack", kept, other, outcome='{"result":1}')

    assert workflow_store(broker).outcomes(FLOW, [0, 1]) == [b'{"result":1}', None]


def test_results_beyond_64_mb_are_told(redis, broker, keys):
    """What has arrived is kept; which jobs send more, their processes know."""
    workflows.full_workflows.clear()  # it may have played before
    first, second, third = claimed_flow(broker, {"keep": True, "size": 3})
    end(broker, "ack", first, outcome='{"result":1}')
    redis.hset(keys.workflow + FLOW.encode(), "kept_bytes", 64_000_000 - 12)
    end(broker, "ack", second, outcome='{"result":2}')
    assert FLOW not in workflows.full_workflows

    settle(broker, "ack", third, outcome='{"result":3}')

    assert fields_of(broker)["state"] == "succeeded"  # its end is more important
    assert fields_of(broker)["kept_bytes"] == "64000012"


def test_of_a_workflow_that_is_full_processes_hear(redis, broker):
    workflows.full_workflows.clear()
    first, _ = claimed_flow(broker, {"keep": True, "size": 2})
    redis.hset(broker.keys.of(QUEUE).workflow + FLOW.encode(), "kept_bytes", 64_000_000)

    settle(broker, "ack", first, outcome='{"result":2}')

    assert workflows.full_workflows == {FLOW}


def test_a_result_that_comes_again_counts_once(redis, broker):
    (member,) = claimed_flow(broker, {"keep": True})
    end(broker, "ack", member, outcome='{"result":1}')
    redis.hset(broker.keys.of(QUEUE).ended_members, member.id, 'done {"result":1}')

    advance(broker, member)

    assert fields_of(broker)["kept_bytes"] == "12"


def test_a_heartbeat_finds_what_nobody_has_told(redis, broker, monkeypatch):
    members = claimed_flow(broker, {"size": 2, "next": "1e"}, {"after": "0e"})
    with monkeypatch.context() as silent:
        silent.setattr(type(workflow_store(broker)), "advance_commands", lambda *args: [])
        settle(broker, "expire", *members)
    assert snapshot(redis)["ended_members"] == dict.fromkeys((member.id for member in members), "gone")
    assert broker.redis.execute_one(traces_command(broker, [QUEUE]))

    workflow_store(broker).sweep([QUEUE])

    assert states_of(broker) == ["failed", "started"]
    assert len(live_jobs(redis)) == 1
    assert not broker.redis.execute_one(traces_command(broker, [QUEUE]))


@pytest.mark.parametrize(("members", "encoding"), [(32, b"listpack"), (33, b"hashtable")])
def test_many_that_end_at_once_are_noted_in_a_hash_table(redis, broker, monkeypatch, members, encoding):
    """Redis would search a list for each of them."""
    begun_flow(broker, {"size": 33})
    ended = claim_members(broker, 33)
    with monkeypatch.context() as silent:
        silent.setattr(type(workflow_store(broker)), "advance_commands", lambda *args: [])
        settle(broker, "expire", *ended[:members])
        noted = redis.object("encoding", broker.keys.of(QUEUE).ended_members)
        settle(broker, "expire", *ended[members:])

    workflow_store(broker).sweep([QUEUE])

    assert noted.replace(b"ziplist", b"listpack") == encoding  # Redis before 7
    assert ends_of(broker) == ["0 0 33"]
    assert not [name for name in snapshot(redis) if name.startswith(("ended_members", "step_results"))]


def test_a_heartbeat_takes_thousands_of_notes(redis, broker):
    """Those that it has taken leave holes in the table of Redis, which a scan from its beginning would meet again."""
    note = {f"{0:012x}8{FLOW[:3]}8{FLOW[3:]}{number:06x}": "gone" for number in range(4000)}
    redis.hset(broker.keys.of(QUEUE).ended_members, mapping=note)

    workflow_store(broker).sweep([QUEUE])

    assert "ended_members" not in snapshot(redis)


def break_flow(redis, keys, flow, how):
    """Let somebody have written garbage."""
    if how == "another type":
        redis.delete(keys.workflow + flow)
        redis.set(keys.workflow + flow, "garbage")
    elif how == "cancelling":
        redis.hset(keys.workflow + flow, mapping={"state": "cancelled", "cancelling": "garbage"})
    elif how == "workflow_steps":
        redis.delete(keys.workflow_steps + flow)
    else:
        redis.hdel(keys.workflow + flow, how)


@pytest.mark.parametrize("how", ["another type", "steps", "size:0", "queue:0", "workflow_steps", "cancelling"])
def test_a_broken_workflow_stops_neither_others_nor_the_list(redis, broker, caplog, how):
    workflows._log_broken.cache_clear()
    keys, broken = broker.keys.of(QUEUE), "c" * 12
    for flow in (broken, FLOW):
        _, member = claimed_flow(broker, {"size": 2}, flow_id=flow)
        redis.hset(keys.ended_members, member.id, "done")  # whoever settled it has died
        redis.zadd(keys.starting_parts + flow.encode(), {"0:0": 0})  # the same
        redis.zadd(keys.unstarted, {flow: 1})
    break_flow(redis, keys, broken.encode(), how)

    for _ in range(2):
        workflow_store(broker).sweep([QUEUE])
        redis.zadd(keys.unstarted, dict.fromkeys([broken], 1), xx=True)

    assert ends_of(broker) == ["1 0 0"]
    assert not redis.exists(keys.starting_parts + FLOW.encode())
    assert FLOW in [progress.id for progress in recent_in(readers_of(), 10)]
    assert caplog.text.count(f"workflow {broken} is broken") <= 1
    assert FLOW not in caplog.text


@pytest.mark.parametrize("is_told", [True, False])
def test_a_dead_member_that_is_requeued_elsewhere_is_open_there(redis, broker, is_told):
    """Whether its workflow has heard of its death or not: what was noted in its old queue does not come later."""
    (member,) = claimed_flow(broker, {})
    with pytest.MonkeyPatch.context() as patch:
        if not is_told:
            patch.setattr(type(workflow_store(broker)), "advance_commands", lambda *args: [])
        end(broker, "bury", member)
        requeue_elsewhere(broker, [member], "low")

    workflow_store(broker).sweep(["low", QUEUE])

    assert (fields_of(broker)["state"], ends_of(broker)) == ("running", ["0 0 0"])
    (again,) = claim_members(broker, queue="low")
    assert broker.settle("w1", "low", settlement("ack", again)) == []
    assert fields_of(broker)["state"] == "succeeded"


def test_a_note_goes_with_a_job_that_is_requeued_elsewhere(redis, broker):
    """It is requeued there, and dies: the workflow hears of it in this order, whatever is looked at first."""
    (member,) = claimed_flow(broker, {})
    end(broker, "bury", member)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(workflow_store(broker)), "advance_commands", lambda *args: [])
        requeue_elsewhere(broker, [member], "low")
        assert "ended_members" not in snapshot(redis)
        claim_members(broker, queue="low")
        broker.settle("w1", "low", settlement("bury", member))

    workflow_store(broker).sweep(["low"])
    workflow_store(broker).sweep([QUEUE])

    assert fields_of(broker)["state"] == "blocked"


def test_what_is_to_start_is_noted_until_it_has(redis, broker):
    members = claimed_flow(broker, *CHAIN)
    redis.hset(broker.keys.of(QUEUE).ended_members, mapping=dict.fromkeys([job.id for job in members], "done"))

    assert advance(broker, *members) == ("", ["1:0"])
    assert snapshot(redis)["unstarted"].keys() == {FLOW}
    workflow_store(broker).start([part("1:0")])

    assert "unstarted" not in snapshot(redis)


def test_a_step_behind_many_paths_is_skipped_once(redis, broker):
    """Sixteen times the next two wait for both before them: there are 2^16 ways from the first step to the last one."""
    wide = [{"next": "1 2"}]
    for level in range(16):
        before = "0" if not level else f"{2 * level - 1} {2 * level}"
        next = f"{2 * level + 3} {2 * level + 4}" if level < 15 else ""
        wide += [{"after": before, "next": next}] * 2
    begun_flow(broker, *wide)
    redis.config_resetstat()

    end(broker, "expire", *claim_members(broker))

    assert set(states_of(broker)) == {"failed", "skipped"}
    assert redis.info("commandstats")["cmdstat_hset"]["calls"] < 100


def test_a_workflow_that_is_over_stays_so(redis, broker):
    (member,) = claimed_flow(broker, {}, {}, on_death=1)
    workflow_store(broker).cancel(FLOW)

    end(broker, "bury", member)

    assert (states_of(broker), fields_of(broker)["state"]) == (["started", "waiting"], "cancelled")


def test_a_purge_is_heard_of(redis, broker, readers):
    begun_flow(broker, {"size": 3})

    sweeps.run(readers, "purge")

    assert (ends_of(broker), fields_of(broker)["state"]) == (["0 0 3"], "failed")


@pytest.mark.parametrize("is_async", [False, True])
def test_a_cancelled_member_is_heard_of(redis, broker, access, is_async):
    begun_flow(broker, {"size": 1})
    (job_id,) = live_jobs(redis)

    if is_async:
        async_to_sync(access.acancel)(job_id)
    else:
        access.cancel(job_id)

    assert fields_of(broker)["state"] == "failed"


def test_a_dead_member_that_is_trimmed_is_gone(redis, broker):
    (member,) = claimed_flow(broker, {})
    end(broker, "bury", member)
    redis.zadd(broker.keys.of(QUEUE).dead, {member.id: 1})

    broker.maintain([QUEUE])
    workflow_store(broker).sweep([QUEUE])

    assert fields_of(broker)["state"] == "failed"


def test_who_waits_is_woken_of_what_is_over(redis, broker):
    begun_flow(broker, {})
    assert advance(broker) == ("", [])
    assert f"workflow_signal:{FLOW}" not in snapshot(redis)
    end(broker, "bury", *claim_members(broker))
    redis.delete(broker.keys.of(QUEUE).workflow_signal + FLOW.encode())

    for _ in range(2):
        advance(broker)
        assert snapshot(redis)[f"workflow_signal:{FLOW}"] == ["over"]
    assert 0 < redis.pttl(broker.keys.of(QUEUE).workflow_signal + FLOW.encode()) <= 60_000


def test_who_waits_is_woken_by_a_death_and_waits_again_when_it_is_requeued(redis, broker, readers):
    (member,) = claimed_flow(broker, {})

    end(broker, "bury", member)
    assert snapshot(redis)[f"workflow_signal:{FLOW}"] == ["over"]
    readers.actions.done("requeue", QUEUE, [member.id])

    assert f"workflow_signal:{FLOW}" not in snapshot(redis)


def test_what_ends_by_a_script_that_redis_does_not_know_is_heard_of(redis, broker):
    members = claimed_flow(broker, *CHAIN)
    redis.script_flush()
    advance(broker)  # after a restart of Redis this script is known, and that which settles is not

    end(broker, "ack", *members)

    assert states_of(broker) == ["succeeded", "started"]


def test_a_call_without_news_is_nothing_that_happened(redis, broker, keys):
    (member,) = claimed_flow(broker, {})
    redis.zadd(keys.workflows, {FLOW: 1})

    advance(broker, member)
    assert redis.zscore(keys.workflows, FLOW) == 1

    end(broker, "ack", member)
    assert redis.zscore(keys.workflows, FLOW) > 1


def test_an_index_follows_its_state_and_knows_since_when(redis, broker):
    def noted():
        ((member, score),) = redis.zrange(broker.keys.of(QUEUE).workflow_states, 0, -1, withscores=True)
        assert member.decode() == f"{FLOW} flow"
        place, since = divmod(int(score), 10**13)
        assert abs(server_ms(redis) - since) < 600_000
        return place

    begun_flow(broker, {"size": 2})
    assert noted() == 0
    first, second = claim_members(broker)
    end(broker, "bury", first)
    assert noted() == 1
    end(broker, "ack", second)
    workflow_store(broker).tell(QUEUE, [first.id])
    assert noted() == 1
    readers_of().actions.done("discard", QUEUE, [first.id])
    advance(broker, first)
    assert noted() == 3


def test_who_was_gone_and_is_back_has_one_end(redis, broker):
    """Its Redis has lost its last writes, which that of the workflow knows of."""
    first, _ = claimed_flow(broker, {"size": 2})
    redis.hset(broker.keys.of(QUEUE).ended_members, first.id, "gone")
    advance(broker, first)
    assert ends_of(broker) == ["0 0 1"]

    end(broker, "ack", first)

    assert ends_of(broker) == ["1 0 0"]


def test_an_empty_step_leaves_nothing_to_start(redis, broker):
    begun_flow(broker, {"next": "1"}, {"size": 0, "after": "0"})

    end(broker, "ack", *claim_members(broker))

    assert states_of(broker) == ["succeeded", "succeeded"]
    assert "unstarted" not in snapshot(redis)


def test_notes_that_belong_to_nobody_are_dropped(redis, broker):
    """Of a job that is no member, of a workflow that is not there, and of a number that it does not have."""
    (member,) = claimed_flow(broker, {})
    notes = [with_shard(new_job_id(), 1), member_id("c" * 12, 1, 0, keeps=False), f"{member.id[:-6]}000001"]
    redis.hset(broker.keys.of(QUEUE).ended_members, mapping=dict.fromkeys(notes, "gone"))

    assert advance(broker, flow_id="d" * 12) == ("missing", [])
    assert workflow_store(broker).sweep([QUEUE]) is False

    assert "ended_members" not in snapshot(redis)
    end(broker, "ack", member)
    assert {name: bits for name, bits in snapshot(redis).items() if name.startswith("members:")} == {
        f"members:{FLOW}:0:done": "\\x80"
    }

"""A power cut may keep any prefix of what a script wrote. It may cost a second run, never a loss or a stall.

Each script is one transaction in the log. When the log ends within it, Redis 7.0 does not execute it, but leaves its
beginning in the log: at the next start, that is executed before all that was written in between.
"""

import ast
import re
from contextlib import suppress
from functools import cache
from itertools import pairwise

import pytest

from django_rtq.exceptions import WrongState
from django_rtq.workflows.store import workflow_of
from tests.protocol.model.script_calls import ALL_CALLS, LIMITS, READ_ONLY, prepared
from tests.support.jobs import QUEUE, WORKER, asked_job, claim_all, let_lapse, settle, settlement
from tests.support.nightly import IS_NIGHTLY
from tests.support.single_steps import count_lost, let_heartbeats_tend, promote
from tests.support.snapshots import snapshot

pytestmark = pytest.mark.long

_WORD = re.compile(rb'"(?:[^"\\]|\\.)*"')
END = b"the script is over"
ALL = ALL_CALLS
WRITING = sorted(set(ALL) - READ_ONLY)
# What may lie beside jobs; of a job that is over nothing may be left there.
BESIDE = (
    *("waiting_since", "failures", "crashes", "errors", "cancelled_in_lane", "scheduled", "retrying"),
    *("digests", "cancel_requests", "progress"),
)


def writes_of(redis, act):
    """The write commands of the scripts that are called meanwhile, as the server's log has them: those that change
    something. Does them once more to find out which ones do."""
    copy = copy_of(redis)
    with redis.monitor() as monitor:
        act()
        redis.echo(END)
        lines = []
        while not lines or END not in lines[-1]:
            lines.append(monitor.connection.read_response())
    scripted = [line.partition(b" lua] ")[2] for line in lines]
    commands = [[ast.literal_eval("b" + word.decode()) for word in _WORD.findall(line)] for line in scripted]
    writes = [command for command in commands if command and command[0].lower() in _write_commands(redis)]
    with redis.pipeline(transaction=False) as pipe:
        pipe.info("persistence")
        for write in writes:
            pipe.execute_command(*write)
            pipe.info("persistence")
        restore(redis, copy, [])
        changes = [reply["rdb_changes_since_last_save"] for reply in pipe.execute()[::2]]
    return [write for write, (before, after) in zip(writes, pairwise(changes), strict=True) if after > before]


@cache
def _write_commands(redis):
    return {name.encode() for name, command in redis.command().items() if "write" in command["flags"]}


def cuts(writes):
    """After how many writes the log may end: by night each number, else those after the first write of a kind, and all.
    Scripts do the same to each of several jobs."""
    first = {(write[0], write[1]): place for place, write in reversed([*enumerate(writes, 1)])}
    return range(len(writes) + 1) if IS_NIGHTLY else sorted({0, *first.values(), len(writes)})


def copy_of(redis):
    keys = list(redis.scan_iter(count=1000))
    with redis.pipeline(transaction=False) as pipe:
        for key in keys:
            pipe.dump(key)
        return dict(zip(keys, pipe.execute(), strict=True))


def restore(redis, copy, writes):
    """Bring back a copy, and do to it only these writes."""
    with redis.pipeline(transaction=False) as pipe:
        pipe.flushdb()
        for key, value in copy.items():
            pipe.restore(key, 0, value)
        for write in writes:
            pipe.execute_command(*write)
        pipe.execute()


def recover(broker):
    """What schedulers do after all workers have died."""
    let_lapse(broker, WORKER)
    keys = broker.keys.of(QUEUE)
    due, clients = broker.redis.execute(
        [("ZRANGE", keys.scheduled, 0, -1), ("ZRANGE", keys.scheduled_by_client, 0, -1)]
    )
    indexes = [keys.scheduled_by_client + b":" + client for client in clients]
    due_of_clients = broker.redis.execute([("ZRANGE", index, 0, -1) for index in indexes]) if indexes else []
    listed = [(keys.scheduled, due), (keys.scheduled_by_client, clients), *zip(indexes, due_of_clients, strict=True)]
    now_due = [("ZADD", key, 1, member) for key, members in listed for member in members]
    broker.redis.execute([*now_due, ("DEL", keys.paused)])
    broker.limits.change(QUEUE, dict.fromkeys((*LIMITS, "settings:clients"), ""))
    # The copy may be older than half a lease by now: that is no outage, only a slow machine.
    broker.redis.execute_one(("HDEL", keys.clock, "contact", "hold"))
    broker.reclaim(QUEUE)
    let_heartbeats_tend(broker)


def repair_jobs(broker):
    """What the next heartbeats do."""
    if count_lost(broker):
        broker.repair_jobs(QUEUE)


def assert_nothing_is_lost_or_stalled(redis, broker, call, jobs):
    claimed = claim_all(broker)
    after = snapshot(redis)
    live = set(after.get("jobs", ()))
    assert live <= {*claimed, *after.get("dead", ())}
    if not call.may_vanish:
        assert {job.id for job in jobs} <= {*live, *after.get("finished", ())}


def assert_nothing_is_left_of_jobs_that_are_over(redis, broker):
    """Acks what is claimed; then only dead letters may have anything beside them, and members that start then."""
    held = broker.running("w2", [QUEUE])[QUEUE]
    broker.settle("w2", QUEUE, settlement("ack", *map(_Named, held)))
    promote(broker, QUEUE)
    after = snapshot(redis)
    alive = {*after.get("dead", ()), *filter(workflow_of, after.get("jobs", ()))}
    assert not [key for key in after if key.startswith("scheduled_by_client")]
    assert {key: after[key] for key in BESIDE if key in after and not set(after[key]) <= alive} == {}


ASKED = {
    "reclaim": lambda broker: (let_lapse(broker, WORKER), broker.reclaim(QUEUE)),
    "reclaim_child": lambda broker: broker.reclaim_child(QUEUE, WORKER, []),
}


@pytest.mark.parametrize("verb", ["ack", "finish_cancel", "expire", "retry", "bury", "release", *ASKED])
def test_after_no_prefix_a_job_runs_again_that_was_asked_to_stop(redis, broker, verb):
    redis.flushdb()
    jobs = [asked_job(broker, name) for name in "ab"]
    copy = copy_of(redis)
    end = ASKED.get(verb, lambda broker: settle(broker, verb, *jobs))
    writes = writes_of(redis, lambda: end(broker))
    assert writes

    for kept in cuts(writes):
        restore(redis, copy, writes[:kept])
        recover(broker)
        assert claim_all(broker) == []
        after = snapshot(redis)
        assert set(after["finished"]) == {job.id for job in jobs}
        assert not {"jobs", "dead", *BESIDE} & set(after)


class _Named:
    def __init__(self, job_id):
        self.id = job_id.decode()


@pytest.mark.parametrize("is_sent_again", [False, True], ids=["all_died", "sent_again"])
@pytest.mark.parametrize("verb", WRITING)
def test_no_prefix_of_a_script_loses_or_stalls_a_job(redis, broker, verb, is_sent_again):
    call = ALL[verb]
    jobs = prepared(redis, broker, call)
    copy = copy_of(redis)
    writes = writes_of(redis, lambda: call.act(broker, jobs))
    assert writes

    for kept in cuts(writes):
        restore(redis, copy, writes[:kept])
        if is_sent_again:
            with suppress(WrongState):  # what a person hears whose first click had arrived
                call.act(broker, jobs)
        recover(broker)
        assert_nothing_is_lost_or_stalled(redis, broker, call, jobs)
        assert_nothing_is_left_of_jobs_that_are_over(redis, broker)


def go_on(broker, call, jobs, *, is_sent_again):
    """Between two starts: another worker takes over, and runs some of the jobs."""
    if is_sent_again:
        with suppress(WrongState):
            call.act(broker, jobs)
    recover(broker)
    broker.sign_on([QUEUE], "between")
    for claimed in broker.claim("between", [QUEUE], 2).claimed:
        broker.settle("between", QUEUE, settlement("ack", *map(_Named, claimed.ids)))


@pytest.mark.parametrize("is_sent_again", [False, True], ids=["all_died", "sent_again"])
@pytest.mark.parametrize("verb", WRITING)
def test_no_beginning_that_is_executed_at_a_second_start_loses_or_stalls_a_job(redis, broker, verb, is_sent_again):
    call = ALL[verb]
    jobs = prepared(redis, broker, call)
    copy = copy_of(redis)
    writes = writes_of(redis, lambda: call.act(broker, jobs))
    restore(redis, copy, [])
    later = writes_of(redis, lambda: go_on(broker, call, jobs, is_sent_again=is_sent_again))
    finished = set(snapshot(redis).get("finished", ()))

    for kept in cuts(writes)[1:-1]:
        restore(redis, copy, [*writes[:kept], *later])
        recover(broker)
        claimed = claim_all(broker)
        # Ids without records, which claims have removed by now, may have hidden lost jobs, or others were before them.
        repair_jobs(broker)
        claimed += claim_all(broker)
        assert count_lost(broker) <= 0
        after = snapshot(redis)
        live, dead = set(after.get("jobs", ())), set(after.get("dead", ()))
        assert live <= {*claimed, *dead}, (verb, writes[:kept])
        if not call.may_vanish:
            assert {job.id for job in jobs} <= {*live, *after.get("finished", ()), *finished}
        let_lapse(broker, "w2")
        broker.reclaim(QUEUE)
        held = [key for key in after if key.startswith("running:") and key != "running:w2"]
        assert not held, "processing lists without workers"

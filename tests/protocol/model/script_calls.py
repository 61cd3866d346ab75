"""One typical call of each script: the state before it, and the call itself."""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial, reduce
from operator import attrgetter
from typing import Any, NamedTuple

from django_rtq.console.nouns import Place
from django_rtq.console.reading.readers import Readers
from django_rtq.core.broker.one_job import JobAccess
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.settlement import Settlement
from django_rtq.core.conf.config import Config
from django_rtq.exceptions import WrongState
from django_rtq.limits.store import LimitStore
from tests.protocol.model import batch_calls, requeue_calls, step_calls, task_calls, workflow_calls
from tests.protocol.model.outcomes import LINE
from tests.support import console_steps as of_console
from tests.support import single_steps as steps
from tests.support.jobs import (
    KEEP_MS,
    QUEUE,
    WORKER,
    claimed_jobs,
    dead_job,
    finished_job,
    held_job,
    let_fall_due,
    let_lapse,
    new_job,
    queued_job,
    retrying_job,
    scheduled_job,
    settle,
    settlement,
    unique_job,
)

SLOT_MS = 1_700_000_000_000
READ_ONLY = {name for name, script in SCRIPTS.items() if "Reads only." in script._source}
LIMITS = {"run:clients": "max_running=1 rate=9/1000 burst=3", "settings:queue": "max_running=3", "run:paused:x": "1 me"}


class ScriptCall(NamedTuple):
    """`act` gets the broker and what `seed` gave back."""

    seed: Callable[[Any], Any]
    act: Callable[[Any, Any], Any]
    may_vanish: bool = False  # a job that is gone afterwards is no loss
    is_resent: bool = True  # by itself, when the connection was lost
    grows: bool = False  # sent twice, it does more


def _several():
    return [
        new_job("a", client="x"),
        new_job("b", client="x"),
        new_job("c", client="y"),
        new_job("d", client="x", priority=5),
    ]


def _nobody_is_known(broker):
    return []


def _many_new(broker):
    return [*_several(), new_job("e", due="+60000"), new_job("f", client="x", at_front=True)]


def _queued(broker):
    broker.enqueue(QUEUE, jobs := _several())
    broker.sign_on([QUEUE], WORKER)
    return jobs


def _queued_for_one(broker):
    return [queued_job(broker, name) for name in "ab"]


def _claimed(broker):
    return claimed_jobs(broker, *_several())


def _asked(broker):
    jobs = _claimed(broker)
    for job in jobs:
        JobAccess(broker).cancel(job.id)
    return jobs


def _lapsed(broker):
    jobs = _claimed(broker)
    let_lapse(broker, WORKER)
    return jobs


def _due(broker):
    jobs = [scheduled_job(broker, "a"), retrying_job(broker, "b"), scheduled_job(broker, "c", client="x")]
    let_fall_due(broker, *jobs)
    return jobs


def _dead(broker):
    return [dead_job(broker, name) for name in "ab"]


def _too_old(broker):
    jobs = [finished_job(broker, "a"), dead_job(broker, "b")]
    keys = broker.keys.of(QUEUE)
    broker.redis.execute([("HSET", keys.results, jobs[0].id, "1 1 {}"), ("ZADD", keys.dead, 1, jobs[1].id)])
    return jobs


def _bent(broker):
    jobs = _queued(broker)
    broker.redis.execute_one(("DEL", broker.keys.of(QUEUE).ring + b"0"))
    return jobs


def _lost(broker):
    """Two that lost their place, and two that have their own."""
    jobs = [*_queued(broker), *_queued_for_one(broker)]
    keys = broker.keys.of(QUEUE)
    broker.redis.execute([("LPOP", keys.lane + lane) for lane in (b"0:", b"0:x")])
    return jobs


def _idle(broker):
    return broker.sign_on([QUEUE], WORKER) or []


def _leaving(broker):
    jobs = _queued(broker)
    broker.redis.execute_one(("DEL", broker.keys.of(QUEUE).work_signal))  # a token that it took
    return jobs


def _paused(broker):
    jobs = _queued(broker)
    _noun(broker).pause()
    return jobs


def _new(broker):
    return [new_job("a", client="x")]


def _begun(broker):
    broker.schedules.begin(QUEUE, "report", "d1", SLOT_MS - 1)
    return _new(broker)


def _waiting_for_their_time(broker):
    return [scheduled_job(broker, "a", client="x"), retrying_job(broker, "b")]


def _run_all_now(broker, jobs):
    for job in jobs:
        with suppress(WrongState):  # sent again after a lost reply
            Readers(broker).actions.run_now(job.id, QUEUE)


def _register(broker, jobs):
    call = SCRIPTS["register_waiter"].call(broker.keys.of(QUEUE), (jobs[0].id, 1000))
    return broker.redis.execute_one(call, resend=True)


def _held(broker):
    """One that runs, and one that waits for its end."""
    return [held_job(broker, "a", successor="b")]


def _held_and_lapsed(broker):
    jobs = [held_job(broker, "a", successor="b", max_crashes=0)]
    let_lapse(broker, WORKER)
    return jobs


def _held_and_retrying(broker):
    jobs = _held(broker)
    settle(broker, "retry", *jobs)
    return jobs


def _held_and_dead(broker):
    jobs = [held_job(broker, "a")]
    settle(broker, "bury", *jobs)
    return jobs


def _unique(broker):
    """Two that are alike, one that is delayed, and one that is not unique after all."""
    return [
        unique_job("a", client="x"),
        unique_job("b", client="x"),
        unique_job("c", digest="d2", due="+60000"),
        unique_job("d", digest="", at_front=True),
    ]


def _running_and_again(broker):
    return [held_job(broker, "a"), unique_job("b", on_conflict="rerun"), unique_job("c", on_conflict="rerun")]


def _delayed_and_again(broker, due=""):
    first = unique_job("a", due="+60000")
    broker.enqueue(QUEUE, [first])
    return [first, unique_job("b", on_conflict="replace", due=due)]


def _enqueue_others(broker, jobs):
    return broker.enqueue(QUEUE, jobs[1:])


def _begun_and_unique(broker):
    _begun(broker)
    return [unique_job("a", client="x")]


def _claimed_of_many(broker):
    jobs = _claimed(broker)
    others = [new_job("e", client="x"), new_job("f", client="y"), new_job("g", client="y")]
    broker.enqueue(QUEUE, others)
    return [*jobs, *others]


def _blocked(broker):
    jobs = _claimed_of_many(broker)
    broker.limits.change(QUEUE, {"run:clients": LIMITS["run:clients"]})  # none is blocked while the queue is full
    broker.claim(WORKER, [QUEUE], 2)
    return jobs


def _apply_settings(broker, jobs):
    queues = {QUEUE: {"max_running": 3, "client": {"max_running": 1}}}
    config = Config(redis="redis://", queues=queues)
    assert LimitStore(broker.redis, broker.keys, config).apply_settings(QUEUE, 1, "")


def _settle_and_claim(broker, jobs):
    fetched = broker.claim(WORKER, [QUEUE], 2, settlements={QUEUE: settlement("ack", *jobs[:4])})
    assert fetched.error is None


def _settle_each(broker, jobs):
    """Each of four jobs ends in another way."""
    told = [settlement(verb, job) for job, verb in zip(jobs, ("ack", "retry", "bury", "release"), strict=True)]
    broker.settle(WORKER, QUEUE, reduce(Settlement.joined, told))


def _append_log(broker, jobs):
    """A worker sends a line of its first job, which is over."""
    broker.settle(WORKER, QUEUE, Settlement(logs=[(jobs[0].id, "token-1", KEEP_MS, 1, LINE)]))


def _report_progress(broker, jobs):
    broker.report_progress(WORKER, [(QUEUE, jobs[0].id, '{"done":1,"total":2,"text":""}')])


def _claimed_by_time(broker):
    broker.limits.change(QUEUE, {"run:queue": "fair_by=seconds"})
    return claimed_jobs(broker, new_job("a", client="x"), new_job("b", client="x"), new_job("c", client="y"))


def _note_times(broker, jobs):
    noted = [word for job in jobs for word in (job.id, "1.5")]
    return broker.redis.execute_one(SCRIPTS["note_times"].call(broker.keys.of(QUEUE), noted, worker=WORKER))


def _add_metrics(broker, jobs):
    """Of two runs."""
    broker.settle(WORKER, QUEUE, Settlement(metrics=[(13, 7, 2, "done task", 3, "r-3 task", 3, "x", 3, 4_000_000)]))


def _settling(verb):
    return ScriptCall(_claimed, lambda broker, jobs: settle(broker, verb, *jobs), is_resent=False)


def _place(broker):
    return Place(readers=Readers(broker))


def _noun(broker):
    return _place(broker).queues[QUEUE]


def _by_hand(seed, verb, **traits):
    return ScriptCall(seed, lambda broker, jobs: attrgetter(verb)(Readers(broker))(QUEUE), **traits)


SCRIPT_CALLS = {
    "settle": ScriptCall(_claimed, _settle_each, is_resent=False),
    "repair_lanes": ScriptCall(_bent, lambda broker, jobs: steps.repair_lanes(broker, QUEUE)),
    "repair_jobs": ScriptCall(_lost, lambda broker, jobs: broker.repair_jobs(QUEUE)),
    "begin_schedule": ScriptCall(_nobody_is_known, lambda broker, jobs: _begun(broker)),
    "cancel": ScriptCall(_queued, lambda broker, jobs: JobAccess(broker).cancel(jobs[0].id)),
    "claim": ScriptCall(
        _queued, lambda broker, jobs: broker.claim(WORKER, [QUEUE], 3).claimed, is_resent=False, grows=True
    ),
    "claim_lane": ScriptCall(batch_calls.first_claimed, batch_calls.claim_others, is_resent=False, grows=True),
    "client_states": ScriptCall(_queued, lambda broker, jobs: Readers(broker).clients.get("x")),
    "discard": ScriptCall(
        _dead,
        lambda broker, jobs: Readers(broker).actions.done("discard", QUEUE, [job.id for job in jobs]),
        may_vanish=True,
    ),
    "enqueue": ScriptCall(_new, lambda broker, jobs: broker.enqueue(QUEUE, jobs), may_vanish=True),
    "enqueue_many": ScriptCall(_many_new, lambda broker, jobs: broker.enqueue(QUEUE, jobs), may_vanish=True),
    "forget": ScriptCall(_nobody_is_known, lambda broker, jobs: broker.forget(QUEUE)),
    "find_job": ScriptCall(_queued, lambda broker, jobs: Readers(broker).find(jobs[0].id)),
    "fire_schedule": ScriptCall(
        _begun, lambda broker, jobs: broker.schedules.fire(QUEUE, "report", SLOT_MS, jobs[0]), may_vanish=True
    ),
    "time_series": ScriptCall(
        _queued,
        lambda broker, jobs: Readers(broker).overview.series.history([QUEUE], 60, 1, time.time_ns() // 1_000_000),
    ),
    "dead_groups": ScriptCall(_dead, lambda broker, jobs: Readers(broker).dead_letters.all_groups()),
    "queue_activity": ScriptCall(_queued, lambda broker, jobs: Readers(broker).overview.read()),
    "queue_overview": ScriptCall(_queued, lambda broker, jobs: Readers(broker).queues.details()),
    "task_hours": ScriptCall(_queued, of_console.read_tasks),
    "pause": ScriptCall(_queued, lambda broker, jobs: _noun(broker).pause()),
    "note_times": ScriptCall(_claimed_by_time, _note_times, is_resent=False),
    "note_unknown_task": ScriptCall(
        _claimed,
        lambda broker, jobs: broker.note_unknown_task(QUEUE, jobs[0].id.encode(), "shop.tasks.charge", WORKER),
        grows=True,
    ),
    "report_progress": ScriptCall(_claimed, _report_progress),
    "record_step": ScriptCall(_claimed, step_calls.record),
    "send_event": ScriptCall(lambda broker: [step_calls.waiting_job(broker)], step_calls.send),
    "append_log": ScriptCall(_claimed, _append_log, is_resent=False),
    "list_running": ScriptCall(_claimed, lambda broker, jobs: Readers(broker).workers()),
    "promote": ScriptCall(_due, lambda broker, jobs: steps.promote(broker, QUEUE)),
    "purge": ScriptCall(
        _queued_for_one, lambda broker, jobs: Readers(broker).sweeps.purge_some(QUEUE, None), may_vanish=True
    ),
    "reclaim": ScriptCall(_lapsed, lambda broker, jobs: broker.reclaim(QUEUE)),
    "reclaim_child": ScriptCall(_claimed, lambda broker, jobs: broker.reclaim_child(QUEUE, WORKER, [jobs[0].id])),
    "renew": ScriptCall(_idle, lambda broker, jobs: steps.renew(broker, [QUEUE], [WORKER])),
    "requeue": ScriptCall(
        _dead, lambda broker, jobs: Readers(broker).actions.done("requeue", QUEUE, [job.id for job in jobs])
    ),
    "resume": ScriptCall(_paused, lambda broker, jobs: _noun(broker).resume()),
    "run_now": ScriptCall(_waiting_for_their_time, _run_all_now),
    "search_jobs": ScriptCall(_queued, lambda broker, jobs: Readers(broker).search([(QUEUE, "queued")]).page()),
    "sign_off": ScriptCall(_leaving, lambda broker, jobs: broker.sign_off([QUEUE], WORKER)),
    "sign_on": ScriptCall(_nobody_is_known, lambda broker, jobs: broker.sign_on([QUEUE], WORKER)),
    "queue_position": ScriptCall(_queued, lambda broker, jobs: Readers(broker).find_with_position(jobs[0].id)),
    "add_metrics": ScriptCall(_nobody_is_known, _add_metrics, is_resent=False, grows=True),
    "track_incidents": ScriptCall(
        of_console.see_incidents, lambda broker, jobs: of_console.track_incidents(broker, 3, "b", "c")
    ),
    "note_version": ScriptCall(of_console.run_old_version, lambda broker, jobs: of_console.report_version(broker, "2")),
    "update_totals": ScriptCall(of_console.count_in_the_past, lambda broker, jobs: of_console.update_totals(broker)),
    "roll_up": ScriptCall(of_console.count_hours_ago, lambda broker, jobs: of_console.roll_up(broker)),
    "task_history": _by_hand(_queued, "tasks.get"),
    "set_limits": ScriptCall(_claimed_of_many, lambda broker, jobs: broker.limits.change(QUEUE, LIMITS)),
    "check_blocked": ScriptCall(_blocked, lambda broker, jobs: broker.limits.change(QUEUE, dict.fromkeys(LIMITS, ""))),
    "trim": ScriptCall(_too_old, lambda broker, jobs: steps.trim(broker, QUEUE), may_vanish=True),
    "register_waiter": ScriptCall(_queued, _register),
    "store_workflow": ScriptCall(_nobody_is_known, workflow_calls.store),
    "start_members": ScriptCall(workflow_calls.stored, workflow_calls.start_first),
    "add_members": ScriptCall(workflow_calls.running, workflow_calls.add),
    "finish_members": ScriptCall(workflow_calls.running, workflow_calls.finish, is_resent=False),
    "advance_workflow": ScriptCall(workflow_calls.ended, workflow_calls.advance),
    "cancel_workflow": ScriptCall(workflow_calls.running, workflow_calls.cancel),
    "forget_workflow": ScriptCall(workflow_calls.cancelled, workflow_calls.forget),
}

# The other states in which a job can be finished, a claim that settles, and limits of settings.
FINISH_CALLS = {
    "set_limits, of settings": ScriptCall(_claimed_of_many, _apply_settings),
    "claim, settling": ScriptCall(_claimed_of_many, _settle_and_claim, is_resent=False, grows=True),
    **{f"settle, {verb}": _settling(verb) for verb in ("ack", "expire", "retry", "bury", "release")},
    "settle, finish_cancel": _settling("finish_cancel")._replace(seed=_asked),
    "settle, suspend": ScriptCall(_claimed, step_calls.suspend_all, is_resent=False),
}

# Jobs that wait for their time: the index by client has to be written, too.
DELAYED_CALLS = {
    "enqueue, delayed": SCRIPT_CALLS["enqueue"]._replace(seed=lambda broker: [new_job("a", client="x", due="+60000")]),
    "promote, too many": ScriptCall(_due, lambda broker, jobs: steps.promote(broker, QUEUE, limit=2), grows=True),
}
for _name in ("cancel", "purge"):
    DELAYED_CALLS[f"{_name}, delayed"] = SCRIPT_CALLS[_name]._replace(seed=_waiting_for_their_time)

# What becomes of jobs of which no second like them may live: the same scripts, and more to write.
UNIQUE_CALLS = {
    **{f"{verb}, unique": _settling(verb)._replace(seed=_held) for verb in ("ack", "bury", "expire")},
    "cancel, unique": SCRIPT_CALLS["cancel"]._replace(seed=_held_and_retrying),
    "discard, unique": SCRIPT_CALLS["discard"]._replace(seed=_held_and_dead),
    "enqueue_many, unique": ScriptCall(_unique, lambda broker, jobs: broker.enqueue(QUEUE, jobs), may_vanish=True),
    "enqueue_many, that runs": ScriptCall(_running_and_again, _enqueue_others, may_vanish=True),
    "enqueue_many, later": ScriptCall(partial(_delayed_and_again, due="+90000"), _enqueue_others, may_vanish=True),
    "enqueue_many, now": ScriptCall(_delayed_and_again, _enqueue_others, may_vanish=True),
    "fire_schedule, unique": SCRIPT_CALLS["fire_schedule"]._replace(seed=_begun_and_unique),
    "purge, unique": SCRIPT_CALLS["purge"]._replace(seed=_held_and_retrying),
    "reclaim, unique": SCRIPT_CALLS["reclaim"]._replace(seed=_held_and_lapsed),
    "reclaim_child, lapsed": ScriptCall(_lapsed, lambda broker, jobs: _place(broker).workers[WORKER].reclaim()),
    "requeue, unique": SCRIPT_CALLS["requeue"]._replace(seed=_held_and_dead),
}

# What pauses of tasks hold: the same scripts, and more to write.
TASK_CALLS = {
    "pause, a task": SCRIPT_CALLS["pause"]._replace(act=task_calls.pause),
    "resume, a task": SCRIPT_CALLS["resume"]._replace(seed=task_calls.held, act=task_calls.resume),
    "claim, of a paused task": SCRIPT_CALLS["claim"]._replace(seed=task_calls.paused, act=task_calls.claim),
    "promote, of a resumed task": SCRIPT_CALLS["promote"]._replace(seed=task_calls.resumed, act=task_calls.promote_all),
    "cancel, held": SCRIPT_CALLS["cancel"]._replace(seed=task_calls.held),
    "purge, held": SCRIPT_CALLS["purge"]._replace(seed=task_calls.held, grows=True),
}
# Dead letters that go to another queue, get other arguments, or would expire.
REQUEUE_CALLS = {
    "requeue, elsewhere": SCRIPT_CALLS["requeue"]._replace(act=requeue_calls.requeue),
    "requeue, unique elsewhere": ScriptCall(requeue_calls.unique, requeue_calls.requeue),
    "requeue, back again": ScriptCall(requeue_calls.back_again, requeue_calls.requeue),
    "requeue, changed": SCRIPT_CALLS["requeue"]._replace(act=requeue_calls.change),
    "requeue, expired": SCRIPT_CALLS["requeue"]._replace(seed=requeue_calls.expired),
}

ALL_CALLS = {**SCRIPT_CALLS, **FINISH_CALLS, **DELAYED_CALLS, **UNIQUE_CALLS, **TASK_CALLS, **REQUEUE_CALLS}


def prepared(redis, broker, call):
    """Empty the database and make the state before the call."""
    redis.flushdb()
    broker.register_queues([QUEUE])
    return call.seed(broker)

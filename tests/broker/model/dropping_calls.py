"""Calls that drop the oldest jobs of a queue, hold those of paused tasks, or requeue jobs elsewhere; and all calls."""

from __future__ import annotations

from typing import Any

from django_rtq.jobs.outcome import DROPPED
from tests.broker.model import requeue_calls, task_calls
from tests.broker.model.script_calls import ALL_CALLS as OTHER_CALLS
from tests.broker.model.script_calls import SCRIPT_CALLS, SLOT_MS, ScriptCall
from tests.support.jobs import QUEUE, WORKER, new_job, unique_job


def _full(broker: Any) -> list[Any]:
    """A full queue that drops its oldest jobs, and jobs that take their places."""
    broker.schedules.begin(QUEUE, "report", "d1", SLOT_MS - 1)
    broker.enqueue_unique(QUEUE, [unique_job("a", client="x"), unique_job("b", digest="d2", client="y")])
    broker.redis.execute_one(("ZADD", broker.keys.of(QUEUE).lanes, 1, "0:x", 2, "0:y"))  # long before the others
    broker.sign_on([QUEUE], WORKER)
    broker.limits.change(QUEUE, {"run:queue": "max_waiting=2"})
    broker._drop_modes[QUEUE] = f"100 300000 {DROPPED}"
    return [unique_job("c", digest="d3", client="x"), unique_job("d", digest="d4", client="z")]


def _full_for_one(broker: Any) -> list[Any]:
    _full(broker)
    return [new_job("c", client="x")]


_UNIQUE = SCRIPT_CALLS["enqueue_unique"]
DROPPING_CALLS = {
    "enqueue_unique, of a full queue": _UNIQUE._replace(seed=_full),
    "enqueue_unique, all or none": _UNIQUE._replace(
        seed=_full, act=lambda broker, jobs: broker.enqueue_unique(QUEUE, jobs, all_or_none=True)
    ),
    "fire_schedule, of a full queue": SCRIPT_CALLS["fire_schedule"]._replace(seed=_full_for_one),
}
# What pauses of tasks hold: the same scripts, and more to write.
TASK_CALLS = {
    "claim, of a paused task": SCRIPT_CALLS["claim"]._replace(seed=task_calls.paused, act=task_calls.claim),
    "promote, of a resumed task": SCRIPT_CALLS["promote"]._replace(seed=task_calls.resumed, act=task_calls.promote_all),
    "cancel, held": SCRIPT_CALLS["cancel"]._replace(seed=task_calls.held),
    "purge, held": SCRIPT_CALLS["purge"]._replace(seed=task_calls.held, grows=True),
}
# Dead letters that take more with them to another queue.
REQUEUE_CALLS = {
    "requeue_elsewhere, unique": SCRIPT_CALLS["requeue_elsewhere"]._replace(seed=requeue_calls.unique),
    "requeue_elsewhere, back again": SCRIPT_CALLS["requeue_elsewhere"]._replace(seed=requeue_calls.back_again),
}
ALL_CALLS: dict[str, ScriptCall] = {
    **OTHER_CALLS,
    **DROPPING_CALLS,
    **TASK_CALLS,
    **REQUEUE_CALLS,
}

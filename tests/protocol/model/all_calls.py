"""Typical calls that hold jobs of paused tasks, or requeue jobs elsewhere; and all calls."""

from __future__ import annotations

from tests.protocol.model import requeue_calls, task_calls
from tests.protocol.model.script_calls import ALL_CALLS as OTHER_CALLS
from tests.protocol.model.script_calls import SCRIPT_CALLS, ScriptCall

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
ALL_CALLS: dict[str, ScriptCall] = {
    **OTHER_CALLS,
    **TASK_CALLS,
    **REQUEUE_CALLS,
}

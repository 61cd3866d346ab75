"""What queries about a queue should return, computed from its model."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django_rtq.core.broker.settlement import Report, Settlement
from django_rtq.core.jobs.job import JobState
from tests.protocol.model.queue import Queue
from tests.protocol.model.state import lane_name

VERBS = ("ack", "expire", "finish_cancel", "retry", "bury", "suspend", "release")  # in the order in which they are told


def overview_of(model: Queue) -> dict[str, object]:
    """What the Readers should tell."""
    lanes = {
        lane: [job_id for job_id in ids if job_id not in model.cancelled_in_lane] for lane, ids in model.lanes.items()
    }
    queued = sum(map(len, lanes.values()))
    may_start = {lane: ids for lane, ids in lanes.items() if ids and _may_start(model, lane[1])}
    oldest = min((_waits_since(model, lane, ids[0]) for lane, ids in may_start.items()), default=None)
    return {
        "paused": model.paused is not None,
        "queued": queued,
        "scheduled": len(model.scheduled) - len(model.retrying),
        "retrying": len(model.retrying),
        "running": sum(len(held) for held in model.running.values()),
        "dead": len(model.dead),
        "oldest_seconds": None if oldest is None else max(0.0, (model.clock.now - oldest) / 1000),
        "clients": min(len(model.waiting), queued),
        "finished": len(model.results),
    }


def _may_start(model: Queue, client: str) -> bool:
    """Whether a client may start a job, as far as claims know; if there are no limits any more, who was blocked may."""
    if not model.set_limits:
        return True
    return f"paused:{client}" not in model.set_limits and client not in model.blocked


def _waits_since(model: Queue, lane: tuple[int, str], job_id: str) -> int:
    """Of a lane whose first job this is, when what was cancelled is left out."""
    return model.waiting[lane] if model.lanes[lane][0] == job_id else model.places.waits_since(job_id)


def state_in(model: Queue, job_id: str) -> JobState | None:
    """Where a job is; None for one that nobody knows."""
    if any(job_id in held for held in model.running.values()):
        return JobState.RUNNING
    for name in ("dead", "retrying", "scheduled"):
        if job_id in getattr(model, name):
            return JobState(name)
    if job_id in model.jobs:
        return JobState.QUEUED
    if job_id in model.results:
        is_kept = model.outcomes.times_of(job_id)[1] > model.clock.now
        return (
            JobState(json.loads(model.results[job_id].split(" ", 2)[2]).get("state", "succeeded")) if is_kept else None
        )
    return JobState.SUCCEEDED if job_id in [*model.no_outcome, *model.no_outcome_before] else None


def lanes_of(model: Queue) -> Iterable[tuple[int, str]]:
    """The lanes that have jobs, in a fixed order."""
    return sorted(model.waiting, key=lane_name)


def settlement(verbs: Mapping[str, Sequence[tuple[Any, ...]]]) -> Settlement:
    """Those outcomes, as a worker tells them."""
    made = Settlement()
    for verb in VERBS:
        for job_id, *rest in verbs.get(verb, ()):
            *numbers, text = rest or [""]
            counted = numbers.pop() if verb in ("retry", "bury") else 1
            made.add(Report(verb, job_id, *(numbers or [0]), text, counted))
    return made


def seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000

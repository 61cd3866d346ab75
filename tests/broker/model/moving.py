"""What moving a job does to both queues."""

from __future__ import annotations

from copy import copy

from tests.broker.model.paused_tasks import HELD, PAUSE
from tests.broker.model.queue import Queue
from tests.broker.model.state import Ahead, Note


def move(source: Queue, target: Queue, job_id: str) -> str:
    """The answer of the script."""
    if job_id not in source.jobs:
        if job_id in target.jobs or _has_ended(target, job_id):
            return "there"
        return "finished" if _has_ended(source, job_id) else "missing"
    if source.places.runs(job_id):
        return "running"
    if reason := _why_not(source, target, job_id):
        return reason
    if job_id not in target.jobs:
        _store(source, target, job_id)
    source.remembering.move(target, job_id)
    _remove(source, job_id)
    if job_id in source.logs:
        target.logs[job_id] = source.logs.pop(job_id)
    source.count("moved")
    return "moved"


def _has_ended(model: Queue, job_id: str) -> bool:
    return job_id in model.results or model.outcomes.has_finished(job_id)


def _why_not(source: Queue, target: Queue, job_id: str) -> str:
    note = source.digests.get(job_id)
    if note is None:
        return ""
    first = source.unique.get(note.digest, "")
    if first != job_id and first in source.digests and source.unique_jobs.successor_of(first) == job_id:
        return f"after {first}"
    is_owner = source.unique_jobs.holder(note.digest) == job_id
    if is_owner and (successor := source.unique_jobs.successor_of(job_id)):
        return f"before {successor}"
    other = target.unique_jobs.holder(note.digest) if is_owner or job_id in source.dead else ""
    return f"duplicate {other}" if other else ""


def _store(source: Queue, target: Queue, job_id: str) -> None:
    target.is_listed = True
    _forget_id(target, job_id)
    record = target.jobs[job_id] = copy(source.jobs[job_id])
    record.band = record.band.priority if isinstance(record.band, Ahead) else record.band
    is_dead, due = job_id in source.dead, source.scheduled.get(job_id)
    if is_dead:
        record.ready, record.expires = source.clock.now, 0
        target.places.queue_up(job_id, source.clock.now)
    elif due is not None and due < HELD:
        target.places.schedule(job_id, due)
    else:
        target.places.queue_up(job_id, source.places.waits_since(job_id) if due is None else int(due % PAUSE))
    for name in ("errors", "progress", *(() if is_dead else ("failures", "crashes"))):
        if job_id in getattr(source, name):
            getattr(target, name)[job_id] = getattr(source, name)[job_id]
    if job_id in source.logs:
        target.logs[job_id] = source.logs.pop(job_id)
    if job_id in source.retrying:
        target.retrying[job_id] = source.retrying[job_id]
    if note := source.digests.get(job_id):
        target.digests[job_id] = Note(note.until, note.limit_ms, note.digest)
        if is_dead or source.unique_jobs.holder(note.digest) == job_id:
            target.unique[note.digest] = job_id


def _forget_id(model: Queue, job_id: str) -> None:
    """It was there before."""
    model.finished.discard(job_id)
    model.finished_before.discard(job_id)
    lane = model.cancelled_in_lane.pop(job_id, None)
    if lane is not None:
        model.lanes[lane].remove(job_id)
        _update_lane(model, lane)


def _update_lane(model: Queue, lane: tuple[int, str]) -> None:
    if model.lanes[lane]:
        model.waiting[lane] = model.places.waits_since(model.lanes[lane][0])
    else:
        model.waiting.pop(lane, None)
        model.places.leave_ring(*lane)


def _remove(model: Queue, job_id: str) -> None:
    """It is only looked for at the front of its lane."""
    lane = None if job_id in model.dead or job_id in model.scheduled else model.jobs[job_id].lane
    model.finished.add(job_id)
    model.places.forget([job_id])
    if lane is not None and model.lanes[lane][0] != job_id:
        model.cancelled_in_lane[job_id] = lane
    elif lane is not None:
        model.lanes[lane].pop(0)
        _update_lane(model, lane)

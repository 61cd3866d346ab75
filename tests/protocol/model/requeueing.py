"""What it does to both queues when dead letters of one are queued in the other."""

from collections.abc import Sequence
from copy import copy

from tests.protocol.model.queue import Queue
from tests.protocol.model.state import Ahead, Note


def requeue_elsewhere(source: Queue, target: Queue, job_ids: Sequence[str]) -> list[str]:
    """The answer of the script."""
    queued = []
    for job_id in job_ids:
        note = source.digests.get(job_id)
        holder = note and target.unique_jobs.holder(note.digest)
        if job_id not in source.dead or (holder and holder != job_id):
            continue
        queued.append(job_id)
        if job_id not in target.jobs:
            _store(source, target, job_id)
        source.remembering.move(target, job_id)
        if job_id in source.logs:
            target.logs[job_id] = source.logs.pop(job_id)
        source.finished.add(job_id)
        source.places.forget([job_id])
    if queued:
        source.count("requeued", len(queued))
    return queued


def _store(source: Queue, target: Queue, job_id: str) -> None:
    target.is_listed = True
    target.finished.discard(job_id)
    target.finished_before.discard(job_id)
    record = target.jobs[job_id] = copy(source.jobs[job_id])
    record.band = record.band.priority if isinstance(record.band, Ahead) else record.band
    record.ready, record.expires = source.clock.now, 0
    target.places.queue_up(job_id, source.clock.now)
    for name in ("errors", "progress"):
        if job_id in getattr(source, name):
            getattr(target, name)[job_id] = getattr(source, name)[job_id]
    if note := source.digests.get(job_id):
        target.digests[job_id] = Note(note.until, note.limit_ms, note.digest)
        target.unique[note.digest] = job_id

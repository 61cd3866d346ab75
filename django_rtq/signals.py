"""What happens to jobs, as signals. They are sent with send_robust in the process where it happened.

Signals of a job in a worker carry `job` (a Job); those of people carry ids, because they are about many.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.dispatch import Signal

job_enqueued = Signal()  # job_ids, queue, task: delay() has returned
job_promoted = Signal()  # job_ids, queue: their time has come
job_started = Signal()  # job: it was claimed and runs now
job_succeeded = Signal()  # job, seconds, result: acked
job_retried = Signal()  # job, error, delay_seconds: it will run again
job_buried = Signal()  # job, error: it is a dead letter now
job_expired = Signal()  # job: nobody had started it in time
job_released = Signal()  # job_ids, queue: given back unrun
job_reclaimed = Signal()  # job_ids, buried_ids, queue, worker ("": leases ran out): taken back from the dead
job_cancelled = Signal()  # job_id, queue
job_requeued = Signal()  # job_ids, queue
job_discarded = Signal()  # job_ids, queue
job_stale = Signal()  # job_ids, worker: finished late, after they were given to others; the result changed nothing


def tell_reclaimed(sender: type, queue: str, worker: str, taken: Sequence[tuple[str, str]]) -> None:
    """Send the signals of jobs that were taken back. Those that had been asked to stop are cancelled."""
    by_place: dict[str, list[str]] = {"queued": [], "dead": [], "cancelled": []}
    for job_id, where in taken:
        by_place[where].append(job_id)
    if by_place["queued"] or by_place["dead"]:
        job_reclaimed.send_robust(
            sender, queue=queue, worker=worker, job_ids=by_place["queued"], buried_ids=by_place["dead"]
        )
    for job_id in by_place["cancelled"]:
        job_cancelled.send_robust(sender, job_id=job_id, queue=queue)

"""Django signals about jobs. Sent with send_robust, in the process where it happens.

Signals about one run in a worker have `job` (a Job). Signals about many jobs, most of them actions of operators, have
`job_ids`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.dispatch import Signal

job_enqueued = Signal()  # job_ids, queue, task: new jobs, stored in Redis
job_promoted = Signal()  # job_ids, queue: scheduled or retrying jobs are due and queued now
job_started = Signal()  # job: claimed, and about to run
job_succeeded = Signal()  # job, seconds, result: the task returned
job_retried = Signal()  # job (None: unreadable record), job_id, error, delay_seconds: failed, will run again
job_buried = Signal()  # job (None: unreadable record), job_id, error: a dead letter now
job_suspended = Signal()  # job, job_id, seconds: it sleeps or waits so long at the most, and goes on in another run
job_expired = Signal()  # job: not started before it expired
job_released = Signal()  # job_ids, queue: given back by a worker that did not run them
job_reclaimed = Signal()  # job_ids, buried_ids, queue, worker ("": expired leases): taken from a dead worker
job_cancelled = Signal()  # job_id, queue
job_dropped = Signal()  # job_ids, queue: cancelled by a process whose job took their place (on_full="drop_oldest")
job_requeued = Signal()  # job_ids, queue
job_moved = Signal()  # job_ids, queue, target: moved by a person from one queue to another
job_carried = Signal()  # job_ids, queue, shard: a person drains their shard, and this one has them now
job_discarded = Signal()  # job_ids, queue
job_restored = Signal()  # job_ids, queue: a person has undone their deletion
workflow_blocked = Signal()  # workflow_id, name: a dead job keeps it from going on
workflow_ended = Signal()  # workflow_id, name
job_stale = Signal()  # job_ids, worker: finished after other workers had got them; the results were ignored
incident_opened = Signal()  # incident: something has been wrong for two views, some seconds apart
incident_closed = Signal()  # incident: as it was when it opened
worker_process_shutdown = Signal()  # worker: its process has settled all jobs and is about to exit


def send_enqueued(sender: type, queue: str, task: str, job_ids: Sequence[str]) -> None:
    """Send job_enqueued for jobs that were stored: every way in calls this."""
    if job_ids and job_enqueued.receivers:
        job_enqueued.send_robust(sender, job_ids=job_ids, queue=queue, task=task)


def send_promoted(sender: type, promoted: Mapping[str, Sequence[str]]) -> None:
    """Send job_promoted for each queue that had due jobs. `promoted`: queue -> job ids."""
    for queue, job_ids in promoted.items():
        if job_ids and job_promoted.receivers:
            job_promoted.send_robust(sender, job_ids=job_ids, queue=queue)


def send_reclaimed(sender: type, queue: str, worker: str, taken: Sequence[tuple[str, str]]) -> None:
    """Send the signals of reclaimed jobs. Those that had been asked to stop are cancelled."""
    ids: dict[str, list[str]] = {"queued": [], "dead": [], "cancelled": []}
    for job_id, state in taken:
        ids[state].append(job_id)
    if ids["queued"] or ids["dead"]:
        job_reclaimed.send_robust(sender, queue=queue, worker=worker, job_ids=ids["queued"], buried_ids=ids["dead"])
    for job_id in ids["cancelled"]:
        job_cancelled.send_robust(sender, job_id=job_id, queue=queue)

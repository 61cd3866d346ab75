"""What happens to jobs, as signals. They are sent with send_robust in the process where it happened.

Signals of a job in a worker carry `job` (a Job); those of people carry ids, because they are about many.
"""

from __future__ import annotations

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

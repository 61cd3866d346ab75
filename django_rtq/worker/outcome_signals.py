"""The signals that say what followed from a run."""

from __future__ import annotations

from django_rtq import signals
from django_rtq.jobs.job import Job
from django_rtq.worker.outcome import Acked, Buried, Cancelled, Outcome, Retried
from django_rtq.worker.process.run import Run


def send_for_run(sender: type, run: Run, outcome: Outcome) -> None:
    """Send the signal of a run of this process. Receivers that fail do no harm."""
    try:
        job = run.job
    except Exception:  # noqa: BLE001 - the record cannot be read, and that is what the outcome says
        job = None
    if isinstance(outcome, Acked):
        signals.job_succeeded.send_robust(sender, job=job, seconds=run.seconds, result=outcome.result)
    elif isinstance(outcome, Retried | Buried):
        send_failed(sender, job, run.job_id.decode(), outcome)
    elif isinstance(outcome, Cancelled):
        signals.job_cancelled.send_robust(sender, job_id=run.job_id.decode(), queue=run.queue)
    else:
        signals.job_expired.send_robust(sender, job=job)


def send_failed(sender: type, job: Job | None, job_id: str, outcome: Retried | Buried) -> None:
    """Send job_retried or job_buried; without a job when its record cannot be read."""
    if isinstance(outcome, Retried):
        signals.job_retried.send_robust(
            sender, job=job, job_id=job_id, error=outcome.error, delay_seconds=outcome.delay_seconds
        )
    else:
        signals.job_buried.send_robust(sender, job=job, job_id=job_id, error=outcome.error)

"""Django signals about jobs, and the log lines about what people do. Sent with send_robust, where it happens.

Signals about one run in a worker have `job` (a Job). Signals about many jobs, most of them actions of operators, have
`job_ids`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from django.dispatch import Signal

from django_rtq.core.jobs.job import Job, about, about_jobs

logger = logging.getLogger("django_rtq")


def log_receiver_errors(answers: Sequence[tuple[Any, Any]], **named: Any) -> None:
    """Log what receivers have raised, with the jobs that their signal names."""
    for receiver, error in answers:
        if isinstance(error, Exception):
            job, ids = named.get("job"), [named["job_id"]] if "job_id" in named else []
            ids += [*named.get("job_ids", ()), *named.get("buried_ids", ())]
            logger.error(
                "receiver %s.%s failed for %s: %r", receiver.__module__, getattr(receiver, "__qualname__", receiver),
                f"job {job.id}" if job else f"jobs {', '.join(ids[:10])}" if ids else "a signal without a job", error,
                exc_info=error, extra=about(job) if job else about_jobs(ids),
            )  # fmt: skip


class JobSignal(Signal):
    """Logs what receivers raise in our logger, which workers show: that of Django has no handler there."""

    def send_robust(self, sender: Any, **named: Any) -> list[tuple[Any, Any]]:
        answers = super().send_robust(sender, **named)
        log_receiver_errors(answers, **named)
        return answers

    async def asend_robust(self, sender: Any, **named: Any) -> list[tuple[Any, Any]]:
        answers = await super().asend_robust(sender, **named)
        log_receiver_errors(answers, **named)
        return answers

    def _log_robust_failure(self, receiver: Any, error: Exception) -> None:
        """Nothing: otherwise Django would log it as well."""


job_enqueued = JobSignal()  # job_ids, queue, task: new jobs, stored in Redis
job_promoted = JobSignal()  # job_ids, queue: scheduled or retrying jobs are due and queued now
job_started = JobSignal()  # job: claimed, and about to run
job_succeeded = JobSignal()  # job, seconds, result: the task returned
job_retried = JobSignal()  # job (None: unreadable record), job_id, error, delay_seconds: failed, will run again
job_buried = JobSignal()  # job (None: unreadable record), job_id, error: a dead letter now
job_suspended = JobSignal()  # job, job_id, seconds: it sleeps or waits so long at the most, and goes on in another run
job_expired = JobSignal()  # job: not started before it expired
job_released = JobSignal()  # job_ids, queue: given back by a worker that did not run them
job_reclaimed = JobSignal()  # job_ids, buried_ids, queue, worker ("": expired leases): taken from a dead worker
job_cancelled = JobSignal()  # job_id, queue
job_requeued = JobSignal()  # job_ids, queue: where they are queued now
job_discarded = JobSignal()  # job_ids, queue
workflow_blocked = JobSignal()  # workflow_id, name: a dead job keeps it from going on
workflow_ended = JobSignal()  # workflow_id, name
job_stale = JobSignal()  # job_ids, worker: finished after other workers had got them; the results were ignored
incident_opened = JobSignal()  # incident: something has been wrong for two views, some seconds apart
incident_closed = JobSignal()  # incident: as it was when it opened
worker_process_shutdown = JobSignal()  # worker: its process has settled all jobs and is about to exit

# What `import *` takes. Not plain, as type checkers would take a list that is made for an empty one.
globals()["__all__"] = [name for name, value in tuple(globals().items()) if isinstance(value, JobSignal)]


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


# -- log lines, in every process; the others are in logs.py

OF_PEOPLE = {
    job_cancelled: (logging.INFO, "cancelled job %(ids)s of queue %(queue)s"),
    job_requeued: (logging.INFO, "requeued %(number)d dead letters in queue %(queue)s: %(ids)s"),
    job_discarded: (logging.INFO, "discarded %(number)d dead letters of queue %(queue)s: %(ids)s"),
}


def connect_operator_events() -> None:
    """Log cancelled, requeued and discarded jobs. May be called twice."""
    connect_lines(OF_PEOPLE)


def connect_lines(lines: Mapping[JobSignal, tuple[int, str]]) -> None:
    """Log each of these signals in a line: its level, and a text with names of what it says."""
    for signal, (level, text) in lines.items():
        signal.connect(partial(_log_line, level, text), weak=False, dispatch_uid="rtq-log")


def _log_line(
    level: int, text: str, *, job: Job | None = None, job_id: str = "", job_ids: Sequence[str] = (), **told: Any
) -> None:
    # No result: Sentry and others send all that a record has.
    said: dict[str, Any] = {name: told[name] for name in ("queue", "task", "worker", "seconds") if name in told}
    if job is not None:
        logger.log(level, text, {**said, "id": job.id, "task": job.task, "attempt": job.attempt}, extra=about(job))
        return
    ids = job_ids or [job_id]
    known = {name: said[name] for name in ("queue", "task") if name in said}
    said |= {"ids": first_ids(ids), "number": len(ids), "jobs": number_of(ids)}
    logger.log(level, text, said, extra=about_jobs(ids, **known))


def number_of(job_ids: Sequence[str]) -> str:
    """How many jobs these are."""
    return "1 job" if len(job_ids) == 1 else f"{len(job_ids)} jobs"


def first_ids(job_ids: Sequence[str]) -> str:
    """As many as fit on a line."""
    return ", ".join(job_ids[:10]) + (", …" if len(job_ids) > 10 else "")

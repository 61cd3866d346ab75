"""Log lines about jobs, in the logger "django_rtq".

Where log lines are written:

1. What happens to a job is a signal, and its log line is here, of what people do in signals.py: wording and
   level. Errors are logged with the traceback; arguments are never logged, and secret arguments are replaced in error
   messages (see redaction.py).
   `extra` says which jobs a line is about: see core/jobs/job.py.
   Success is logged at DEBUG, where a person looks at INFO; else no receiver is connected, so it costs nothing.
2. The life of a process (start, stop, fork, kill, lost connection) is logged in the module where it happens.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django_rtq.core import signals
from django_rtq.core.conf.config import is_debug
from django_rtq.core.jobs.failure import format_error
from django_rtq.core.jobs.job import Job, about, about_jobs
from django_rtq.core.signals import connect_lines, first_ids, number_of
from django_rtq.exceptions import TaskNotFound

logger = logging.getLogger("django_rtq")

ONCE_SECONDS = 60.0
MAX_TASKS = 1000


class OncePerTask:
    """Lets one job of an unknown task pass in a minute. Thousands come every half minute, all for the same reason."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, int]] = {}  # task -> time of the last that passed, how many did not since

    def held_back(self, task: str) -> int | None:
        """How many were held back since the last one that passed; None if this one is."""
        now = time.monotonic()
        at, number = self._last.get(task, (0.0, 0))
        if at and now - at < ONCE_SECONDS:
            self._last[task] = (at, number + 1)
            return None
        if len(self._last) >= MAX_TASKS:
            self._last.clear()
        self._last[task] = (now, 0)
        return number


def is_unknown_task(error: BaseException) -> bool:
    """Whether a job failed because its worker does not know its task: a function that raises it has a traceback."""
    return isinstance(error, TaskNotFound) and error.__traceback__ is None


_unknown_tasks = OncePerTask()


SUCCEEDED = "job %(id)s succeeded after %(seconds).3f s: %(task)s"
LINES = {
    signals.job_expired: (logging.WARNING, "job %(id)s expired before a worker started it: %(task)s"),
    signals.job_stale: (
        logging.WARNING,
        "ignored %(number)d results of worker %(worker)s, which no longer held the jobs: %(ids)s",
    ),
}
DETAILS = {
    signals.job_enqueued: (logging.DEBUG, "enqueued %(jobs)s of %(task)s to queue %(queue)s: %(ids)s"),
    signals.job_promoted: (logging.DEBUG, "promoted %(jobs)s of queue %(queue)s"),
    signals.job_released: (logging.DEBUG, "released %(jobs)s that did not run to queue %(queue)s: %(ids)s"),
    signals.job_started: (logging.DEBUG, "job %(id)s started: %(task)s, attempt %(attempt)d"),
    signals.job_suspended: (logging.DEBUG, "job %(id)s suspended for %(seconds).1f s at the most (%(task)s)"),
}


def connect() -> None:
    """Log what workers and schedulers do with jobs, in this process. May be called twice."""
    signals.job_retried.connect(log_retried, dispatch_uid="rtq-log")
    signals.job_buried.connect(log_buried, dispatch_uid="rtq-log")
    signals.job_reclaimed.connect(log_reclaimed, dispatch_uid="rtq-log")
    connect_lines(LINES)
    level = logging.INFO if is_watched() else logging.DEBUG
    if logger.isEnabledFor(level):
        connect_lines({signals.job_succeeded: (level, SUCCEEDED)})
    if logger.isEnabledFor(logging.DEBUG):
        connect_lines(DETAILS)


def is_watched() -> bool:
    """Whether a person looks at what this process prints: it has a terminal, or the project is under development."""
    return getattr(sys.stderr, "isatty", bool)() or is_debug()  # a daemon may have no stderr


def log_retried(*, job: Job | None, job_id: str, error: BaseException, delay_seconds: float, **kwargs: object) -> None:
    attempt, task = (job.attempt, job.task) if job else ("?", "?")
    if is_unknown_task(error):
        held_back = _unknown_tasks.held_back(task)
        if held_back is not None:
            logger.warning(
                "job %s waits %.3g s for a worker that knows its task; %d more since the last such line about this "
                "task. %s", job_id, delay_seconds, held_back, error, extra=about_jobs([job_id], task=task),
            )  # fmt: skip
        return
    text = "job %s failed in attempt %s, will be retried in %.3g s: %s"
    _log_error(logging.WARNING, error, job, text, (job_id, attempt, delay_seconds, task))


def log_buried(*, job: Job | None, job_id: str, error: BaseException, **kwargs: object) -> None:
    attempt, task = (job.attempt, job.task) if job else ("?", "?")
    text = "job %s failed permanently in attempt %s, buried as a dead letter: %s"
    _log_error(logging.ERROR, error, job, text, (job_id, attempt, task))


def log_reclaimed(
    *, queue: str, worker: str, job_ids: Sequence[str], buried_ids: Sequence[str], **kwargs: object
) -> None:
    source = f"worker {worker}" if worker else "workers with expired leases"
    if job_ids:
        logger.warning(
            "reclaimed %s from %s to queue %s: %s", number_of(job_ids), source, queue, first_ids(job_ids),
            extra=about_jobs(job_ids, queue=queue),
        )  # fmt: skip
    if buried_ids:
        logger.error(
            "buried %s of %s after too many crashes: %s", number_of(buried_ids), source, first_ids(buried_ids),
            extra=about_jobs(buried_ids, queue=queue),
        )  # fmt: skip


def _log_error(level: int, error: BaseException, job: Job | None, message: str, values: tuple[Any, ...]) -> None:
    if logger.isEnabledFor(level):
        exc_info = (type(error), error, error.__traceback__)
        extra = about_jobs([values[0]]) if job is None else about(job)
        record = logger.makeRecord(logger.name, level, __file__, 0, message, values, exc_info, extra=extra)
        with suppress(Exception):  # of the exception's own __str__: then the formatter tries
            record.exc_text = format_error(error, error.__traceback__).rstrip("\n")
        logger.handle(record)

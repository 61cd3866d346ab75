"""What happens to jobs, as log lines: the only place with their wording and levels.

Arguments of jobs are never logged, and secret ones are replaced in the messages of errors. What succeeds is told at
DEBUG only, and costs nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from types import TracebackType

from django_rtq import signals
from django_rtq.jobs.job import Job
from django_rtq.redaction import Secrets

logger = logging.getLogger("django_rtq")


def connect_operator_events() -> None:
    """Turn what people do by hand into lines. May be called twice."""
    signals.job_cancelled.connect(log_cancelled, dispatch_uid="rtq-log")
    signals.job_requeued.connect(log_requeued, dispatch_uid="rtq-log")
    signals.job_discarded.connect(log_discarded, dispatch_uid="rtq-log")


def connect() -> None:
    """Turn what workers do into lines, in this process. May be called twice."""
    signals.job_retried.connect(log_retried, dispatch_uid="rtq-log")
    signals.job_buried.connect(log_buried, dispatch_uid="rtq-log")
    signals.job_expired.connect(log_expired, dispatch_uid="rtq-log")
    signals.job_reclaimed.connect(log_reclaimed, dispatch_uid="rtq-log")
    signals.job_stale.connect(log_stale, dispatch_uid="rtq-log")
    if logger.isEnabledFor(logging.DEBUG):
        signals.job_started.connect(log_started, dispatch_uid="rtq-log")
        signals.job_succeeded.connect(log_succeeded, dispatch_uid="rtq-log")
        signals.job_promoted.connect(log_promoted, dispatch_uid="rtq-log")
        signals.job_released.connect(log_released, dispatch_uid="rtq-log")
        signals.job_enqueued.connect(log_enqueued, dispatch_uid="rtq-log")


def log_enqueued(*, job_ids: Sequence[str], queue: str, task: str, **kwargs: object) -> None:
    logger.debug("%d jobs of %s enqueued to %s: %s", len(job_ids), task, queue, _some(job_ids))


def log_started(*, job: Job, **kwargs: object) -> None:
    logger.debug("job %s started: %s, attempt %d", job.id, job.task, job.attempt)


def log_succeeded(*, job: Job, seconds: float, **kwargs: object) -> None:
    logger.debug("job %s succeeded after %.3f s: %s", job.id, seconds, job.task)


def log_promoted(*, job_ids: Sequence[str], queue: str, **kwargs: object) -> None:
    logger.debug("%d jobs of %s promoted", len(job_ids), queue)


def log_retried(*, job: Job | None, job_id: str, error: BaseException, delay_seconds: float, **kwargs: object) -> None:
    logger.warning(
        "job %s retried in %.3g s after attempt %s: %s",
        job_id, delay_seconds, job.attempt if job else "?", job.task if job else "?", exc_info=_info(error, job),
    )  # fmt: skip


def log_buried(*, job: Job | None, job_id: str, error: BaseException, **kwargs: object) -> None:
    logger.error(
        "job %s buried after attempt %s: %s",
        job_id, job.attempt if job else "?", job.task if job else "?", exc_info=_info(error, job),
    )  # fmt: skip


def log_expired(*, job: Job, **kwargs: object) -> None:
    logger.warning("job %s expired before it was started: %s", job.id, job.task)


def log_reclaimed(
    *, queue: str, worker: str, job_ids: Sequence[str], buried_ids: Sequence[str], **kwargs: object
) -> None:
    whose = f"of worker {worker}" if worker else "of workers whose leases ran out"
    if job_ids:
        logger.warning("%d jobs %s reclaimed to %s: %s", len(job_ids), whose, queue, _some(job_ids))
    if buried_ids:
        logger.error("%d jobs %s buried, they crashed too often: %s", len(buried_ids), whose, _some(buried_ids))


def log_released(*, job_ids: Sequence[str], queue: str, **kwargs: object) -> None:
    logger.debug("%d jobs released to %s: %s", len(job_ids), queue, _some(job_ids))


def log_cancelled(*, job_id: str, queue: str, **kwargs: object) -> None:
    logger.info("job %s of %s cancelled", job_id, queue)


def log_requeued(*, job_ids: Sequence[str], queue: str, **kwargs: object) -> None:
    logger.info("%d dead jobs of %s requeued: %s", len(job_ids), queue, _some(job_ids))


def log_discarded(*, job_ids: Sequence[str], queue: str, **kwargs: object) -> None:
    logger.info("%d dead jobs of %s discarded: %s", len(job_ids), queue, _some(job_ids))


def log_stale(*, job_ids: Sequence[str], worker: str, **kwargs: object) -> None:
    logger.warning(
        "%d results of worker %s came too late and changed nothing: %s", len(job_ids), worker, _some(job_ids)
    )


def _some(job_ids: Sequence[str]) -> str:
    return ", ".join(job_ids[:10]) + (", …" if len(job_ids) > 10 else "")


def _info(error: BaseException, job: Job | None) -> tuple[type[BaseException], BaseException, TracebackType | None]:
    shown = error if job is None else Secrets.of(job.task, job.args, job.kwargs).hide_in_error(error)
    return type(shown), shown, shown.__traceback__

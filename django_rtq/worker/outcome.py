"""What follows from a run. Decided here, by a pure function; carried out elsewhere."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from django_rtq import signals
from django_rtq.exceptions import Bury, Retry, TaskNotFound
from django_rtq.jobs.failure import Failure
from django_rtq.jobs.job import Job
from django_rtq.tasks.backoff import TEN_YEARS, delay_seconds
from django_rtq.tasks.task import Task

_OURS = str(Path(__file__).parent)
PARK_SECONDS = 30.0  # how long a job waits that this worker does not know the task of
LONGEST_ERROR, LONGEST_TRACEBACK = 2_000, 16_000  # characters that are kept


@dataclass(frozen=True, slots=True)
class Acked:
    """Done. The text is what is kept as the result; "" for nothing."""

    result: str


@dataclass(frozen=True, slots=True)
class Retried:
    """Once more, later."""

    error: BaseException
    delay_seconds: float
    is_counted: bool = True  # not for a job that could not even be tried here


@dataclass(frozen=True, slots=True)
class Buried:
    """Never again."""

    error: BaseException
    is_counted: bool = True


@dataclass(frozen=True, slots=True)
class Expired:
    """Nobody had started it in time."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """It was asked to stop, and did."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """This process does not know its task. The ledger makes of it what follows: see decide_unknown."""

    error: TaskNotFound


Outcome = Acked | Retried | Buried | Expired | Cancelled | Unknown


def decide(task: Task[Any, Any], error: BaseException, *, failures: int, max_attempts: int) -> Retried | Buried:
    """Say what follows from a run that ended in an error, after so many earlier failures. Changes nothing."""
    if isinstance(error, Bury) or failures + 1 >= max_attempts:
        return Buried(error)
    if isinstance(error, Retry):
        after = error.after_seconds
        return Retried(
            error,
            delay_seconds(task.backoff, failures + 1, error) if after is None else min(max(0.0, after), TEN_YEARS),
        )
    # SystemExit, CancelledError and the like say how a run ended, not what was wrong with it: retry_on is not asked.
    if isinstance(error, task.give_up_on) or (isinstance(error, Exception) and not isinstance(error, task.retry_on)):
        return Buried(error)
    return Retried(error, delay_seconds(task.backoff, failures + 1, error))


def decide_unknown(error: TaskNotFound, *, waited_seconds: float, longest_seconds: float) -> Retried | Buried:
    """A task that this process does not know: a newer worker may, so its jobs wait, but not for ever."""
    if waited_seconds >= longest_seconds:
        return Buried(error, is_counted=False)
    return Retried(error, PARK_SECONDS, is_counted=False)


def unknown_since(errors: Sequence[Mapping[str, Any]]) -> int | None:
    """Since when a job waits for a worker that knows its task, ms, by its failures; None: it has not met one yet
    that does not."""
    newest = errors[-1] if errors else {}
    at = newest.get("at")
    return at if newest.get("error_class") == _class_of(TaskNotFound) and isinstance(at, int) else None


def _class_of(kind: type[BaseException]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def error_line(error: BaseException, *, at_ms: int, attempt: int, worker: str, seconds: float = 0.0) -> str:
    """A failure as one line of JSON, cut to a bounded length. Never raises, whatever the exception does."""
    return Failure(
        at=at_ms,
        seconds=round(seconds, 6),
        attempt=attempt,
        worker=worker,
        error_class=_class_of(type(error)),
        error=_text(error)[:LONGEST_ERROR],
        traceback=_clean(_traceback(error))[-LONGEST_TRACEBACK:],
    ).line()


def send_failed(sender: type, job: Job | None, job_id: str, outcome: Retried | Buried) -> None:
    """Send job_retried or job_buried; without a job when its record cannot be read."""
    if isinstance(outcome, Retried):
        signals.job_retried.send_robust(
            sender, job=job, job_id=job_id, error=outcome.error, delay_seconds=outcome.delay_seconds
        )
    else:
        signals.job_buried.send_robust(sender, job=job, job_id=job_id, error=outcome.error)


def _text(error: BaseException) -> str:
    try:
        return _clean(str(error))
    except BaseException as trouble:  # noqa: BLE001 - it is the user's __str__
        return f"<its message could not be made: {type(trouble).__name__}>"


def _traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(type(error), error, of_the_task(error), limit=-50))
    except BaseException as trouble:  # noqa: BLE001 - it is the user's __str__ again
        return f"<the traceback could not be made: {type(trouble).__name__}>"


def of_the_task(error: BaseException) -> TracebackType | None:
    """The traceback of an error from the task's own code on: what lies above is ours, and no help to anybody."""
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None and entry.tb_frame.f_code.co_filename.startswith(_OURS):
        entry = entry.tb_next
    return entry


def _clean(text: str) -> str:
    """Without lone surrogates, which UTF-8 cannot carry."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()

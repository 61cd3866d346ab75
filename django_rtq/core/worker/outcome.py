"""The outcome of a run: decided here by pure functions, applied by the session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from django_rtq.core import signals
from django_rtq.core.conf.config import get_config
from django_rtq.core.jobs.failure import LONGEST_MESSAGE, format_error, write_failure
from django_rtq.core.jobs.job import PARK_SECONDS, Job
from django_rtq.core.tasks.options.backoff import delay_seconds, read_json
from django_rtq.core.tasks.task import Task
from django_rtq.core.validation import TEN_YEARS
from django_rtq.exceptions import Bury, Retry, TaskNotFound

_WORKER, _PACKAGE = str(Path(__file__).parent), str(Path(__file__).parents[2])
LONGEST_ERROR, LONGEST_TRACEBACK = 2_000, 16_000  # characters that are stored
MAX_FRAMES = 50


#: How Redis and the supervisor are told of an outcome: verbs of lua/settle.lua.
VERBS = ACKED, RETRIED, BURIED, EXPIRED, CANCELLED, SUSPENDED = "ack retry bury expire finish_cancel suspend".split()
UNKNOWN_TASK = "unknown_task"  # not registered in this process: the session calls decide_unknown() for it (D17)
#: What each counts as.
COUNTED_AS = {ACKED: ("done",), RETRIED: ("failed", "retried"), BURIED: ("failed", "dead"), EXPIRED: ("expired",)}


@dataclass(slots=True)  # not frozen: one is made for each job, and would take twice as long
class Outcome:
    """What follows from a run."""

    verb: str  # of VERBS, or UNKNOWN_TASK
    error: Any = None  # the exception with which it failed
    seconds: float = 0.0  # until it runs again; how long it sleeps or waits at the most
    is_counted: bool = True  # of a failure. False: the job could not be tried here
    text: str = ""  # of a success, the stored outcome: "" to store none; what it waits for, as lua/lib/steps.lua has it


def decide(
    task: Task[Any, Any], error: BaseException, *, failures: int, max_attempts: int, options: Mapping[str, Any]
) -> Outcome:
    """Decide what follows from a failed run, after so many earlier failures. `options`: of its record. Pure."""
    if isinstance(error, Retry) and error.max_attempts is not None:
        max_attempts = error.max_attempts
    if isinstance(error, Bury) or failures + 1 >= max_attempts:
        return Outcome(BURIED, error)
    if isinstance(error, Retry) and error.after_seconds is not None:
        return Outcome(RETRIED, error, min(max(0.0, error.after_seconds), TEN_YEARS))
    # retry_on applies to Exceptions only: SystemExit, CancelledError and the like are retried.
    is_final = isinstance(error, task.give_up_on) or (
        isinstance(error, Exception) and not isinstance(error, task.retry_on)
    )
    if is_final and not isinstance(error, Retry):
        return Outcome(BURIED, error)
    backoff = read_json(options["backoff"]) if "backoff" in options else task.backoff
    return Outcome(RETRIED, error, delay_seconds(backoff, failures + 1, error))


def decide_unknown(error: TaskNotFound, *, waited_seconds: float, longest_seconds: float) -> Outcome:
    """Decide for a task that is not registered here: retry, as a newer worker may know it; bury after a time limit."""
    if waited_seconds >= longest_seconds:
        return Outcome(BURIED, error, is_counted=False)
    return Outcome(RETRIED, error, PARK_SECONDS, is_counted=False)


def unknown_since(errors: Sequence[Mapping[str, Any]]) -> int | None:
    """Since when a job waits for a worker that knows its task, ms, by its failures; None: it has not met one yet
    that does not."""
    newest = errors[-1] if errors else {}
    at = newest.get("at")
    return at if newest.get("error_class") == _class_name(TaskNotFound) and isinstance(at, int) else None


def _class_name(kind: type[BaseException]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def failure_line(
    error: BaseException, *, at_ms: int, attempt: int, worker: str, seconds: float = 0.0, together: int = 1
) -> str:
    """A failure as one line of JSON of bounded length. Never raises, whatever the exception does."""
    message = _made("its message", lambda: str(error)[:LONGEST_MESSAGE])
    trace = _made("the traceback", lambda: format_error(error, task_traceback(error), max_frames=MAX_FRAMES))
    return write_failure(
        at=at_ms,
        seconds=round(seconds, 6),
        attempt=attempt,
        worker=worker,
        error_class=_class_name(type(error)),
        error=message[:LONGEST_ERROR],
        traceback=trace[-LONGEST_TRACEBACK:],
        together=together,
        version=get_config().version or "",
    )


def send_failed(sender: type, job: Job | None, job_id: str, outcome: Outcome) -> None:
    """Send job_retried or job_buried. The job is None if its record cannot be read."""
    if outcome.verb == RETRIED:
        signals.job_retried.send_robust(
            sender, job=job, job_id=job_id, error=outcome.error, delay_seconds=outcome.seconds
        )
    else:
        signals.job_buried.send_robust(sender, job=job, job_id=job_id, error=outcome.error)


def _made(what: str, make: Callable[[], str]) -> str:
    try:
        return _clean(make())
    except BaseException as trouble:  # noqa: BLE001 - the exception's own __str__
        return f"<{what} could not be made: {type(trouble).__name__}>"


def task_traceback(error: BaseException) -> TracebackType | None:
    """The traceback without the frames of this package above the code of the task."""
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None and _is_in(_WORKER, entry):
        entry = entry.tb_next
    whole = entry
    while entry is not None and _is_in(_PACKAGE, entry):
        entry = entry.tb_next
    return entry or whole  # the task may be one of this package


def _is_in(folder: str, entry: TracebackType) -> bool:
    return entry.tb_frame.f_code.co_filename.startswith(folder)


def _clean(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()

"""Runs one job, from claimed to its outcome.

1. read its record and find its task
2. drop it if it has expired
3. call the task
4. decide what follows: ack, retry or bury

The session sends the outcome to Redis together with the next claim, in one round trip: see session.py.
"""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections, reset_queries
from django.db.backends.signals import connection_created

from django_rtq.core import signals
from django_rtq.core.conf.config import Config, is_debug
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.context import CurrentRun, current_run, running
from django_rtq.core.jobs.job import Job, about
from django_rtq.core.jobs.outcome import write_succeeded, write_version
from django_rtq.core.worker.outcome import (
    ACKED,
    BURIED,
    CANCELLED,
    EXPIRED,
    RETRIED,
    SUSPENDED,
    UNKNOWN_TASK,
    Outcome,
    decide,
    task_traceback,
)
from django_rtq.core.worker.process.progress import ProgressWriter
from django_rtq.core.worker.process.running.interrupts import CoroutineInterrupts
from django_rtq.core.worker.run import Run
from django_rtq.core.worker.shared_memory import SharedState
from django_rtq.exceptions import JobCancelled, JobSuspended, PayloadError, TaskNotFound

logger = logging.getLogger("django_rtq")

Limit = Callable[[float | None, bytes], AbstractContextManager[Any]]

OUTAGE_SECONDS = 1.0  # before a job runs again that could not read what it needs
_NOTHING_KEPT = Outcome(ACKED)


class _ThreadContext(threading.local):
    """Per thread: the current run, and a context that has it."""

    def __init__(self, context: contextvars.Context) -> None:
        of_process, here = context.copy(), CurrentRun()
        of_process.run(current_run.set, here)
        self.both = here, of_process


def call_task(job: Job) -> Any:
    """Call the function of a task. Middleware may have changed the arguments."""
    run: Any = running()
    args = (run.context, *job.args) if run.task.takes_context else job.args
    return run.task.body(*args, **job.kwargs)


async def acall_task(job: Job) -> Any:
    """The same of a coroutine function."""
    return await call_task(job)


class Executor:
    """Runs jobs and returns their outcomes, so that they do not affect later jobs. Any thread may use it.

    Context variables (language, time zone and others): each function runs in a copy of the context in which this object
    was created, and the signals of its run are sent in the same copy. Database connections: closed if they are unusable
    or too old, as Django does around a request. Those of a coroutine are its own, and closed when it ends.
    """

    uses_database = False  # a job has opened a connection

    def __init__(
        self, config: Config, shared: SharedState, limit: Limit, progress: ProgressWriter | None = None
    ) -> None:
        self.config = config
        self.shared = shared
        self.limit = limit
        self._progress = progress
        self._wrapped: dict[Callable[[Job], Any], Callable[[Job], Any]] = {}
        self._lock = threading.Lock()
        # Results of so many characters are not too large, whatever they are made of.
        self._small_result = config.max_payload_bytes // 4
        self._version = write_version(config.version)
        self.coroutines = CoroutineInterrupts()
        self._thread_context = _ThreadContext(contextvars.copy_context())
        self._is_debug = is_debug()
        # clean_up() takes some microseconds even without connections, so it is skipped until one is opened.
        connection_created.connect(self._note_connection, weak=False, dispatch_uid=f"rtq-executor-{id(self)}")

    def wrapped(self, innermost: Callable[[Job], Any]) -> Callable[[Job], Any] | None:
        """RTQ["MIDDLEWARE"] around call_task() or acall_task(), if there is some. Calls its factories once.

        Takes a lock, so no time limit may interrupt it. Raises ConfigurationError.
        """
        if not self.config.middleware:
            return None
        with self._lock:
            if innermost not in self._wrapped:
                from django_rtq.core.middleware import wrap

                self._wrapped[innermost] = wrap(self.config.middleware, "run", innermost)
            return self._wrapped[innermost]

    def open(self, run: Run) -> Outcome | None:
        """Steps 1 and 2. Returns an outcome if the job cannot run, else None."""
        try:
            if not run.is_open:
                run.open()
        except TaskNotFound as error:
            return Outcome(UNKNOWN_TASK, error.with_traceback(None))  # no code of the task was called
        except (PayloadError, ValueError, KeyError, TypeError, AttributeError) as error:
            return Outcome(BURIED, error, is_counted=False)
        if run.task.exactly_once:
            run.shared = self.shared
        return Outcome(EXPIRED) if run.expires_ms and run.is_expired else None

    def begin(self, run: Run) -> None:
        """A run starts, in this thread."""
        if signals.job_started.receivers:
            self.prepare_context(run).run(_send_started, run)
        if run.may_run_once:
            self.shared.set_runs_once(run.entry)
        run.progress = self._progress

    def execute(self, run: Run) -> Outcome:
        """Steps 3 and 4, for a function. Raises MemoryError: then the process has to exit."""
        task = run.task
        self.begin(run)
        limit = run.time_limit(self.config)
        started = time.perf_counter()
        try:
            args = run.call_args() if run.takes_results or task.takes_context else run.args
            around = self.wrapped(call_task) if self.config.middleware else None  # before the limit: it takes a lock
            if limit is not None:
                self.set_kill_deadline(limit, run.entry)
            with self.limit(limit, run.job_id) as run.interruptible:
                result = (
                    self.call(run, task.body, args, run.kwargs)
                    if around is None or task.internal
                    else self.call(run, around, [run.job_for_middleware()], {})
                )
            if run.part is not None and run.part.has_asked:
                run.part.end(run)
        except MemoryError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a job raises is its failure, SystemExit as well
            outcome = self.failed(run, error, time.perf_counter() - started)
        else:
            outcome = self.succeeded(run, result, time.perf_counter() - started)
        if self.uses_database:
            self.clean_up()
        return outcome

    async def execute_async(self, run: Run) -> Outcome:
        """Steps 3 and 4, for a coroutine function."""
        current_run.set(CurrentRun(run))
        if signals.job_started.receivers:
            # Not asend_robust(): it calls receivers in contexts of their own, and the job has to see what they set.
            await sync_to_async(_send_started)(run)
        if run.may_run_once:
            self.shared.set_runs_once(run.entry)
        run.progress = self._progress
        limit = run.time_limit(self.config)
        if limit is not None:
            self.set_kill_deadline(limit, run.entry)
        started = time.perf_counter()
        try:
            args = await sync_to_async(run.call_args)() if run.takes_results else run.call_args()
            around = self.wrapped(acall_task)
            called = around(run.job_for_middleware()) if around else run.task.body(*args, **run.kwargs)
            result = await self.coroutines.limited(called, limit, run.job_id)
            if run.part is not None and run.part.has_asked:
                await sync_to_async(run.part.end)(run)
        except MemoryError:
            raise
        except BaseException as error:  # noqa: BLE001 - a CancelledError of the job itself as well
            seconds = time.perf_counter() - started
            if run.part is not None:
                await run.part.aleave()
            return self.failed(run, error, seconds)
        return self.succeeded(run, result, time.perf_counter() - started)

    def set_kill_deadline(self, seconds: float, entry: int) -> None:
        """Let the supervisor kill this process if the job still runs a while after this time."""
        self.shared.set_deadline(time.monotonic() + seconds + self.config.kill_grace_seconds, entry)

    def failed(self, run: Run, error: BaseException, seconds: float) -> Outcome:
        """What follows from what the function has raised."""
        run.seconds = seconds
        cause, failures = error, run.failures
        if run.part is not None:
            cause, failures = run.part.leave(error, failures)
        if run.committed is not None:
            return self._failed_after_commit(run, run.committed, error)
        if isinstance(error, JobCancelled) or self.shared.is_cancel_requested(run.job_id, run.entry):
            return Outcome(CANCELLED)  # whatever it raised when it was interrupted
        if isinstance(cause, JobSuspended) and cause.waits_for:
            return Outcome(SUSPENDED, seconds=cause.seconds, text=cause.waits_for)
        cause.__traceback__ = task_traceback(cause)
        if run.outage is not None:
            return Outcome(RETRIED, cause, OUTAGE_SECONDS, is_counted=False)
        most = run.max_attempts(self.config)
        return decide(run.task, cause, failures=failures, max_attempts=most, options=run.options)

    def succeeded(self, run: Run, result: Any, seconds: float) -> Outcome:
        """What follows from what the function has returned."""
        run.seconds = seconds
        if not run.result_ttl(self.config) and not run.keeps_result:
            return _NOTHING_KEPT
        try:
            text = "null" if result is None else serializer.dumps(result, what=f"the result of {run.task_name}")
            if len(text) > self._small_result or run.keeps_result:
                run.check_result(text, self.config)
            if run.part is not None and run.keeps_result:
                run.part.check_room(run)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - e.g. a lazy string whose function fails
            if run.committed is not None:
                return self._failed_after_commit(run, run.committed, error)
            return Outcome(BURIED, error)  # another run would return the same result
        return self._acked(run, text)

    def _failed_after_commit(self, run: Run, result: str, error: BaseException) -> Outcome:
        """A job of a task with exactly_once has succeeded when it has committed, whatever fails after that."""
        error.__traceback__ = task_traceback(error)
        logger.error(
            "job %s has committed, so it has succeeded. After the commit it raised: %r", run.id, error,
            exc_info=error, extra=about(run.job),
        )  # fmt: skip
        return self._acked(run, result) if run.result_ttl(self.config) or run.keeps_result else _NOTHING_KEPT

    def _acked(self, run: Run, text: str) -> Outcome:
        # No name of a worker needs an escape.
        details = f',"worker":"{run.worker}"{self._version}{run.details(keep_args=self.config.keep_args)}'
        return Outcome(ACKED, text=write_succeeded(run.task_name, run.client, run.attempt, run.seconds, text, details))

    # -- what jobs share

    def call(self, run: Run, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call a function in the context of a run, in which its job is the current one."""
        variables = self.prepare_context(run) if run.variables is None else run.variables
        return variables.run(function, *args, **kwargs)

    def prepare_context(self, run: Run) -> contextvars.Context:
        """Create the context of a run, in the thread that will call its function."""
        here, context = self._thread_context.both
        here.run = run
        run.variables = context.copy()
        return run.variables

    def clean_up(self, *, is_thread_ending: bool = False) -> None:
        """Close unusable and old connections, in the thread that used them; all of them if the thread ends. Like
        close_old_connections(), but an error of close() is not a failure of the job.
        """
        if self.uses_database:
            for connection in connections.all(initialized_only=True):
                try:
                    connection.close() if is_thread_ending else connection.close_if_unusable_or_obsolete()
                    if connection.in_atomic_block:  # otherwise later jobs would write into it
                        logger.error("a job left a transaction open on database %r: rolled back", connection.alias)
                        connection.close()
                        del connections[connection.alias]  # the wrapper still believes it is in a transaction
                except Exception:  # whatever a driver raises
                    logger.exception("cannot close a connection to database %r: dropped it", connection.alias)
                    del connections[connection.alias]
            if self._is_debug:
                reset_queries()

    def close(self) -> None:
        """Disconnect from Django's signal."""
        connection_created.disconnect(dispatch_uid=f"rtq-executor-{id(self)}")

    def _note_connection(self, **kwargs: Any) -> None:
        self.uses_database = True


def _send_started(run: Run) -> None:
    signals.job_started.send_robust(Executor, job=run.job)

"""One job, from claimed to an outcome.

1. read its record and find the task that it names
2. drop it when its last moment to start is over
3. call the task
4. decide what follows

What is told to the broker (ack, retry, bury) travels with the next claim, in one round trip: see ledger.py.
"""

from __future__ import annotations

import contextvars
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from asgiref.sync import sync_to_async

from django_rtq import signals
from django_rtq.conf import Config
from django_rtq.exceptions import JobCancelled, PayloadError, TaskNotFound
from django_rtq.jobs import serializer
from django_rtq.jobs.context import CurrentRun, place
from django_rtq.jobs.outcome import write_succeeded
from django_rtq.worker.outcome import Acked, Buried, Cancelled, Expired, Outcome, Unknown, decide, of_the_task
from django_rtq.worker.process.interrupts import Coroutines
from django_rtq.worker.process.isolation import Isolation
from django_rtq.worker.process.progress import ProgressWriter
from django_rtq.worker.process.run import Run
from django_rtq.worker.shared_memory import SharedState

Limit = Callable[[float | None, bytes], AbstractContextManager[None]]

_NOTHING_KEPT = Acked("")
_SIZE_ADVICE = "Store it and return a key, or set result_ttl=0."


class Executor:
    """Runs jobs and says what follows. Its methods may be called from any thread."""

    def __init__(
        self,
        config: Config,
        page: SharedState,
        isolation: Isolation,
        limit: Limit,
        reports: ProgressWriter | None = None,
    ) -> None:
        self._config = config
        self._page = page
        self._isolation = isolation
        self._limit = limit
        self._reports = reports
        self.coroutines = Coroutines()

    def open(self, run: Run) -> Outcome | None:
        """Steps 1 and 2. None: it can be called."""
        try:
            run.open()
        except TaskNotFound as error:
            return Unknown(error)
        except (PayloadError, ValueError, KeyError, TypeError, AttributeError) as error:
            return Buried(error, is_counted=False)
        return Expired() if run.expires_ms and run.is_expired else None

    def execute(self, run: Run) -> Outcome:
        """Steps 3 and 4, for a function. Raises MemoryError: this process is lost."""
        task = run.task
        assert task is not None
        if signals.job_started.receivers:
            self._isolation.begin(run).run(_tell_started, run)
        if run.may_run_once:
            self._page.note_once(run.entry)
        run.reports = self._reports
        limit = run.time_limit(self._config)
        started = time.perf_counter()
        try:
            args = (run.context, *run.args) if task.takes_context else run.args
            if limit is not None:
                self._announce_limit(limit, run.entry)
            with self._limit(limit, run.job_id):
                result = self._isolation.call(run, *args)
        except MemoryError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a job raises, SystemExit too, is its failure
            run.seconds = time.perf_counter() - started
            outcome = self._failed(run, error)
        else:
            run.seconds = time.perf_counter() - started
            outcome = self._succeeded(run, result)
        self._isolation.clean_up()
        return outcome

    async def execute_async(self, run: Run) -> Outcome:
        """Steps 3 and 4, for a coroutine function."""
        task = run.task
        assert task is not None
        place.set(CurrentRun(run))
        if signals.job_started.receivers:
            _tell_started(run)
        if run.may_run_once:
            self._page.note_once(run.entry)
        run.reports = self._reports
        limit = run.time_limit(self._config)
        if limit is not None:
            self._announce_limit(limit, run.entry)
        started = time.perf_counter()
        try:
            args = (run.context, *run.args) if task.takes_context else run.args
            result = await self.coroutines.limited(task.func(*args, **run.kwargs), limit, run.job_id)
        except MemoryError:
            raise
        except BaseException as error:  # noqa: BLE001 - also a CancelledError of the job's own making
            run.seconds = time.perf_counter() - started
            outcome = self._failed(run, error)
        else:
            run.seconds = time.perf_counter() - started
            outcome = self._succeeded(run, result)
        if self._isolation.uses_database:
            await sync_to_async(self._isolation.clean_up)()  # connections live in the thread that Django uses for them
        run.variables = contextvars.copy_context()
        return outcome

    def _announce_limit(self, seconds: float, entry: int) -> None:
        self._page.limit(time.monotonic() + seconds + self._config.kill_grace_seconds, entry)

    def _failed(self, run: Run, error: BaseException) -> Outcome:
        assert run.task is not None
        if isinstance(error, JobCancelled) or self._page.is_to_stop(run.job_id, run.entry):
            return Cancelled()  # whatever it made of being interrupted
        error.__traceback__ = of_the_task(error)
        return decide(run.task, error, failures=run.failures, max_attempts=run.max_attempts(self._config))

    def _succeeded(self, run: Run, result: Any) -> Outcome:
        kept_seconds = run.result_ttl(self._config)
        if not kept_seconds:
            return _NOTHING_KEPT
        try:
            text = "null" if result is None else serializer.dumps(result, what=f"the result of {run.task_name}")
            serializer.check_size(run.task_name, "the result has", text, self._config.max_payload_bytes, _SIZE_ADVICE)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - a lazy text, say, whose function fails
            return Buried(error)  # it ran: to run it again would not make the result any better
        return Acked(write_succeeded(run.task_name, run.client, run.attempt, run.seconds, text))


def _tell_started(run: Run) -> None:
    signals.job_started.send_robust(Executor, job=run.job)

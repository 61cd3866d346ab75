"""One run of a job: what was claimed, opened so that it can be called."""

from __future__ import annotations

from contextvars import Context
from functools import cached_property
from typing import Any

from django_rtq.conf import Config
from django_rtq.jobs.context import JobContext
from django_rtq.jobs.job import Job
from django_rtq.jobs.record import read_call, read_record
from django_rtq.tasks import registry
from django_rtq.tasks.task import Task
from django_rtq.worker.process.progress import ProgressWriter
from django_rtq.worker.shared_entries import LONGEST_ID


class Run:
    """A claimed job. Making it costs little; what only failures, signals and contexts need is made when asked for."""

    reports: ProgressWriter | None = None  # where the job says how far it is
    client = b""  # until the record was read
    entry = 0  # its own on the page
    variables: Context | None = None  # the context variables of this run: of its function and of receivers of signals

    def __init__(
        self,
        queue: str,
        job_id: bytes,
        record: bytes,
        *,
        worker: str,
        now_ms: int,
        counts: tuple[int, int] = (0, 0),
    ) -> None:
        self.queue = queue
        self.job_id = job_id
        self.record = record
        self.worker = worker  # under which name it was claimed
        self.now_ms = now_ms
        self.failures, self.crashes = counts  # earlier runs that did not end well
        self.seconds = 0.0  # how long the function ran
        self.may_run_once = False  # a run that did not end is never followed by another
        self.task: Task[Any, Any] | None = None

    def open(self) -> None:
        """Read the record and find the task. Raises PayloadError, ValueError or KeyError, and TaskNotFound."""
        if len(self.job_id) > LONGEST_ID:
            raise ValueError(f"its id has {len(self.job_id)} bytes, and {LONGEST_ID} are the most.")
        (
            self.client, max_crashes, self.ready_ms, self.expires_ms,
            self.task_name, self.args, self.kwargs, self.options,
        ) = read_call(self.record)  # fmt: skip
        self.may_run_once = max_crashes == b"0"
        if self.options or self.client:
            _check(self.options, self.client)
        self.task = registry.get_task(self.task_name)

    @property
    def attempt(self) -> int:
        """The number of this run, from 1."""
        return self.failures + self.crashes + 1

    @property
    def is_expired(self) -> bool:
        """Nobody started it in time. What has been started once does not expire."""
        return 0 < self.expires_ms <= self.now_ms and self.attempt == 1

    @property
    def wait_ms(self) -> int:
        """How long it waited for its first run."""
        return max(0, self.now_ms - self.ready_ms) if self.attempt == 1 else 0

    @cached_property
    def job(self) -> Job:
        """The job as a value. Raises PayloadError or ValueError for a record that cannot be read."""
        return read_record(self.job_id.decode(), self.queue, self.record, failures=self.failures, crashes=self.crashes)

    @property
    def context(self) -> JobContext:
        """What a task with takes_context gets."""
        return JobContext(self.job_id.decode(), self.attempt, self.queue, self.client.decode(), self._report)

    def _report(self, line: str) -> None:
        if self.reports is not None:
            self.reports.say(self.worker, self.queue, self.job_id.decode(), line)

    def max_attempts(self, config: Config) -> int:
        """Runs that may fail: of this call, of the task, or of the settings."""
        return self._option("max_attempts", config.max_attempts) or 1

    def time_limit(self, config: Config) -> float | None:
        """Seconds that it may run."""
        limit: float | None = self._option("time_limit", config.time_limit)
        return limit

    def result_ttl(self, config: Config) -> float:
        """Seconds that its result is kept."""
        ttl: float = self._option("result_ttl", config.result_ttl)
        return ttl

    def _option(self, name: str, default: Any) -> Any:
        if self.options and name in self.options:
            return self.options[name]
        of_task = getattr(self.task, name, None)
        return default if of_task is None else of_task


def _check(options: dict[str, Any], client: bytes) -> None:
    """What would only be noticed after the run. Raises ValueError."""
    client.decode()
    for name, value in options.items():
        if name in ("max_attempts", "time_limit", "result_ttl") and not isinstance(value, int | float | None):
            raise ValueError(f"the {name} of the record is {value!r}, which is no number.")

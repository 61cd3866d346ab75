"""One run of a claimed job: its record, its task and its options."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context
from dataclasses import replace
from functools import cached_property
from typing import Any

from django_rtq.core.broker.settlement import Report
from django_rtq.core.broker.task_backends import alias_of
from django_rtq.core.broker.worker_broker import Claimed
from django_rtq.core.conf.config import Config
from django_rtq.core.extension import parts, required
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.context import JobContext
from django_rtq.core.jobs.job import Job
from django_rtq.core.jobs.outcome import write_call, write_cancelled, write_details, write_expired
from django_rtq.core.jobs.record import read_call, read_record
from django_rtq.core.tasks import registry
from django_rtq.core.tasks.options.backoff import read_json
from django_rtq.core.tasks.task import Task
from django_rtq.core.worker.outcome import BURIED, CANCELLED, EXPIRED, RETRIED, Outcome, failure_line
from django_rtq.core.worker.shared_memory import MAX_ID_BYTES, TOMBSTONE_MS, SharedState
from django_rtq.exceptions import BrokerUnavailable, InvalidTask


class Run:
    """A claimed job. Cheap to create: what only failures, signals and contexts need is computed on demand."""

    progress: Any = None  # a ProgressWriter, which takes reports of the job's progress
    client = b""  # until the record was read
    interruptible: Any = None  # while its function runs: end() keeps its time limit and a cancellation off
    committed: str | None = None  # its result as JSON, if its transaction with exactly_once has committed
    shared: SharedState | None = None  # where a task with exactly_once notes its commit
    entry = 0  # its index in shared memory
    task: Task[Any, Any]  # set by open()
    is_open = False  # the record was read, and the task found
    others: Sequence[Run] = ()  # which the same call of the function gets, behind this one
    together_failed = 1  # jobs in the call in which it failed
    history = ""  # its earlier failures, one JSON a line, if a task with keeps_call has read them
    variables: Context | None = None  # of its function, and of the receivers of its signals
    log_lines: deque[Any] | None = None  # what it has logged and nobody has sent; None: nothing so far
    log_over_ms: int | None = None  # how long its lines are kept, if the job is over
    part: Any = None  # what an app has to do with it: see workflows/run_part.py
    takes_results = False  # its arguments have results of other jobs
    keeps_result = False  # other jobs take its result
    outage: BrokerUnavailable | None = None  # what this package asked Redis for it, and got no answer

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
        self.worker = worker  # the name under which it was claimed
        self.now_ms = now_ms
        self.failures, self.crashes = counts  # earlier runs
        self.seconds = 0.0  # how long the function ran
        self.may_run_once = False  # max_crashes=0: never run it again if a run was cut short

    def open(self) -> None:
        """Read the record and find the task. Raises PayloadError, ValueError or KeyError, and TaskNotFound."""
        if len(self.job_id) > MAX_ID_BYTES:
            raise ValueError(f"its id has {len(self.job_id)} bytes, and {MAX_ID_BYTES} are the most.")
        if not self.job_id.isascii():
            raise ValueError("its id has other characters than ASCII.")
        (
            self.client, max_crashes, self.ready_ms, self.expires_ms,
            self.task_name, self.args, self.kwargs, self.options,
        ) = read_call(self.record)  # fmt: skip
        self.may_run_once = max_crashes == b"0"
        if self.options or self.client:
            _check(self.options, self.client)
        if self.job_id[12:13] == b"8":  # an app may have to do with it. Calls for each job would cost more
            self._open_part().open(self)
        task = registry.find_registered(self.task_name)
        if task is None:
            task = registry.get_task(self.task_name)
            self.task_name = task.name  # the record may have an alias
        self.task = task
        self.is_open = True

    def call_args(self) -> Sequence[Any]:
        """The positional arguments of its function. Gets those that are results of other jobs.

        Then it raises BrokerError, and WrongState for a result that was lost.
        """
        if self.takes_results:
            with self.noting_outage():
                self.args, self.kwargs = self._open_part().read_args(self)
            self.takes_results = False
        return (self.context, *self.args) if self.task.takes_context else self.args

    @property
    def together(self) -> Sequence[Run]:
        """The jobs that one call of the function gets: this one, and the others."""
        return (self, *self.others)

    @property
    def id(self) -> str:
        """The id as text, also if it is none."""
        return self.job_id.decode(errors="replace")

    @property
    def attempt(self) -> int:
        """The number of this run, from 1."""
        return self.failures + self.crashes + 1

    @property
    def is_expired(self) -> bool:
        """Whether it was not started in time. A job that was started once does not expire."""
        return 0 < self.expires_ms <= self.now_ms and self.attempt == 1

    @property
    def wait_ms(self) -> int:
        """How long it waited for its first run."""
        waited_ms = self.now_ms - self.ready_ms
        return 0 if waited_ms < 0 or self.failures or self.crashes else waited_ms

    @cached_property
    def job(self) -> Job:
        """The job as a value. Raises PayloadError or ValueError if the record cannot be read."""
        job = read_record(self.id, self.queue, self.record, failures=self.failures, crashes=self.crashes)
        return replace(job, task=self.task.name) if self.is_open and job.task != self.task.name else job

    def job_for_middleware(self) -> Job:
        """The job with the arguments that its function gets, so that middleware can change them.

        `job` has others: what a function does to its arguments must not hide secrets from those who redact them.
        """
        options = dict(self.options)
        priority, max_crashes, _ = self.record.split(b" ", 2)
        return Job(
            id=self.id,
            task=self.task_name,
            queue=self.queue,
            client=self.client.decode(),
            priority=int(priority.rstrip(b"+")),
            args=list(self.args),
            kwargs=self.kwargs,
            attempt=self.attempt,
            failures=self.failures,
            max_crashes=int(max_crashes),
            ready_ms=self.ready_ms,
            expires_ms=self.expires_ms,
            headers=options.pop("headers", {}),
            options=options,
        )

    @property
    def context(self) -> JobContext:
        """The context argument of a task with takes_context."""
        headers = self.options.get("headers", {})
        return JobContext(
            job_id=self.id,
            attempt=self.attempt,
            queue_name=self.queue,
            client=self.client.decode(),
            worker=self.worker,
            backend=alias_of(self.progress.backend) if self.progress is not None else "",
            task_name=self.task_name,
            headers=headers,
            _report=self._report,
            _steps=lambda: self._open_part().steps(self),
            _flow=lambda: self._open_part().workflow(self),
        )

    def _open_part(self) -> Any:
        if self.part is None:
            self.part = required("run_part")()
        return self.part

    @contextmanager
    def noting_outage(self) -> Iterator[None]:
        """Within this, the package itself asks Redis: an outage is no failure of the job."""
        try:
            yield
        except BrokerUnavailable as error:
            self.outage = error
            raise

    @property
    def body(self) -> str:
        """The JSON of its record."""
        return self.record.partition(b"\n")[2].decode()

    def details(self, *, keep_args: bool) -> str:
        """What its outcome tells of the call. `keep_args`: as the settings say it."""
        task = self.task
        if task.keeps_call:
            return write_details(self.now_ms, self.body, self.history)
        return write_call(self.body) if (keep_args if task.keep_args is None else task.keep_args) else ""

    def note_commit(self, result: str) -> None:
        """Its transaction with exactly_once has committed, with this result as JSON: it cannot fail any more."""
        self.committed = result
        if self.shared is not None:
            self.shared.set_committed(self.entry)

    def _report(self, line: str) -> None:
        if self.progress is not None:
            for run in self.together:
                self.progress.report(run.worker, run.queue, run.id, line)

    def max_attempts(self, config: Config) -> int:
        """The option of the call, the task or the settings."""
        return self._option("max_attempts", config.max_attempts) or 1

    def time_limit(self, config: Config) -> float | None:
        """Seconds that it may run. None: no limit."""
        if self.options:
            limit: float | None = self._option("time_limit", config.time_limit)
            return limit
        of_task = self.task.time_limit
        return config.time_limit if of_task is None else of_task

    def result_ttl(self, config: Config) -> float:
        """How long its result is kept, in seconds."""
        if self.options:
            ttl: float = self._option("result_ttl", config.result_ttl)
            return ttl
        of_task = self.task.result_ttl
        return config.result_ttl if of_task is None else of_task

    def check_result(self, text: str, config: Config) -> None:
        """Raise PayloadTooLarge for a result, as JSON, that is too large to be kept."""
        if self.part is not None and self.keeps_result:
            self.part.check_result(self, text, config)
        advice = "Store it and return a key, or set result_ttl=0."
        serializer.check_size(self.task_name, "the result has", text, config.max_payload_bytes, advice)

    def report(self, outcome: Outcome, config: Config) -> Report:
        """What Redis is told if it has not succeeded."""
        verb, seconds, text = outcome.verb, outcome.seconds, outcome.text
        if verb in (RETRIED, BURIED):
            at_ms = self.now_ms + int(self.seconds * 1000)
            text = failure_line(
                outcome.error, at_ms=at_ms, attempt=self.attempt, worker=self.worker, seconds=self.seconds,
                together=self.together_failed,
            )  # fmt: skip
        elif verb == EXPIRED:
            seconds, text = TOMBSTONE_MS / 1000, write_expired(self.task_name)
        elif verb == CANCELLED:
            seconds = max(self.result_ttl(config), TOMBSTONE_MS / 1000)
            text = write_cancelled(self.task_name, self.attempt)
        return Report(verb, self.job_id, int(seconds * 1000), text.encode(), int(outcome.is_counted))

    def _option(self, name: str, default: Any) -> Any:
        if name in self.options:
            return self.options[name]
        of_task = getattr(self.task, name, None)
        return default if of_task is None else of_task


def runs_of(claimed: Claimed, worker: str) -> list[Run]:
    """The jobs of one claim in a queue."""
    queue, now_ms, counts = claimed.queue, claimed.now_ms, claimed.counts
    return [
        Run(queue, job_id, record, worker=worker, now_ms=now_ms, counts=counts.get(number, (0, 0)))
        for number, (job_id, record) in enumerate(zip(claimed.ids, claimed.records, strict=True))
    ]


def make_metrics(dump: bytes = b"") -> Any:
    """What counts runs since the last report of a process, as an app does it: see console/run_metrics.py. None: no app
    does. `dump`: as another process wrote it, to go on."""
    return next((made(dump) for made in parts("run_metrics")), None)


def _check(options: dict[str, Any], client: bytes) -> None:
    """Find errors that would otherwise come up after the run. Raises ValueError."""
    client.decode()
    for name, value in options.items():
        if name in ("max_attempts", "time_limit", "result_ttl") and not isinstance(value, int | float | None):
            raise ValueError(f"the {name} of the record is {value!r}, which is no number.")
        if name == "backoff":
            try:
                read_json(value)
            except (InvalidTask, TypeError) as error:
                raise ValueError(f"the backoff of the record is {value!r}: {error}") from error
        if name == "headers" and not isinstance(value, dict):
            raise ValueError("the headers of the record are not an object.")

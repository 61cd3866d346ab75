"""eager(): runs each job at once, where it is enqueued."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from django_rtq.broker.messages import NewJob, UniqueJob
from django_rtq.conf.config import get_config
from django_rtq.exceptions import JobNotFound, WrongState
from django_rtq.handle import JobHandle
from django_rtq.inspector.details import JobDetails
from django_rtq.jobs.events import written_event
from django_rtq.jobs.job import CancelAnswer, JobState
from django_rtq.jobs.record import Header
from django_rtq.testing.caller_executor import CallerExecutor, UnlimitedRun
from django_rtq.testing.finished_job import FinishedJob, details_of, raise_foreign_error
from django_rtq.testing.substitute import Substitute
from django_rtq.validation import TEN_YEARS
from django_rtq.worker.outcome import Outcome, Retried, Suspended, UnknownTask
from django_rtq.worker.process.outcome_recorder import send_outcome
from django_rtq.worker.process.run import Run
from django_rtq.worker.shared_memory import SharedState

MAX_DEPTH = 40  # jobs that run inside each other


def eager(
    *,
    retries: bool = False,
    time_limits: bool = False,
    propagate: bool = True,
    events: Mapping[str, Any] | None = None,
) -> EagerJobs:
    """Run the jobs of a block or test at once, in the thread and transaction that enqueue them, without Redis.

    Arguments and results go through JSON. Delayed jobs run at once, too.

    `retries`: run a job that fails again, without a delay, until it succeeds or is dead. `time_limits`: enforce time
    limits, in the main thread with SIGALRM. `propagate`: delay() raises what the last run of the job raised. Otherwise
    the handle and the list of runs tell. `events`: what jobs get that wait for an event of that name. Sleeps are over
    at once, and so are waits with a time-out for events that are not there. Other jobs wait until send() gives it.
    """
    return EagerJobs(retries=retries, time_limits=time_limits, propagate=propagate, events=events or {})


@dataclass
class _UniqueOwner:
    """A unique job that runs."""

    id: str
    successor: UniqueJob | None = None  # runs after it


class EagerJobs(Substitute, Sequence[FinishedJob]):
    """The runs so far, in the order in which they ended."""

    name = "eager()"

    def __init__(self, *, retries: bool, time_limits: bool, propagate: bool, events: Mapping[str, Any]) -> None:
        super().__init__()
        self._events = {name: written_event(name, value) for name, value in events.items()}
        self._retries = retries
        self._run_class = Run if time_limits else UnlimitedRun
        self._propagate = propagate
        self.clear()

    def begin(self) -> None:
        super().begin()
        self._executor = CallerExecutor(get_config(), SharedState(1))

    def make_handle(self, job_id: str, queue_name: str, *, duplicate: bool = False, backend: str = "") -> JobHandle:
        """A handle that knows how the job ended, also after the block."""
        handle = super().make_handle(job_id, queue_name, duplicate=duplicate, backend=backend)
        if job_id in self._details:
            handle.refresh()
        else:
            self._early_handles[job_id] = handle
        return handle

    def clear(self) -> None:
        """Forget the runs so far."""
        self._runs: list[FinishedJob] = []
        self._running: dict[str, Run] = {}
        self._details: dict[str, JobDetails] = {}
        self._waiting: dict[str, tuple[str, NewJob | UniqueJob, str]] = {}  # id -> queue, job, event
        self._early_handles: dict[str, JobHandle] = {}  # of jobs that have not ended
        self._owners: dict[tuple[str, str], _UniqueOwner] = {}  # of the digests of unique jobs that run

    # -- the runs

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[FinishedJob]:
        return iter(self._runs)

    @overload
    def __getitem__(self, index: int) -> FinishedJob: ...

    @overload
    def __getitem__(self, index: slice) -> list[FinishedJob]: ...

    def __getitem__(self, index: int | slice) -> FinishedJob | list[FinishedJob]:
        return self._runs[index]

    def __repr__(self) -> str:
        return f"<EagerJobs: {', '.join(map(str, self))}>"

    # -- in place of Redis

    def enqueue(self, queue: str, jobs: Sequence[NewJob]) -> list[str]:
        for job in jobs:
            self._run(queue, job)
        return ["ok"] * len(jobs)

    def enqueue_unique(self, queue: str, jobs: Sequence[UniqueJob]) -> list[str]:
        return [self._enqueue_unique(queue, job) for job in jobs]

    def _enqueue_unique(self, queue: str, job: UniqueJob) -> str:
        queue_and_digest = queue, job.digest
        owner = self._owners.get(queue_and_digest)
        if owner is not None and job.on_conflict == "rerun":
            word = "after" if owner.successor is None else "duplicate"
            owner.successor = job
            return f"{word} {owner.id}"
        if owner is not None:
            return f"duplicate {owner.id}"
        next_job: UniqueJob | None = job
        while next_job is not None:
            owner = _UniqueOwner(next_job.id)
            if next_job.digest and next_job.until == "done":
                self._owners[queue_and_digest] = owner
            try:
                self._run(queue, next_job)
            finally:
                self._owners.pop(queue_and_digest, None)
            next_job = owner.successor
        return "ok"

    def _run(self, queue: str, job: NewJob | UniqueJob) -> None:
        """Run a job, again and again with `retries`, or while it sleeps or gets the events for which it waits."""
        failures = 0
        while True:
            now_ms = time.time_ns() // 1_000_000
            record = _record_of(job, now_ms)
            run = self._run_class(queue, job.id.encode(), record, worker="eager", now_ms=now_ms, counts=(failures, 0))
            finished, outcome = self._run_once(run)
            if isinstance(outcome, Suspended):
                if self._goes_on(queue, job, outcome):
                    continue
                break
            failures += 1
            if not self._retries or not isinstance(outcome, Retried):
                break
        if self._propagate and finished.error is not None:
            raise finished.error

    def _goes_on(self, queue: str, job: NewJob | UniqueJob, outcome: Suspended) -> bool:
        """Whether a job that sleeps or waits goes on at once. If not, it waits until send()."""
        event = self.steps.begin_wait(job.id, outcome.waits_for)
        if event in self._events:
            self.steps.send(job.id, event, self._events[event])
        elif event and outcome.seconds >= TEN_YEARS:
            self._waiting[job.id] = (queue, job, event)
            return False
        self.steps.end_wait(job.id)
        return True

    def _run_once(self, run: Run) -> tuple[FinishedJob, Outcome]:
        if len(self._running) >= MAX_DEPTH:
            raise RecursionError(
                f"eager(): {MAX_DEPTH} jobs run inside each other. A job that enqueues itself again does not end here: "
                "test it with captured(), or with drain()."
            )
        job_id = run.job_id.decode()
        self._running[job_id] = run
        try:
            outcome = self._executor.run(run)
        finally:
            del self._running[job_id]
        finished = FinishedJob.read(run, outcome)
        self._runs.append(finished)
        self._details[job_id] = details_of(finished, outcome, run, self._errors(job_id))
        if job_id in self._early_handles:
            self._early_handles[job_id].refresh()
        raise_foreign_error(finished.error)
        if run.variables is not None and not isinstance(outcome, UnknownTask):
            run.variables.run(send_outcome, EagerJobs, run, outcome)
        return finished, outcome

    def _errors(self, job_id: str) -> list[dict[str, Any]]:
        return self._details[job_id].errors if job_id in self._details else []

    def find(self, job_id: str, queue: str | None = None) -> JobDetails:
        if job_id in self._running:
            run = self._running[job_id]
            return JobDetails(
                id=job_id, queue=run.queue, state=JobState.RUNNING, attempt=run.attempt, errors=self._errors(job_id)
            )
        if job_id in self._details:
            return self._details[job_id]
        raise JobNotFound(job_id)

    def cancel(self, job_id: str, queue: str | None = None, *, terminate: bool = False) -> CancelAnswer:
        details = self.find(job_id)
        if details.state is not JobState.CANCELLED:
            raise WrongState(job_id, f"is {details.state}: in eager() a job has run when delay() returns.")
        return CancelAnswer.CANCELLED

    def send(
        self, job_id: str, event: str, value: Any = None, *, queue: str | None = None, token: str | None = None
    ) -> None:
        text, details = written_event(event, value), self.find(job_id)
        if details.state.is_final and details.state is not JobState.DEAD:
            raise WrongState(job_id, "is over: it gets no event any more. Give eager() its events beforehand.")
        self.steps.send(job_id, event, text)
        if job_id in self._waiting and self._waiting[job_id][2] == event:
            of_queue, job, _ = self._waiting.pop(job_id)
            try:
                self._run(of_queue, job)
            finally:  # it may raise what the job has raised
                self.workflows.tell(of_queue, [job_id])

    def wait(self, job_id: str, queue: str, timeout: float | None) -> JobDetails:
        details = self.find(job_id)
        if job_id in self._waiting:
            event = self._waiting[job_id][2]
            raise WrongState(job_id, f"waits for event {event!r}, for ever: send() it, or use eager(events=…).")
        if not details.state.is_final:
            raise WrongState(job_id, f"is {details.state}, and get() would wait for ever. Use eager(retries=True).")
        return details


def _record_of(job: NewJob | UniqueJob, now_ms: int) -> bytes:
    """The record that a worker would get. The job is ready at once."""
    expires_ms = now_ms + int(job.expires) if job.expires.startswith("+") else int(job.expires or 0)
    header = Header(
        priority=job.priority, max_crashes=job.max_crashes, ready_ms=now_ms, expires_ms=expires_ms, client=job.client
    )
    return header.line() + b"\n" + job.body.encode()

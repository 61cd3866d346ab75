"""eager(): runs each job at once, where it is enqueued."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django_rtq.console.reading.actions import Actions
from django_rtq.core.broker.messages import NewJob
from django_rtq.core.broker.one_job import JobAccess
from django_rtq.core.broker.settlement import Report, Settlement
from django_rtq.core.conf.config import get_config
from django_rtq.core.handle import JobHandle
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import CancelAnswer, JobState, write_record
from django_rtq.core.validation import TEN_YEARS
from django_rtq.core.worker.outcome import RETRIED, SUSPENDED, UNKNOWN_TASK, Outcome
from django_rtq.core.worker.process.session import send_outcome
from django_rtq.core.worker.run import Run
from django_rtq.core.worker.shared_memory import SharedState
from django_rtq.exceptions import JobNotFound, WrongState
from django_rtq.testing.drain import CallerExecutor, Drain
from django_rtq.testing.jobs import FinishedJob, raise_foreign_error
from django_rtq.testing.substitute import Substitute
from django_rtq.workflows.steps.store import Holder, written_event
from django_rtq.workflows.store import NewWorkflow

MAX_DEPTH = 40  # jobs that run inside each other
WORKER = "eager"  # holds the jobs that have not come from Redis


class EagerJobs(Substitute[FinishedJob]):
    """Runs the jobs of a block or test at once, in the thread and transaction that enqueue them, without Redis.

    Arguments and results go through JSON. Delayed jobs run at once, too. The list has the runs so far, in the order in
    which they ended.

    `retries`: run a job that fails again, without a delay, until it succeeds or is dead. `time_limits`: enforce time
    limits, in the main thread with SIGALRM. `propagate`: delay() raises what the last run of the job raised. Otherwise
    the handle and the list of runs tell. `events`: what jobs get that wait for an event of that name. Sleeps are over
    at once, and so are waits with a time-out for events that are not there. Other jobs wait until send() gives it.
    """

    # Jobs run from memory, but for members of workflows, and for those that have slept or waited: these are in Redis.

    name = "eager()"

    def __init__(
        self,
        *,
        retries: bool = False,
        time_limits: bool = False,
        propagate: bool = True,
        events: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._events = dict(events or {})
        for name, value in self._events.items():
            written_event(name, value)  # or it says what is wrong with it
        self.retries = retries
        self.time_limits = time_limits
        self.propagate = propagate
        self.clear()

    def begin(self) -> None:
        super().begin()
        self._executor = CallerExecutor(get_config(), SharedState(1), time_limits=self.time_limits)

    def on_handle(self, handle: JobHandle) -> None:
        """It knows how the job ended, also after the block."""
        self._early_handles[handle.id] = handle
        self._refresh_handle(handle.id)

    def _refresh_handle(self, job_id: str) -> None:
        with suppress(JobNotFound):
            if job_id in self._early_handles and self._early_handles[job_id].refresh().state.is_final:
                del self._early_handles[job_id]

    def clear(self) -> None:
        """Forget the runs so far."""
        super().clear()
        self._depth = 0  # of jobs that run inside each other
        self._running: dict[str, Run] = {}  # from memory
        self._details: dict[str, JobDetails] = {}  # of jobs that have run, and are not in Redis
        self._early_handles: dict[str, JobHandle] = {}  # of jobs that have not ended
        self._owners: dict[tuple[str, str], str] = {}  # ids of unique jobs that run, by queue and digest
        self._successors: dict[tuple[str, str], NewJob] = {}  # which run after them

    def __repr__(self) -> str:
        return f"<EagerJobs: {', '.join(map(str, self))}>"

    # -- the runs

    def enqueue_one(self, queue: str, job: NewJob) -> str:
        queue_and_digest = queue, job.digest
        if owner := self._owners.get(queue_and_digest):
            word = "duplicate"
            if job.on_conflict == "rerun":
                word = word if queue_and_digest in self._successors else "after"
                self._successors[queue_and_digest] = job
            return f"{word} {owner}"
        next_job: NewJob | None = job
        while next_job is not None:
            if next_job.digest and next_job.until == "done":
                self._owners[queue_and_digest] = next_job.id
            try:
                self._run(queue, next_job)
            finally:
                self._owners.pop(queue_and_digest, None)
                next_job = self._successors.pop(queue_and_digest, None)
        return "ok"

    def _run(self, queue: str, job: NewJob) -> None:
        """Run a job, again and again with `retries`. One that sleeps or waits goes on in Redis."""
        failures = 0
        while True:
            now_ms = time.time_ns() // 1_000_000
            expires_ms = now_ms + int(job.expires) if job.expires.startswith("+") else int(job.expires or 0)
            record = write_record(job.priority, job.max_crashes, now_ms, job.client, job.body, expires_ms).encode()
            run = Run(queue, job.id.encode(), record, worker=WORKER, now_ms=now_ms, counts=(failures, 0))
            self._running[job.id] = run
            try:
                outcome = self.execute(run)
            finally:
                del self._running[job.id]
            if outcome.verb == SUSPENDED:
                report = Report(SUSPENDED, job.id, int(outcome.seconds * 1000), outcome.text.encode())
                self.engine.settle(WORKER, queue, Settlement(reports=[report]))
            finished = self.note(run, outcome)
            if run.variables is not None and outcome.verb != UNKNOWN_TASK:
                run.variables.run(send_outcome, EagerJobs, run, outcome)
            if outcome.verb == SUSPENDED:
                self.go_on(run, outcome)
                self._run_queued()
                return
            failures += 1
            if not self.retries or outcome.verb != RETRIED:
                break
        if self.propagate and finished.error is not None:
            raise finished.error

    def execute(self, run: Run) -> Outcome:
        """Run a job once."""
        if self._depth >= MAX_DEPTH:
            raise RecursionError(
                f"eager(): {MAX_DEPTH} jobs run inside each other. A job that enqueues itself again does not end here: "
                "test it with captured(), or with drain()."
            )
        self._depth += 1
        try:
            return self._executor.run(run)
        finally:
            self._depth -= 1

    def note(self, run: Run, outcome: Outcome) -> FinishedJob:
        """Note what became of a run."""
        finished = FinishedJob.read(run, outcome)
        self.append(finished)
        if outcome.verb == SUSPENDED:
            self._details.pop(run.id, None)
        elif run.worker == WORKER:
            self._details[run.id] = finished.details_after(outcome, run, self._errors(run.id))
        self._refresh_handle(run.id)
        raise_foreign_error(finished.error)
        return finished

    def _run_queued(self) -> None:
        """Run the jobs in Redis, and those that they start, until none of them can."""
        _Queued(self).run_all()

    def on_workflow(self, flow: NewWorkflow) -> None:
        self._run_queued()

    def hold(self, holder: Holder) -> None:
        if run := self._running.get(holder.job_id):  # else it is there
            engine, keys = self.engine, self.engine.keys.of(holder.queue)
            engine.register_queues([holder.queue])
            held = f"{run.attempt} {holder.claimed_ms}"
            engine.redis.execute(
                [("HSET", keys.jobs, run.job_id, run.record), ("HSET", keys.running(WORKER), run.job_id, held)]
            )

    def go_on(self, run: Run, outcome: Outcome) -> None:
        """Let a job in Redis that sleeps or waits go on at once, unless it waits for ever: then send() does that."""
        details = self._access.find(run.id, run.queue)
        if details.state is not JobState.SCHEDULED:
            return  # its event was there
        if details.event in self._events:
            self._access.send(run.id, details.event, self._events[details.event], queue=run.queue)
        elif not details.event or outcome.seconds < TEN_YEARS:
            Actions(self.engine).run_now(run.id, run.queue)

    # -- in place of Redis

    @property
    def _access(self) -> JobAccess:
        return JobAccess(self.engine)

    def find(self, job_id: str, queue: str | None = None) -> JobDetails:
        if job_id in self._running:
            run = self._running[job_id]
            return JobDetails(
                id=job_id, queue=run.queue, state=JobState.RUNNING, attempt=run.attempt, errors=self._errors(job_id)
            )
        if job_id in self._details:
            return self._details[job_id]
        if self._engine is None:
            raise JobNotFound(job_id)
        return self._access.find(job_id, queue)

    def _errors(self, job_id: str) -> list[dict[str, Any]]:
        return self._details[job_id].errors if job_id in self._details else []

    def cancel(self, job_id: str, queue: str | None = None, *, terminate: bool = False) -> CancelAnswer:
        details = self.find(job_id, queue)
        if job_id in self._running or (job_id in self._details and details.state is not JobState.CANCELLED):
            raise WrongState(job_id, f"is {details.state}: in eager() a job has run when delay() returns.")
        if job_id in self._details:
            return CancelAnswer.CANCELLED
        answer = self._access.cancel(job_id, queue, terminate=terminate)
        self._refresh_handle(job_id)
        self._run_queued()
        return answer

    def send(
        self, job_id: str, event: str, value: Any = None, *, queue: str | None = None, token: str | None = None
    ) -> None:
        written_event(event, value)
        details = self.find(job_id)
        if details.state.is_final and details.state is not JobState.DEAD:
            raise WrongState(job_id, "is over: it gets no event any more. Give eager() its events beforehand.")
        if run := self._running.get(job_id):
            self.hold(Holder(run.queue, job_id, run.worker, run.now_ms))
        with suppress(JobNotFound):  # it never asks for events
            self._access.send(job_id, event, value, queue=details.queue, token=token)
        if details.event:  # it looks again, whatever has come
            self._run_queued()

    def wait(self, job_id: str, queue: str, timeout: float | None) -> JobDetails:
        details = self.find(job_id, queue)
        if details.event:
            raise WrongState(job_id, f"waits for event {details.event!r}, for ever: send() it, or use eager(events=…).")
        if not details.state.is_final:
            raise WrongState(job_id, f"is {details.state}, and get() would wait for ever. Use eager(retries=True).")
        return details


eager = EagerJobs


class _Queued(Drain):
    """Runs what waits in the Redis of a block."""

    name = "eager()"
    room = 0

    def __init__(self, jobs: EagerJobs) -> None:
        super().__init__(jobs.engine, None, time_limits=jobs.time_limits)
        self._jobs, self._actions, self.execute = jobs, Actions(jobs.engine), jobs.execute

    def run_all(self) -> None:
        """Run what can run, and what is delayed. Raises what a job has raised."""
        while self._run_queued() or self._begin_delayed():
            pass

    def _begin_delayed(self) -> bool:
        """Let jobs run that wait for their first run. Returns whether there are any."""
        delayed = self._due_times().keys() - {run.id for run in self._jobs}
        for job_id in delayed:
            self._actions.run_now(job_id)
        return bool(delayed)

    def _after(self, run: Run, outcome: Outcome) -> None:
        finished = self._jobs.note(run, outcome)
        if outcome.verb == SUSPENDED:
            self._jobs.go_on(run, outcome)
        elif self._jobs.retries and outcome.verb == RETRIED:
            self._actions.run_now(run.id, run.queue)
        elif self._jobs.propagate and finished.error is not None:
            raise finished.error

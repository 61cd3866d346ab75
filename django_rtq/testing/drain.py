"""drain(): runs the jobs in Redis in the calling thread, as a worker would."""

from __future__ import annotations

import asyncio
import contextvars
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async

from django_rtq.core import signals
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.redis.client import as_dict, clock_ms
from django_rtq.core.broker.redis.commands import Command
from django_rtq.core.broker.worker_broker import WorkerBroker, for_workers
from django_rtq.core.conf.config import Config
from django_rtq.core.jobs.context import CurrentRun, current_run
from django_rtq.core.jobs.job import held_since
from django_rtq.core.jobs.record import Wait
from django_rtq.core.tasks.options.kinds import Moment, moment_argument
from django_rtq.core.worker.outcome import RETRIED, Outcome
from django_rtq.core.worker.process.progress import ProgressWriter
from django_rtq.core.worker.process.running.executor import Executor
from django_rtq.core.worker.process.running.interrupts import MainThreadInterrupts, ThreadInterrupts
from django_rtq.core.worker.process.running.runner import Runner
from django_rtq.core.worker.process.session import WorkerSession
from django_rtq.core.worker.run import Run, runs_of
from django_rtq.core.worker.shared_memory import MAX_BATCH, SharedState
from django_rtq.testing.jobs import FinishedJob, raise_foreign_error
from django_rtq.workflows.batches import CallGatherer, CallRunner

MAX_RUNS = 10_000


def drain(
    queues: Sequence[str] | None = None,
    *,
    until: Moment | None = None,
    raise_errors: bool = True,
    time_limits: bool = False,
) -> list[FinishedJob]:
    """Run all jobs that are due, and those that they enqueue, in this thread and its transaction. Returns the runs.

    Jobs are claimed and settled in Redis as by a worker: turns, priorities, pauses, retries and unique jobs are real.
    `queues`: in the order of a worker; without it, all. `until`: seconds, a timedelta or an aware datetime. Time moves
    on to it, from one due job to the next, so delayed jobs and retries run. It stays moved for later calls.
    `time_limits`: enforce time limits, in the main thread with SIGALRM.

    With `raise_errors` it raises at the end what the last run of a job raised; if there are several, of the first one.
    Raises RuntimeError after 10,000 runs.
    """
    drained = Drain(for_workers(get_broker("")), queues, time_limits=time_limits)
    drained.run(drained.ms_until(until))
    if raise_errors:
        last_runs = {run.id: run for run in drained.finished}
        for run in last_runs.values():
            if run.error is not None:
                raise run.error
    return drained.finished


adrain = sync_to_async(drain)


class Drain:
    name = "drain()"
    room = MAX_BATCH - 1  # for other jobs in one call of a function
    execute: Callable[[Run], Outcome] | None = None  # None: as a worker

    def __init__(self, broker: WorkerBroker, queues: Sequence[str] | None, *, time_limits: bool) -> None:
        self._broker = broker
        self._given_queues = queues
        self.time_limits = time_limits
        self.finished: list[FinishedJob] = []
        self._runs = 0
        self.ended: list[tuple[Run, Outcome]] = []  # of the last call
        self._moved_ms = 0
        self._retries: dict[str, int] = {}  # id -> when it is due, on the clock of _moved_ms

    def ms_until(self, until: Moment | None) -> int:
        """How far to move the time."""
        text = moment_argument("drain()", "until", until)
        if not text:
            return 0
        return int(text) if text.startswith("+") else max(0, int(text) - self._now_ms())

    def _now_ms(self) -> int:
        return clock_ms(self._broker.redis.execute_one(("TIME",)))

    def run(self, left_ms: int) -> None:
        """Run what is due, and move the time by so many ms."""
        while True:
            while self._run_queued():
                pass
            wait_ms = self._ms_until_next()
            if wait_ms is None or wait_ms > left_ms:
                break
            self._move(wait_ms)
            left_ms -= wait_ms
            signals.send_promoted(Drain, self._broker.promote(self._queues)[0])
        self._move(left_ms)

    def _ms_until_next(self) -> int | None:
        """How far to move the time until a delayed job or retry is due. None: there is none.

        For retries the time in which jobs run does not count. Otherwise it would depend on the speed of the machine
        whether a retry after a short random delay is due.
        """
        waits = self._due_times()
        for job_id, retry_at_ms in self._retries.items():
            if job_id in waits:
                waits[job_id] = retry_at_ms - self._moved_ms
        return max(0, min(waits.values())) if waits else None

    def _due_times(self) -> dict[str, int]:
        """In how many ms each delayed job and retry is due, 0 or less if it is. Without those of paused tasks."""
        keys, now_ms = self._broker.keys, self._now_ms()
        reads: list[Command] = [("ZRANGE", keys.of(name).scheduled, 0, -1, "WITHSCORES") for name in self._queues]
        return {
            job_id.decode(): int(float(due)) - now_ms
            for reply in self._broker.redis.execute(reads)
            for job_id, due in zip(reply[::2], reply[1::2], strict=True)
            if held_since(float(due)) is None
        }

    def _move(self, ms: int) -> None:
        """Make all delayed jobs and retries due earlier, as if so much time had passed."""
        redis = self._broker.redis
        for queue in self._queues if ms else ():
            keys = self._broker.keys.of(queue)
            index = keys.scheduled_by_client
            clients = redis.execute_one(("ZRANGE", index, 0, -1))
            names = [keys.scheduled, keys.retrying, index, *(index + b":" + client for client in clients)]
            members = redis.execute([("ZRANGE", name, 0, -1, "WITHSCORES") for name in names])
            moves: list[Command] = [
                ("ZINCRBY", name, -ms, member)
                for name, flat in zip(names, members, strict=True)
                for member, due in zip(flat[::2], flat[1::2], strict=True)
                if held_since(float(due)) is None
            ]
            for job_id, entry in as_dict(redis.execute_one(("HGETALL", keys.step_jobs))).items():
                if wait := Wait.read(entry):  # sleeps end, and events time out
                    moves.append(("HSET", keys.step_jobs, job_id, f"{max(0, wait.due_ms - ms)} {wait.text}"))
            if moves:
                redis.execute(moves)
        self._moved_ms += ms

    @property
    def _queues(self) -> list[str]:
        """The queues to drain. Jobs may use new ones."""
        if self._given_queues is not None:
            return list(self._given_queues)
        return self._broker.queue_names()

    def _run_queued(self) -> bool:
        """Run what waits in the queues that exist now. Returns whether there was anything."""
        queues, before = self._queues, self._runs
        if queues:
            with self._worker(queues) as (session, runner):
                gatherer = CallGatherer(session, self._broker.config)
                while claimed := self._claim(session, queues):
                    if self._runs >= MAX_RUNS:
                        raise RuntimeError(
                            f"{self.name} has run {MAX_RUNS:,} jobs. Does a job enqueue itself again and again?"
                        )
                    runner.run(gatherer.gather([claimed], room=self.room))
                    session.settle()
                    ended = [*self.ended]
                    self.ended.clear()
                    self._runs += len(ended)
                    for run, outcome in ended:
                        self._after(run, outcome)
        return self._runs > before

    def _after(self, run: Run, outcome: Outcome) -> None:
        """A run has ended, and Redis has heard of it."""
        finished = FinishedJob.read(run, outcome)
        self.finished.append(finished)
        if outcome.verb == RETRIED:
            self._retries[finished.id] = self._moved_ms + int(outcome.seconds * 1000)
        raise_foreign_error(finished.error)

    @contextmanager
    def _worker(self, queues: Sequence[str]) -> Iterator[tuple[WorkerSession, Runner]]:
        shared = SharedState(1)
        session = WorkerSession(self._broker, shared, queues, base_name="drain")
        runner = _CallerRunner(self, self._broker.config, shared, session)
        session.sign_on()
        try:
            yield session, runner
        finally:
            session.release(session.held)
            session.settle()
            runner.stop()
            session.close()
            session.sign_off()

    def _claim(self, session: WorkerSession, queues: Sequence[str]) -> Run | None:
        while True:
            fetched = session.fetch(1, idle=1, queues=queues)
            if fetched.error is not None:
                raise fetched.error
            for run in (run for claimed in fetched.claimed for run in runs_of(claimed, session.worker)):
                return run
            if "more" not in fetched.statuses:
                return None


class CallerExecutor(Executor):
    """Runs jobs in the thread that calls run(). Coroutines run on the event loop above it, or on a new one.

    Leaves database connections alone: they and their transactions belong to the test. Context variables are isolated as
    in a worker: jobs see those of the moment when this object was created.
    """

    def __init__(
        self, config: Config, shared: SharedState, progress: ProgressWriter | None = None, *, time_limits: bool
    ) -> None:
        super().__init__(config, shared, _limit, progress)
        self.close()
        self._base = contextvars.copy_context()
        self._time_limits = time_limits

    def open(self, run: Run) -> Outcome | None:
        if not self._time_limits:
            vars(run)["time_limit"] = lambda config: None  # whatever its task says
        return super().open(run)

    def run(self, run: Run) -> Outcome:
        """Run a job. Raises RuntimeError for a coroutine if an event loop runs in this thread."""
        if (outcome := self.open(run)) is not None:
            return outcome
        if run.task.batch is not None:
            outcomes: list[Outcome] = []
            CallRunner(self, lambda _run, ended: outcomes.append(ended), lambda _ids: None).execute(run)
            return outcomes[0]
        if not run.task.is_async:
            return self.execute(run)
        _check_no_loop_runs(run.task_name)
        return self.prepare_context(run).run(async_to_sync(self.execute_async), run)

    def prepare_context(self, run: Run) -> contextvars.Context:
        run.variables = self._base.copy()
        run.variables.run(current_run.set, CurrentRun(run))
        return run.variables

    def clean_up(self, *, is_thread_ending: bool = False) -> None:
        """Nothing to do."""


@contextmanager
def _limit(seconds: float | None, job_id: bytes = b"") -> Iterator[None]:
    """Raise TimeLimitExceeded inside the block after so many seconds."""
    if seconds is None:
        yield None
        return
    with ExitStack() as stack:
        interrupts: Any
        if threading.current_thread() is threading.main_thread():
            stack.callback(signal.signal, signal.SIGALRM, signal.getsignal(signal.SIGALRM))
            interrupts = MainThreadInterrupts()
        else:
            interrupts = stack.enter_context(closing(ThreadInterrupts()))
        yield stack.enter_context(interrupts.limit(seconds, job_id))


def _check_no_loop_runs(task: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        f"{task} is a coroutine function, and delay() or drain() was called in a thread that runs an event loop. "
        "Use `await adelay()`, `await adrain()` or `async with workflow()`."
    )


class _CallerRunner(Runner):
    """Runs jobs as a worker process does, but in the calling thread."""

    def __init__(self, drained: Drain, config: Config, shared: SharedState, session: WorkerSession) -> None:
        super().__init__(config, shared, session)
        self._executor.close()
        self._executor = executor = CallerExecutor(config, shared, self._progress, time_limits=drained.time_limits)
        self._execute, self._ended = drained.execute or executor.run, drained.ended

    def _run_alone(self, run: Run) -> None:
        self._record(run, self._execute(run))

    def _record(self, run: Run, outcome: Outcome) -> None:
        super()._record(run, outcome)
        self._ended.append((run, outcome))

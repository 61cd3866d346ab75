"""Tasks whose functions get many jobs in one call (D144).

1. jobs that a worker has claimed, of a task with `batch`, are put together, those of one client
2. calls that could get more jobs claim them from the lane of their client, in one round trip for all calls
3. the first job of each call has the others: they start together, take one slot, and each has its own outcome

Those whose arguments cannot be had take no part in the call, and fail for themselves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.worker_broker import ClaimResult, WorkerBroker
from django_rtq.core.conf.config import Config
from django_rtq.core.jobs.context import Call
from django_rtq.core.jobs.record import band_in, task_in
from django_rtq.core.tasks import registry
from django_rtq.core.worker.outcome import RETRIED, Outcome
from django_rtq.core.worker.process.running.batch import Batch
from django_rtq.core.worker.process.running.executor import Executor, call_task
from django_rtq.core.worker.process.session import WorkerSession
from django_rtq.core.worker.run import Run, runs_of
from django_rtq.exceptions import BatchFailed, BrokerError, Bury, PayloadError, TaskNotFound


class _Kind(NamedTuple):
    """What jobs have in common that run together."""

    queue: str
    task: str
    client: bytes
    has_crashed: bool
    most: int


#: Jobs to claim from the lane of one client: queue, how many, band, client, and the task that they have to be of, as
#: records have its name.
Lane = tuple[str, int, bytes, bytes, str]


class CallGatherer:
    """Makes calls of the jobs that a session claims. For the thread that claims."""

    def __init__(self, session: WorkerSession, config: Config) -> None:
        self._session = session
        self._config = config
        self._calls: list[list[Run]] = []
        self._open: dict[_Kind, list[Run]] = {}  # those of the calls that may get more

    def gather(self, runs: list[Run], *, room: int) -> list[Run]:
        """These jobs, without those that are `others` of one of them. Claims at most `room` more."""
        if registry.batch_tasks.keys().isdisjoint([task_in(run.record) for run in runs]):
            return runs
        self._calls, self._open = [], {}
        for run in runs:
            self._add(run)
        self._claim_more(room)
        for call in self._calls:
            call[0].others = call[1:]
        return [call[0] for call in self._calls]

    def _add(self, run: Run) -> None:
        kind = self._kind_of(run)
        if kind is None or kind not in self._open:
            self._calls.append([run])
            if kind is not None and kind.most > 1:
                self._open[kind] = self._calls[-1]
            return
        self._open[kind].append(run)
        if len(self._open[kind]) == kind.most:
            del self._open[kind]

    def _kind_of(self, run: Run) -> _Kind | None:
        """None: the job runs alone, because its task has no batch, or its record cannot be read."""
        if task_in(run.record) not in registry.batch_tasks:
            return None
        try:
            run.open()
        except (TaskNotFound, PayloadError, ValueError, KeyError, TypeError, AttributeError):
            return None  # opened again, it says why
        return _Kind(run.queue, run.task_name, run.client, run.crashes > 0, most_together(run, self._config))

    def _claim_more(self, room: int) -> None:
        """Those that have crashed a worker get no others."""
        calls = {kind: call for kind, call in self._open.items() if not kind.has_crashed}
        lanes: list[Lane] = []
        for left, (kind, call) in zip(range(len(calls), 0, -1), calls.items(), strict=True):
            more = min(kind.most - len(call), room // left)
            room -= more
            if more:
                band, task = band_in(call[0].record), task_in(call[0].record)
                lanes.append((kind.queue, more, band, kind.client, task))
        if lanes:
            with suppress(BrokerError):  # the session finds what was claimed all the same, and gives it back
                fetched = self._session.claim_beside(partial(claim_lanes, lanes))
                for run in (run for claimed in fetched.claimed for run in runs_of(claimed, self._session.worker)):
                    self._add(run)


def most_together(run: Run, config: Config) -> int:
    """How many jobs a call may get with this one. Half as many after two failures, a quarter after three; in its last
    attempt it runs alone, so that one job does not bury others.
    """
    most = run.task.batch or 1
    if run.failures < 1:
        return most
    if run.failures + 1 >= run.max_attempts(config):
        return 1
    return max(1, most >> (run.failures - 1))


def claim_lanes(lanes: Sequence[Lane], broker: WorkerBroker, worker: str) -> ClaimResult:
    """Claim more jobs of clients of which the worker has just claimed one. Raises BrokerUnavailable.

    Each counts as a turn of its client. They are found by WorkerBroker.running() if the reply is lost.
    """
    script, result = SCRIPTS["claim_lane"], ClaimResult()
    calls = [
        script.call(broker.keys.of(queue), (worker, wanted, band, client, task), worker=worker)
        for queue, wanted, band, client, task in lanes
    ]
    for lane, reply in zip(lanes, broker.redis.execute_each(calls), strict=True):
        result.add_claim([lane[0]], reply)
    if result.error is not None and not result.found:
        raise result.error
    return result


class CallRunner:
    """Runs calls for a runner, which records outcomes, and releases jobs that cannot start. Any thread may use it."""

    def __init__(
        self,
        executor: Executor,
        record: Callable[[Run, Outcome], None],
        release: Callable[[Sequence[bytes]], None],
    ) -> None:
        self._executor = executor
        self._record = record
        self._release = release

    def run(self, run: Run, batch: Batch) -> int:
        """Run a job of a batch that has started, and its others, which are next. Returns how many others started."""
        started: list[Run] = []
        for other in run.others:
            number = batch.next()
            if number is None:
                break  # who has cut the batch has given the others back
            other.entry = number
            if not self._executor.shared.start(number):
                self._release([other.job_id, *batch.cut()])
                break
            started.append(other)
        run.others = started
        if first := self.open(run):
            self.execute(first)
        return len(started)

    def open(self, run: Run) -> Run | None:
        """Open jobs that are to run together. Returns the first of those that can run, with the others of them."""
        able: list[Run] = []
        for each in run.together:
            if (outcome := self._executor.open(each)) is None:
                able.append(each)
            else:
                self._record(each, outcome)
        if not able:
            return None
        able[0].others = able[1:]
        return able[0]

    def execute(self, first: Run) -> None:
        """Call the function for jobs that are open, and record their outcomes. Raises MemoryError, as for one job."""
        executor, runs = self._executor, first.together
        for run in (*first.others, first):  # the first one is the current one of this thread then
            executor.begin(run)
        calls: dict[Run, Call] = {}
        results: dict[Run, Any] = {}
        errors: dict[Run, BaseException] = {}
        started = time.perf_counter()
        try:
            self._read_calls(runs, calls, errors)
            results = _results_of(calls, self._call(first, runs, list(calls.values())))
        except MemoryError:
            raise
        except BaseException as error:  # noqa: BLE001 - as for one job
            errors |= _errors_of(list(calls), error)
        seconds = (time.perf_counter() - started) / len(runs)
        outcomes = [
            executor.succeeded(run, results.get(run), seconds)
            if (raised := errors.get(run)) is None
            else executor.failed(run, raised, seconds)
            for run in runs
        ]
        if executor.uses_database:
            executor.clean_up()
        for run, outcome in zip(runs, _with_one_delay(runs, outcomes), strict=True):
            self._record(run, outcome)

    def _read_calls(self, runs: Sequence[Run], calls: dict[Run, Call], errors: dict[Run, BaseException]) -> None:
        """What the function gets. Raises what the first job raises if none can take part."""
        for run in runs:
            try:
                args = run.call_args()
            except MemoryError:
                raise
            except Exception as error:  # noqa: BLE001 - a result of another step that is lost, or a Redis that is away
                errors[run] = error
                continue
            headers = run.options.get("headers", {})
            calls[run] = Call(args, run.kwargs, run.id, run.attempt, run.queue, run.client.decode(), headers)
        if not calls:
            raise errors[runs[0]]

    def _call(self, first: Run, runs: Sequence[Run], calls: list[Call]) -> Any:
        """Call the function, within the shortest time limit of the jobs. One of many that is to stop stops no other."""
        executor = self._executor
        if (around := executor.wrapped(call_task)) is None:  # before the limit: it may take a lock
            call = partial(executor.call, first, first.task.body, [calls], {})
        else:
            job = replace(first.job_for_middleware(), args=[calls], kwargs={})
            call = partial(executor.call, first, around, [job], {})
        limits = [limit for run in runs if (limit := run.time_limit(executor.config)) is not None]
        shortest = min(limits, default=None)
        if shortest is not None:
            for run in runs:
                executor.set_kill_deadline(shortest, run.entry)
        with executor.limit(shortest, first.job_id if len(runs) == 1 else b""):
            return call()


def _results_of(runs: Collection[Run], returned: Any) -> dict[Run, Any]:
    """The result of each job. Raises Bury for what is no list of them: another run would return the same."""
    if returned is None:
        return {}
    if not isinstance(returned, list | tuple) or len(returned) != len(runs):
        found = f"a list of {len(returned)}" if isinstance(returned, list | tuple) else f"a {type(returned).__name__}"
        raise Bury(
            f"{next(iter(runs)).task.name} got {len(runs)} calls and returned {found}. It has to return None, or a "
            "list with one result for each call, in their order."
        )
    return dict(zip(runs, returned, strict=True))


def _errors_of(runs: Sequence[Run], error: BaseException) -> dict[Run, BaseException]:
    """What these jobs fail by: the function, or something before or behind it, has raised this."""
    for run in runs:
        run.together_failed = len(runs)
    if not isinstance(error, BatchFailed):
        return dict.fromkeys(runs, error)
    if unknown := [number for number in error.errors if number >= len(runs)]:
        unfit = Bury(
            f"{runs[0].task.name} raised BatchFailed for call {unknown[0]}, but it got {len(runs)} calls, from 0 on."
        )
        unfit.__cause__ = error
        return dict.fromkeys(runs, unfit)
    return {runs[number]: of_call for number, of_call in error.errors.items()}


def _with_one_delay(runs: Sequence[Run], outcomes: list[Outcome]) -> list[Outcome]:
    """Let jobs that have failed by the same error come back at the same time, so that they run together again."""
    delays: dict[tuple[int, int], float] = {}
    for run, outcome in zip(runs, outcomes, strict=True):
        if outcome.verb == RETRIED:
            outcome.seconds = delays.setdefault((id(outcome.error), run.failures), outcome.seconds)
    return outcomes

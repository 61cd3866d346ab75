"""Puts claimed jobs together that one call of their function gets, and claims what is missing (D144).

1. jobs of a task with `batch` are put together, those of one client
2. calls that could get more jobs claim them from the lane of their client, in one round trip for all calls
3. the first job of each call has the others: they start together, and take one slot
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.broker.worker_messages import ClaimResult
from django_rtq.core.conf.config import Config
from django_rtq.core.jobs.record import band_in, task_in
from django_rtq.core.tasks import registry
from django_rtq.core.worker.process.run import Run, runs_of
from django_rtq.core.worker.process.session import WorkerSession
from django_rtq.exceptions import BrokerError, PayloadError, TaskNotFound


class _Kind(NamedTuple):
    """What jobs have in common that run together."""

    queue: str
    task: str
    client: bytes
    has_crashed: bool
    most: int


class LaneClaim(NamedTuple):
    """Jobs to claim from the lane of one client, as long as they are of this task."""

    queue: str
    wanted: int
    band: bytes
    client: bytes
    task: str  # as records have its name


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
        lanes: list[LaneClaim] = []
        for left, (kind, call) in zip(range(len(calls), 0, -1), calls.items(), strict=True):
            more = min(kind.most - len(call), room // left)
            room -= more
            if more:
                band, task = band_in(call[0].record), task_in(call[0].record)
                lanes.append(LaneClaim(kind.queue, more, band, kind.client, task))
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


def claim_lanes(lanes: Sequence[LaneClaim], broker: WorkerBroker, worker: str) -> ClaimResult:
    """Claim more jobs of clients of which the worker has just claimed one. Raises BrokerUnavailable.

    Each counts as a turn of its client. They are found by WorkerBroker.running() if the reply is lost.
    """
    script, result = SCRIPTS["claim_lane"], ClaimResult()
    calls = [
        script.call(broker.keys.of(queue), (worker, wanted, band, client, task), worker=worker)
        for queue, wanted, band, client, task in lanes
    ]
    for lane, reply in zip(lanes, broker.redis.execute_each(calls), strict=True):
        result.add_claim([lane.queue], reply)
    if result.error is not None and not result.found:
        raise result.error
    return result

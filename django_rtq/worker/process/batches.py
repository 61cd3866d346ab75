"""Puts claimed jobs together that one call of their function gets, and claims what is missing.

1. jobs of a task with `batch` are put together: those of one client, unless `batch_of` says otherwise
2. calls that could get more jobs claim them, those of one client in one round trip for all calls
3. the first job of each call has the others: they start together, and take one slot
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from django_rtq.broker.messages import Claimed, ClaimResult, LaneClaim
from django_rtq.conf.config import Config
from django_rtq.exceptions import BrokerError, PayloadError, TaskNotFound
from django_rtq.jobs.record import band_in, task_in
from django_rtq.tasks import registry
from django_rtq.worker.process.run import Run, runs_of
from django_rtq.worker.process.running.batch_calls import most_together
from django_rtq.worker.process.session import WorkerSession


class _Kind(NamedTuple):
    """What jobs have in common that run together."""

    queue: str
    task: str
    client: bytes | None  # None: any
    has_crashed: bool
    most: int


class CallGatherer:
    """Makes calls of the jobs that a session claims. For the thread that claims."""

    def __init__(
        self, session: WorkerSession, config: Config, *, make_runs: Callable[[Claimed, str], list[Run]] = runs_of
    ) -> None:
        self._session = session
        self._config = config
        self._make_runs = make_runs
        self._firsts: list[Run] = []
        self._open: dict[_Kind, Run] = {}  # the first jobs of calls that may get more

    def gather(self, runs: Iterable[Run], *, room: int) -> list[Run]:
        """These jobs, without those that are `others` of one of them. Claims at most `room` more."""
        self._firsts, self._open = [], {}
        for run in runs:
            self._add(run)
        lanes, wanted = self._missing(room)
        self._claim(lambda: self._session.claim_lanes(lanes), if_any=lanes)
        for queue, jobs in wanted.items():
            self._claim(lambda: self._session.fetch(jobs, idle=0, queues=[queue]), if_any=jobs)
        return self._firsts

    def _add(self, run: Run) -> None:
        kind = self._kind_of(run)
        if kind is None:
            self._firsts.append(run)
            return
        first = self._open.get(kind)
        if first is None:
            self._firsts.append(run)
            first, run.others = run, []
            self._open[kind] = first
        else:
            first.others = [*first.others, run]
        if len(first.others) + 1 >= kind.most:
            del self._open[kind]

    def _kind_of(self, run: Run) -> _Kind | None:
        """None: the job runs alone, because its task has no batch, or its record cannot be read."""
        if task_in(run.record) not in registry.batch_tasks:
            return None
        try:
            run.open()
        except (TaskNotFound, PayloadError, ValueError, KeyError, TypeError, AttributeError):
            return None  # opened again, it says why
        client = run.client if run.task.batch_of == "client" else None
        return _Kind(run.queue, run.task_name, client, run.crashes > 0, most_together(run, self._config))

    def _missing(self, room: int) -> tuple[list[LaneClaim], dict[str, int]]:
        """What calls could get: from lanes of clients, and how many jobs of which queues."""
        lanes: list[LaneClaim] = []
        of_queues: dict[str, int] = {}
        calls = [(kind, first) for kind, first in self._open.items() if not kind.has_crashed]
        for left, (kind, first) in zip(range(len(calls), 0, -1), calls, strict=True):
            jobs = min(kind.most - 1 - len(first.others), room // left)
            room -= jobs
            if jobs and kind.client is None:
                of_queues[kind.queue] = of_queues.get(kind.queue, 0) + jobs
            elif jobs:
                lanes.append(LaneClaim(kind.queue, jobs, band_in(first.record), kind.client, task_in(first.record)))
        return lanes, of_queues

    def _claim(self, claim: Callable[[], ClaimResult], *, if_any: Sequence[LaneClaim] | int) -> None:
        if not if_any:
            return
        try:
            fetched = claim()
        except BrokerError:
            return  # what was claimed all the same is given back: the session finds it
        for claimed in fetched.claimed:
            for run in self._make_runs(claimed, self._session.worker):
                self._add(run)

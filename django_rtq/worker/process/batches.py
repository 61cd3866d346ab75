"""Puts claimed jobs together that one call of their function gets, and claims what is missing (D144).

1. jobs of a task with `batch` are put together: those of one client, unless `batch_of` says otherwise
2. calls that could get more jobs claim them, those of one client in one round trip for all calls
3. jobs of a call that gets too few may wait `within` seconds for others: in Redis, so that no process holds them
4. the first job of each call has the others: they start together, and take one slot

Time is cut into windows of `within` seconds. The jobs that came in one of them are due together at its end, whichever
processes have claimed them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from zlib import crc32

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
        self,
        session: WorkerSession,
        config: Config,
        *,
        may_wait: bool,
        make_runs: Callable[[Claimed, str], list[Run]] = runs_of,
    ) -> None:
        self._session = session
        self._config = config
        self._may_wait = may_wait
        self._make_runs = make_runs
        self._calls: list[list[Run]] = []
        self._open: dict[_Kind, list[Run]] = {}  # those of the calls that may get more

    def gather(self, runs: list[Run], *, room: int) -> list[Run]:
        """These jobs, without those that are `others` of one of them. Claims at most `room` more."""
        if registry.batch_tasks.keys().isdisjoint([task_in(run.record) for run in runs]):
            return runs
        self._calls, self._open = [], {}
        for run in runs:
            self._add(run)
        wanted = self._wanted(room)
        self._claim_more(wanted)
        for kind, call in self._open.items():
            # A call that got all it wanted could get more, if there were room: it does not wait.
            if self._may_wait and len(call) < wanted.get(kind, 0) and not kind.has_crashed:
                self._let_wait(call)
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
        client = run.client if run.task.batch_of == "client" else None
        return _Kind(run.queue, run.task_name, client, run.crashes > 0, most_together(run, self._config))

    def _wanted(self, room: int) -> dict[_Kind, int]:
        """How many jobs each of the open calls shall have. Those that have crashed a worker get no others."""
        wanted: dict[_Kind, int] = {}
        calls = {kind: call for kind, call in self._open.items() if not kind.has_crashed}
        for kind, call in calls.items():
            more = min(kind.most - len(call), room // (len(calls) - len(wanted)))
            wanted[kind] = len(call) + more
            room -= more
        return wanted

    def _claim_more(self, wanted: dict[_Kind, int]) -> None:
        lanes: list[LaneClaim] = []
        of_queues: dict[str, int] = {}
        for kind, jobs in wanted.items():
            first, more = self._open[kind][0], jobs - len(self._open[kind])
            if more and kind.client is None:
                of_queues[kind.queue] = of_queues.get(kind.queue, 0) + more
            elif more and kind.client is not None:
                lanes.append(LaneClaim(kind.queue, more, band_in(first.record), kind.client, task_in(first.record)))
        try:
            if lanes:
                self._add_claimed(self._session.claim_lanes(lanes))
            for queue, more in of_queues.items():
                self._add_claimed(self._session.fetch(more, idle=0, queues=[queue]))
        except BrokerError:
            pass  # the session finds what was claimed all the same, and gives it back

    def _add_claimed(self, fetched: ClaimResult) -> None:
        for claimed in fetched.claimed:
            for run in self._make_runs(claimed, self._session.worker):
                self._add(run)

    def _let_wait(self, call: list[Run]) -> None:
        """Let the jobs of a call wait for others, unless one of them must not wait (any more)."""
        window = _Window(call[0])
        if all(window.may_wait(run) for run in call):
            self._session.postpone(call, window.end_ms)
            self._calls.remove(call)


class _Window:
    """The present one of the task of a job."""

    def __init__(self, run: Run) -> None:
        self._ms = round(run.task.within * 1000)
        start = crc32(run.task.name.encode())  # those of different tasks do not end at once
        #: On the clock of the server.
        self.end_ms = run.now_ms + self._ms - (run.now_ms - start) % self._ms if self._ms else 0

    def may_wait(self, run: Run) -> bool:
        """Whether the job has not waited yet, and is not one that a person has queued before its time."""
        if not self._ms or run.attempt > 1 or 0 < run.expires_ms <= self.end_ms:
            return False
        # A job that has waited is ready since the very end of a window.
        return self.end_ms - self._ms < run.ready_ms <= run.now_ms

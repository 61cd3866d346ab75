"""Cancels the waiting jobs of a client, or requeues its dead letters, in all queues: as many as a request can.

The rest becomes jobs of these queues, so that it continues when the browser is closed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from django.http import QueryDict

from django_rtq.admin import query_params
from django_rtq.admin.pages.bulk_actions import REQUEST_SECONDS
from django_rtq.exceptions import BrokerError
from django_rtq.inspector.bulk import Bulk
from django_rtq.inspector.inspector import get_inspector
from django_rtq.inspector.jobs.dead_letters import LATEST, BulkResult, run_steps
from django_rtq.inspector.jobs.job_filter import JobFilter
from django_rtq.internal_tasks import cancel_client_jobs, run_bulk_action

ClientVerb = Literal["cancel", "requeue"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    """What was done in a request."""

    done: int
    rest: list[str]  # queues that are not finished
    error: Exception | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSweep:
    """What to do with the jobs of a client."""

    verb: ClientVerb
    client: str
    most: int = 0  # jobs to cancel: as many as were confirmed
    until_ms: int = 0  # dead letters that died later are left out

    @classmethod
    def read(cls, data: QueryDict, verb: ClientVerb, client: str) -> ClientSweep:
        """From a form."""
        most = query_params.get_int(data, "most", 0, maximum=10**9)
        return cls(
            verb=verb, client=client, most=most, until_ms=query_params.get_int(data, "until_ms", 0, maximum=LATEST)
        )

    @property
    def filter(self) -> JobFilter:
        """Selects its jobs."""
        return JobFilter(client=self.client)

    def counted(self) -> tuple[ClientSweep, Mapping[str, int]]:
        """Count the jobs by queue. Returns this sweep with what the form has to remember, too."""
        inspector = get_inspector()
        if self.verb == "cancel":
            found = inspector.clients.get(self.client)
            numbers = {each.queue: each.queued + each.scheduled for each in found if each.queued + each.scheduled}
            return replace(self, most=sum(numbers.values())), numbers
        queues = [queue.name for queue in inspector.queues.details() if queue.dead]
        selected = {queue: inspector.dead_letters.select(queue, self.filter) for queue in queues}
        until_ms = max((selection.until_ms for selection in selected.values()), default=0)
        numbers = {queue: selection.count for queue, selection in selected.items() if selection.count}
        return replace(self, until_ms=until_ms), numbers

    def run(self) -> SweepResult:
        """Act for as long as a request may take."""
        ends, done, rest = time.monotonic() + REQUEST_SECONDS, 0, get_inspector().queues.names()
        while rest:
            result = run_steps(self._steps(rest[0], done), seconds=ends - time.monotonic())
            done += len(result.done)
            if isinstance(result.stopped_by, BrokerError):
                return SweepResult(done=done, rest=rest, error=result.stopped_by)
            if not result.is_complete:
                break
            rest.pop(0)
        return SweepResult(done=done, rest=rest)

    def enqueue_rest(self, result: SweepResult) -> None:
        """Enqueue jobs that do the rest."""
        for queue in result.rest:
            if self.verb == "cancel":
                cancel_client_jobs.using(queue_name=queue).delay(queue, self.client, max(1, self.most - result.done))
            else:
                task = run_bulk_action.using(queue_name=queue)
                task.delay(Bulk(queue=queue, action="requeue", filter=self.filter, until_ms=self.until_ms).stored())

    def _steps(self, queue: str, done: int) -> Iterator[BulkResult]:
        inspector = get_inspector()
        if self.verb == "cancel":
            return inspector.client_jobs.steps(self.client, [queue], max(0, self.most - done))
        return inspector.bulk_steps(queue, "requeue", self.filter, until_ms=self.until_ms)

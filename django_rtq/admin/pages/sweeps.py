"""Cancels the waiting jobs of a client or a task, or requeues its dead letters, in all queues.

A request does as much as it can. Jobs of these queues do the rest, so that it continues when the browser is closed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from django.contrib import messages
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _

from django_rtq.admin import query_params
from django_rtq.admin.display.texts import sweep_done_text
from django_rtq.admin.pages.bulk_actions import REQUEST_SECONDS
from django_rtq.exceptions import BrokerError
from django_rtq.inspector.bulk import Bulk
from django_rtq.inspector.inspector import get_inspector
from django_rtq.inspector.jobs.dead_letters import LATEST, BulkResult, run_steps
from django_rtq.inspector.jobs.job_filter import JobFilter
from django_rtq.internal_tasks import cancel_client_jobs, cancel_task_jobs, run_bulk_action
from django_rtq.jobs.job import made_ms, new_job_id

SweepVerb = Literal["cancel", "requeue"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """How many jobs are meant."""

    by_queue: Mapping[str, int] = field(default_factory=dict)
    cut: frozenset[str] = frozenset()  # queues that may have more: their lists were not searched to the end

    @property
    def total(self) -> int:
        """In all queues."""
        return sum(self.by_queue.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    """What was done in a request."""

    done: int
    rest: list[str]  # queues that are not finished
    error: Exception | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What to do with the jobs of a client or a task."""

    verb: SweepVerb
    client: str | None = None
    task: str = ""  # the full name; "": the jobs of the client
    most: int = 0  # jobs of the client to cancel: as many as were confirmed
    until_ms: int = 0  # jobs of the task that were made later, and dead letters that died later, are left out

    @classmethod
    def read(cls, data: QueryDict, verb: SweepVerb, *, client: str | None = None, task: str = "") -> Sweep:
        """From a form."""
        most = query_params.get_int(data, "most", 0, maximum=10**9)
        until_ms = query_params.get_int(data, "until_ms", 0, maximum=LATEST)
        return cls(verb=verb, client=client, task=task, most=most, until_ms=until_ms)

    @property
    def filter(self) -> JobFilter:
        """Selects its jobs."""
        return JobFilter(client=self.client, task=f"={self.task}" if self.task else "")

    def counted(self) -> tuple[Sweep, Counted]:
        """Count the jobs by queue. Returns this sweep with what the form has to remember, too."""
        if self.verb == "requeue":
            return self._counted_dead()
        if self.task:
            found = [each for each in get_inspector().tasks.get(self.task, 0).queues if each.waiting or each.is_cut]
            counted = Counted(
                by_queue={each.queue.name: each.waiting for each in found},
                cut=frozenset(each.queue.name for each in found if each.is_cut),
            )
            return replace(self, until_ms=made_ms(new_job_id())), counted
        clients = get_inspector().clients.get(self.client or "")
        numbers = {each.queue: each.queued + each.scheduled for each in clients if each.queued + each.scheduled}
        return replace(self, most=sum(numbers.values())), Counted(by_queue=numbers)

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
            if self.verb == "requeue":
                task = run_bulk_action.using(queue_name=queue)
                task.delay(Bulk(queue=queue, action="requeue", filter=self.filter, until_ms=self.until_ms).stored())
            elif self.task:
                cancel_task_jobs.using(queue_name=queue).delay(queue, self.filter.task, self.until_ms)
            else:
                most = max(1, self.most - result.done)
                cancel_client_jobs.using(queue_name=queue).delay(queue, self.client or "", most)

    # -- inside

    def _counted_dead(self) -> tuple[Sweep, Counted]:
        inspector = get_inspector()
        queues = [queue.name for queue in inspector.queues.details() if queue.dead]
        selected = {queue: inspector.dead_letters.select(queue, self.filter) for queue in queues}
        until_ms = max((selection.until_ms for selection in selected.values()), default=0)
        numbers = {queue: selection.count for queue, selection in selected.items() if selection.count}
        return replace(self, until_ms=until_ms), Counted(by_queue=numbers)

    def _steps(self, queue: str, done: int) -> Iterator[BulkResult]:
        inspector = get_inspector()
        if self.verb == "requeue":
            return inspector.bulk_steps(queue, "requeue", self.filter, until_ms=self.until_ms)
        if self.task:
            return inspector.task_jobs.steps(self.filter.task, [queue], self.until_ms)
        return inspector.client_jobs.steps(self.client or "", [queue], max(0, self.most - done))


def run_sweep(request: HttpRequest, sweep: Sweep, log: Callable[[str, int], None]) -> None:
    """Act, and tell the user. `log` gets what was done, and with how many jobs. Raises BrokerError."""
    result = sweep.run()
    text = sweep_done_text(sweep.verb, result.done)
    if result.done:
        log(text, result.done)
    if result.error is not None:
        raise result.error
    if result.rest:
        sweep.enqueue_rest(result)
        rest = _("%(done)s Jobs of these queues do the rest: %(queues)s.")
        messages.warning(request, rest % {"done": text, "queues": ", ".join(result.rest)})
    else:
        messages.success(request, text)

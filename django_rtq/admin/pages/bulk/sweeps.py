"""Actions on jobs of several queues, such as cancelling the waiting jobs of a client or a task.

A request does as much as it can. Jobs of these queues do the rest, so that it continues when the browser is closed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from django.contrib import messages
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _

from django_rtq.admin import query_params
from django_rtq.admin.display.texts import rest_refused_text, sweep_done_text
from django_rtq.admin.pages.bulk.actions import REQUEST_SECONDS
from django_rtq.exceptions import BrokerError, QueueFull
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
    left_out: int = 0  # jobs that an undo could not put back
    error: BrokerError | QueueFull | None = None


class QueueSweep:
    """Does something with jobs of several queues, in steps."""

    __slots__ = ()

    @property
    def names(self) -> list[str]:
        """The queues."""
        raise NotImplementedError

    def done_text(self, count: int, left_out: int) -> str:
        """What was done with so many jobs, and how many were left out."""
        raise NotImplementedError

    def nothing_text(self) -> str:
        """That nothing was done; "": then done_text() says it."""
        return ""

    def run(self) -> SweepResult:
        """Act for as long as a request may take."""
        ends, done, left_out, rest = time.monotonic() + REQUEST_SECONDS, 0, 0, self.names
        while rest:
            result = run_steps(self._steps(rest[0]), seconds=ends - time.monotonic())
            done += len(result.done)
            left_out += result.left_out
            if isinstance(result.stopped_by, BrokerError):
                return SweepResult(done=done, rest=rest, left_out=left_out, error=result.stopped_by)
            if not result.is_complete:
                break
            rest.pop(0)
        return SweepResult(done=done, rest=rest, left_out=left_out)

    def enqueue_rest(self, queues: Sequence[str]) -> tuple[list[str], BrokerError | QueueFull | None]:
        """Enqueue jobs that do the rest. Returns the queues that have one, and the error at which it stopped."""
        enqueued: list[str] = []
        try:
            for queue in queues:
                self._enqueue_rest(queue)
                enqueued.append(queue)
        except (BrokerError, QueueFull) as error:
            return enqueued, error
        return enqueued, None

    def _steps(self, queue: str) -> Iterator[BulkResult]:
        raise NotImplementedError

    def _enqueue_rest(self, queue: str) -> None:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep(QueueSweep):
    """What to do with the jobs of a client or a task."""

    verb: SweepVerb
    client: str | None = None
    task: str = ""  # the full name; "": the jobs of the client
    until_ms: int = 0  # jobs that were made later, and dead letters that died later, are left out
    queues: Sequence[str] = ()  # where there are such jobs; (): all queues

    @classmethod
    def read(cls, data: QueryDict, verb: SweepVerb, *, client: str | None = None, task: str = "") -> Sweep:
        """From a form."""
        until_ms = query_params.get_int(data, "until_ms", 0, maximum=LATEST)
        return cls(verb=verb, client=client, task=task, until_ms=until_ms, queues=data.getlist("in"))

    @property
    def fields(self) -> list[tuple[str, object]]:
        """What the form has to remember."""
        return [("until_ms", self.until_ms), *(("in", queue) for queue in self.queues)]

    @property
    def filter(self) -> JobFilter:
        """Selects its jobs."""
        return JobFilter(client=self.client, task=f"={self.task}" if self.task else "")

    def counted(self) -> tuple[Sweep, Counted]:
        """Count the jobs by queue. Returns this sweep with what the form has to remember, too."""
        sweep, counted = self._counted_dead() if self.verb == "requeue" else self._counted_waiting()
        return replace(sweep, queues=list(counted.by_queue)), counted

    @property
    def names(self) -> list[str]:
        return [queue for queue in get_inspector().queues.names() if not self.queues or queue in self.queues]

    def done_text(self, count: int, left_out: int) -> str:
        return sweep_done_text(self.verb, count)

    # -- inside

    def _counted_waiting(self) -> tuple[Sweep, Counted]:
        counted_at = replace(self, until_ms=made_ms(new_job_id()))
        if self.task:
            found = [each for each in get_inspector().tasks.get(self.task, 0).queues if each.waiting or each.is_cut]
            return counted_at, Counted(
                by_queue={each.queue.name: each.waiting for each in found},
                cut=frozenset(each.queue.name for each in found if each.is_cut),
            )
        clients = get_inspector().clients.get(self.client or "")
        numbers = {each.queue: each.queued + each.scheduled for each in clients if each.queued + each.scheduled}
        return counted_at, Counted(by_queue=numbers)

    def _counted_dead(self) -> tuple[Sweep, Counted]:
        sizes = {queue.name: queue.dead for queue in get_inspector().queues.details() if queue.dead}
        numbers, until_ms = get_inspector().dead_letters.count_in_queues(sizes, self.filter)
        return replace(self, until_ms=until_ms), Counted(by_queue=numbers)

    def _enqueue_rest(self, queue: str) -> None:
        if self.verb == "requeue":
            task = run_bulk_action.using(queue_name=queue)
            task.delay(Bulk(queue=queue, action="requeue", filter=self.filter, until_ms=self.until_ms).stored())
        elif self.task:
            cancel_task_jobs.using(queue_name=queue).delay(queue, self.filter.task, self.until_ms)
        else:
            cancel_client_jobs.using(queue_name=queue).delay(queue, self.client or "", self.until_ms)

    def _steps(self, queue: str) -> Iterator[BulkResult]:
        inspector = get_inspector()
        if self.verb == "requeue":
            return inspector.bulk_steps(queue, "requeue", self.filter, until_ms=self.until_ms)
        if self.task:
            return inspector.task_jobs.steps(self.filter.task, [queue], self.until_ms)
        return inspector.client_jobs.steps(self.client or "", [queue], self.until_ms)


def run_sweep(request: HttpRequest, sweep: QueueSweep, log: Callable[[str, int], None]) -> list[str]:
    """Act, and tell the user. `log` gets what was done, and with how many jobs. Raises BrokerError.

    Returns the queues that are not finished.
    """
    result = sweep.run()
    text = sweep.done_text(result.done, result.left_out)
    enqueued, error = sweep.enqueue_rest(result.rest) if result.error is None else ([], result.error)
    if enqueued:
        rest = _("%(done)s Jobs of these queues do the rest: %(queues)s.")
        text = rest % {"done": text, "queues": ", ".join(enqueued)}
    if result.done or result.left_out or enqueued:
        log(text if error is None else f"{text} {error}", result.done)
    if isinstance(error, BrokerError):
        raise error
    if error is not None:
        messages.warning(request, rest_refused_text(text, error))
    elif enqueued:
        messages.warning(request, text)
    elif not result.done and not result.left_out and sweep.nothing_text():
        messages.warning(request, sweep.nothing_text())
    else:
        messages.success(request, text)
    return result.rest

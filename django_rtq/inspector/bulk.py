"""Bulk actions on jobs of any state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

from django_rtq.inspector.inspector import Inspector
from django_rtq.inspector.jobs.dead_letters import STEP, BulkResult
from django_rtq.inspector.jobs.job_filter import ALL_JOBS, JobFilter
from django_rtq.inspector.jobs.moving import JobSet

Verb = Literal["requeue", "discard", "cancel", "run_now", "move"]

#: What can be done with the jobs of each list.
VERBS: dict[str, Sequence[Verb]] = {
    "queued": ("move", "cancel"),
    "scheduled": ("run_now", "move", "cancel"),
    "running": ("cancel",),
    "retrying": ("run_now", "move", "cancel"),
    "dead": ("requeue", "move", "discard"),
    "finished": (),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulk:
    """What to do with which jobs: dead letters that died, or others that were made, up to a moment."""

    queue: str
    action: Verb
    filter: JobFilter = ALL_JOBS
    until_ms: int
    state: str = "dead"
    target: str = ""  # the queue to which they are moved
    undo: str = ""  # the token with which it can be undone; "": it cannot

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Bulk:
        """The opposite of stored()."""
        return cls(**{**stored, "filter": JobFilter.read(stored["filter"])})

    def stored(self) -> dict[str, Any]:
        """As an argument of a job."""
        return asdict(self)

    def steps(self, inspector: Inspector, *, cursor: str = "", limit: int = STEP) -> Iterator[BulkResult]:
        """Do it in steps, each of which looks at `limit` jobs. Repeating a step does no harm."""
        if self.action == "requeue" or self.action == "discard":  # noqa: PLR1714 - for mypy
            act = partial(inspector.discard, undo=self.undo) if self.undo else self.action
            steps = inspector.bulk_steps(
                self.queue, act, self.filter, until_ms=self.until_ms, cursor=cursor, limit=limit
            )
            return self._closing(inspector, steps) if self.undo else steps
        if self.action == "move":
            jobs = JobSet(queue=self.queue, state=self.state, filter=self.filter, until_ms=self.until_ms)
            return inspector.job_mover.steps(jobs, self.target, cursor=cursor, limit=limit)
        found = inspector.live_jobs.found(self.queue, self.state, self.filter, until_ms=self.until_ms)
        return found.steps(self.action, cursor=cursor, limit=limit)

    def _closing(self, inspector: Inspector, steps: Iterable[BulkResult]) -> Iterator[BulkResult]:
        """The same steps. With the last one begins the time for which an undo is offered."""
        for step in steps:
            if not step.cursor:
                inspector.undos.close(self.queue, self.undo)
            yield step

"""Bulk actions on jobs of any state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from django_rtq.inspector.inspector import Inspector
from django_rtq.inspector.jobs.dead_letters import STEP, BulkResult
from django_rtq.inspector.jobs.job_filter import ALL_JOBS, JobFilter

Verb = Literal["requeue", "discard", "cancel", "run_now"]

#: What can be done with the jobs of each list.
VERBS: dict[str, Sequence[Verb]] = {
    "queued": ("cancel",),
    "scheduled": ("run_now", "cancel"),
    "running": ("cancel",),
    "retrying": ("run_now", "cancel"),
    "dead": ("requeue", "discard"),
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
            return inspector.bulk_steps(
                self.queue, self.action, self.filter, until_ms=self.until_ms, cursor=cursor, limit=limit
            )
        found = inspector.live_jobs.found(self.queue, self.state, self.filter, until_ms=self.until_ms)
        return found.steps(self.action, cursor=cursor, limit=limit)

"""Act on all jobs of a queue and state that match a filter.

1. a page shows the filter and the number, and remembers the moment: jobs that die, or are made, later are left out
2. the request works for two seconds, which is enough for thousands of jobs
3. the rest becomes a job of the same queue with the highest priority, so that it continues when the browser is closed
4. a page shows how many are left; if no worker runs that job, it offers to continue by hand
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.http import QueryDict

from django_rtq.admin import query_params
from django_rtq.admin.filters import FilterParams
from django_rtq.handle import JobHandle
from django_rtq.inspector.bulk import VERBS, Bulk, Verb
from django_rtq.inspector.inspector import Inspector
from django_rtq.inspector.jobs.dead_letters import LATEST, STEP, BulkResult, Selection, run_steps
from django_rtq.internal_tasks import run_bulk_action

REQUEST_SECONDS = 2.0


def states_of(verb: Verb) -> Sequence[str]:
    """The states of jobs with which this can be done."""
    return [state for state, verbs in VERBS.items() if verb in verbs]


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkRequest:
    """What to do, with which jobs."""

    verb: Verb
    state: str
    queue: str
    wanted: FilterParams
    until_ms: int | None  # jobs that died later are left out; None: not known yet
    per_second: int = 0  # at most; 0: as fast as possible

    @classmethod
    def read(cls, data: QueryDict, verb: Verb) -> BulkRequest:
        """From a query string or a form."""
        until_ms = query_params.get_int(data, "until_ms", 0, maximum=LATEST)
        return cls(
            verb=verb,
            state=query_params.get_choice(data, "state", states_of(verb), states_of(verb)[0]),
            queue=query_params.get_queue_name(data),
            wanted=FilterParams.read(data),
            until_ms=until_ms or None,
            per_second=query_params.get_int(data, "per_second", 0, maximum=10_000),
        )

    @property
    def query(self) -> Mapping[str, object]:
        """As parameters of a URL or fields of a form."""
        rate = {"per_second": self.per_second} if self.per_second else {}
        state = {} if self.state == "dead" else {"state": self.state}
        return {"queue": self.queue, **state, **self.wanted.query, "until_ms": self.until_ms, **rate}

    def counted(self, inspector: Inspector) -> tuple[BulkRequest, Selection]:
        """Count the jobs that match. Returns this request with the moment of the snapshot, and the number."""
        if self.state == "dead":
            selection = inspector.dead_letters.select(self.queue, self.wanted.filter, until_ms=self.until_ms)
        else:
            found = inspector.live_jobs.found(self.queue, self.state, self.wanted.filter, until_ms=self.until_ms)
            selection = found.count()
        return replace(self, until_ms=selection.until_ms), selection

    def run(self, inspector: Inspector) -> BulkResult:
        """Act for as long as a request may take. Errors do not hide what was done before: see BulkResult."""
        return run_steps(self._bulk.steps(inspector, limit=STEP), seconds=REQUEST_SECONDS)

    def enqueue_rest(self) -> JobHandle:
        """Enqueue a job that does the rest."""
        return run_bulk_action.using(queue_name=self.queue).delay(self._bulk.stored(), self.per_second)

    @property
    def _bulk(self) -> Bulk:
        return Bulk(
            queue=self.queue,
            state=self.state,
            action=self.verb,
            filter=self.wanted.filter,
            until_ms=self.until_ms or 0,
        )

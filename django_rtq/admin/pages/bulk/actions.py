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
from django_rtq.admin.pages.bulk.move_targets import read_target
from django_rtq.handle import JobHandle
from django_rtq.inspector.bulk import VERBS, Bulk, Verb
from django_rtq.inspector.inspector import Inspector
from django_rtq.inspector.jobs.dead_letters import LATEST, STEP, BulkResult, Selection, run_steps
from django_rtq.inspector.jobs.job_filter import JobFilter
from django_rtq.inspector.jobs.undo import MOST_JOBS, is_undoable, new_token, verb_of
from django_rtq.internal_tasks import run_bulk_action

REQUEST_SECONDS = 2.0


def states_of(verb: Verb) -> Sequence[str]:
    """The states of jobs with which this can be done."""
    return [state for state, verbs in VERBS.items() if verb in verbs]


def default_state(verb: Verb) -> str:
    """The state that is meant if a URL names none."""
    return "dead" if verb in VERBS["dead"] else states_of(verb)[0]


def undo_token(verb: str, count: int, *, is_complete: bool = True) -> str:
    """A token for the form that asks before an action; "": so many jobs, or this action, cannot be undone.

    `is_complete`: all jobs were looked at. If not, they may be too many.
    """
    return new_token(verb) if is_undoable(verb) and is_complete and count <= MOST_JOBS else ""


def read_token(data: QueryDict, verb: str) -> str:
    """The token of that form. "" if it has none, or one for another action."""
    token = data.get("undo", "")
    return token if verb_of(token) == verb else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkRequest:
    """What to do, with which jobs."""

    verb: Verb
    state: str
    queue: str
    wanted: FilterParams
    until_ms: int | None  # jobs that died later are left out; None: not known yet
    per_second: int = 0  # at most; 0: as fast as possible
    target: str = ""  # the queue to which they are moved; "": not chosen
    undo: str = ""  # the token with which it can be undone; "": it cannot

    @classmethod
    def read(cls, data: QueryDict, verb: Verb) -> BulkRequest:
        """From a query string or a form."""
        until_ms = query_params.get_int(data, "until_ms", 0, maximum=LATEST)
        queue = query_params.get_queue_name(data)
        return cls(
            verb=verb,
            state=query_params.get_choice(data, "state", states_of(verb), default_state(verb)),
            queue=queue,
            wanted=FilterParams.read(data),
            until_ms=until_ms or None,
            per_second=query_params.get_int(data, "per_second", 0, maximum=10_000),
            target=read_target(data, queue) if verb == "move" else "",
            undo=read_token(data, verb),
        )

    @property
    def query(self) -> Mapping[str, object]:
        """As parameters of a URL or fields of a form."""
        rate = {"per_second": self.per_second} if self.per_second else {}
        state = {} if self.state == "dead" else {"state": self.state}
        more = {name: text for name, text in (("target", self.target), ("undo", self.undo)) if text}
        return {"queue": self.queue, **state, **self.wanted.query, "until_ms": self.until_ms, **rate, **more}

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

    def has_next_job(self, inspector: Inspector) -> bool:
        """Whether another job of this action waits or runs. These are the first of their lists."""
        wanted = JobFilter(task=f"={run_bulk_action.name}")
        return any(
            job.args and Bulk.read(job.args[0]) == self._bulk
            for state in ("scheduled", "queued", "running")
            for job in inspector.job_list.page(self.queue, state, filter=wanted, depth=STEP).jobs
        )

    @property
    def _bulk(self) -> Bulk:
        return Bulk(
            queue=self.queue,
            state=self.state,
            action=self.verb,
            filter=self.wanted.filter,
            until_ms=self.until_ms or 0,
            target=self.target,
            undo=self.undo,
        )

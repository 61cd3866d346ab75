"""Jobs of any state, of a list of a queue, and that a worker runs, all redacted; dead letters by error; the outbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

from django.db import DatabaseError
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from django_rtq.console.acting.actions import ACTIONS, OF_JOB
from django_rtq.console.formatting import format_number
from django_rtq.console.incidents.workers import COMMAND, why_hung
from django_rtq.console.output import facts
from django_rtq.console.reading.jobs.dead_letters import DeadGroup, DeadGroups
from django_rtq.console.reading.readers import Readers
from django_rtq.console.render.column import (
    DURATION,
    JOB_STATE,
    MESSAGE,
    MOMENT,
    NUMBER,
    REPORTED,
    TASK,
    TEXT,
    Column,
    PageUrl,
)
from django_rtq.console.render.sheet import Empty, Found, Sheet, Wanted
from django_rtq.console.sanitize import arguments_text, clean_text
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.failure import Attempt
from django_rtq.core.jobs.job import JobState, made_at
from django_rtq.core.tasks.registry import known_task
from django_rtq.databases.exactly_once import has_committed
from django_rtq.databases.outbox import OutboxRow, waiting_rows

GROUPED_PER_QUEUE = 1000  # newest dead letters of each queue: two round trips that do not block Redis for long
MOST_LISTED = 1000  # of the outbox, the oldest
TIMES = ("made_at", "ready_at", "due_at", "expires_at", "claimed_at", "died_at", "finished_at")


def list_of(job: JobDetails) -> str:
    """The list of its queue in which it is."""
    return "finished" if job.state.is_final and job.state is not JobState.DEAD else str(job.state)


def _job_url(job: JobDetails, url: PageUrl) -> str:
    return url("job_change", job.id, query={"queue": job.queue})


def _list_url(job: JobDetails, url: PageUrl) -> str:
    return url("queue_change", job.queue, query={"state": list_of(job)})


def time_of(job: JobDetails) -> datetime | None:
    """When it died, finished, or was claimed; when it is due; or since when it is ready. None: a pause holds it."""
    if job.is_held:
        return None
    return job.died_at or job.finished_at or job.claimed_at or job.due_at or job.ready_at or job.made_at


def _error(job: JobDetails) -> str:
    kind, message = job.newest_error
    return ": ".join(filter(None, (kind.rpartition(".")[2], message)))


def _css_of_error(job: JobDetails) -> str:
    return "rtq-clip rtq-line rtq-error" if job.state in (JobState.RETRYING, JobState.DEAD) else "rtq-clip rtq-line"


def _state(job: JobDetails) -> str:
    return "stopping" if job.is_stopping else "held" if job.is_held else str(job.state)


def written_text(job: JobDetails) -> str:
    """Whether a run has committed, of a job that is dead or waits for a retry. "" for others."""
    task = known_task(job.task)
    if job.state not in (JobState.DEAD, JobState.RETRYING) or task is None or not task.exactly_once:
        return ""
    try:
        is_written = has_committed(task.exactly_once, job.id)
    except DatabaseError:
        return gettext("The database did not say whether a run has committed.")
    if not is_written:
        return gettext("Nothing was written: no run has committed.")
    if job.state is JobState.RETRYING:
        return gettext("A run has committed. The next one succeeds, and its function is not called again.")
    return gettext("A run has committed. After a requeue the job succeeds, and its function is not called again.")


class Jobs(Sheet[JobDetails]):
    """Jobs of any queue and state."""

    model, title, key, per_page = "job", _("Jobs"), "id", 25
    columns: ClassVar[Sequence[Column]] = (
        Column("task", _("Task"), lambda job: job.task or gettext("(unreadable)"), TASK,
               link=_job_url, hint=lambda job: job.task),
        Column("args", "", arguments_text, under="task"),
        Column("client", _("Client"), css=lambda job: "rtq-name"),
        Column("shard", _("Shard"), is_of_shards=True),
        Column("queue", _("Queue"), link=_list_url),
        Column("state", _("State"), _state, JOB_STATE),
        Column("worker", _("Worker"), under="state"),
        Column("progress", "", kind=REPORTED, under="state"),
        Column("attempts", _("Attempts"), attrgetter("attempt"), NUMBER),
        Column("time", pgettext_lazy("of a job", "Time"), time_of, MOMENT, css=lambda job: "rtq-when"),
        Column("error", _("Error"), _error, MESSAGE, css=_css_of_error),
        Column("id", _("ID"), kind=replace(TEXT, html=lambda name: f"…{clean_text(name[-6:])}"),
               link=_job_url, hint=lambda job: job.id, css=lambda job: "rtq-id"),
    )  # fmt: skip
    actions = OF_JOB

    def facts(self, row: JobDetails) -> Mapping[str, Any]:
        """As it is stored, with its newest failure."""
        newest, time = Attempt.read(row.errors[-1] if row.errors else {}), time_of(row)
        return {
            "state": str(row.state),
            **facts(row, ("task", "priority", "args", "kwargs", "headers", *TIMES)),
            **({} if row.has_call else dict.fromkeys(("args", "kwargs", "headers"))),  # they were not kept
            **facts(newest, ("error_class", "error", "traceback")),
            "time": time and time.isoformat(),
        }

    def where(self, row: JobDetails) -> tuple[Sequence[str], Mapping[str, str]]:
        return [row.id], {"queue": row.queue}


class Running(Jobs):
    """What workers run: lost workers first, then by the longest-running job."""

    title, section, per_page, empty = _("Running jobs"), "worker", 40, Empty(_("No running jobs."))
    columns = (
        Column("worker", _("Worker")),
        *(column for column in Jobs.columns if column.name not in ("args", "worker", "time", "error", "id")),
        Column("warning", "", why_hung, css=lambda job: "rtq-is-warn", under="state"),
        Column("seconds", _("Running for"), kind=DURATION),
        Jobs.columns[-1],
    )
    actions = (*Jobs.actions, replace(
        ACTIONS["reclaim_worker"],
        applies=lambda job: job.lease_left_seconds < 0,
        page=lambda job, url, here: url("worker_reclaim", job.worker),
    ))  # fmt: skip

    def find(self, readers: Readers, wanted: Wanted) -> Found:
        workers = readers.workers(with_usual=True)
        busy = [worker for worker in workers if worker.running]
        busy.sort(key=lambda worker: (not worker.is_lost, -max(job.seconds for job in worker.running)))
        jobs = [job for worker in busy for job in sorted(worker.running, key=lambda job: -job.seconds)]
        found = self.page(jobs, wanted)
        if busy:
            return found
        start = f"{gettext('No worker is running. Start one:')} {COMMAND}"
        return found._replace(note=gettext("All workers are idle.") if workers else start)

    def summary(self, rows: Sequence[JobDetails]) -> str:
        left = rows[0].lease_left_seconds or 0
        text = gettext("lease expired %(seconds)d s ago") if left < 0 else gettext("lease expires in %(seconds)d s")
        return text % {"seconds": abs(left)}


def _dead_url(group: DeadGroup, url: PageUrl) -> str:
    return url("queue_change", group.queue, query={"state": "dead", "q": str(group.wanted.anywhere)})


class DeadLetterGroups(Sheet[DeadGroup]):
    """Groups of dead letters."""

    model, title, key = "deadletter", _("Dead letters"), "newest_id"
    per_page = 100
    columns = (
        Column("error", _("Error"), lambda group: group.error_class or gettext("(unknown)"), TASK,
               link=_dead_url, hint=lambda group: group.error_class),
        Column("message", "", css=lambda group: "rtq-soft rtq-message", under="error"),
        Column("task", _("Task"), lambda group: group.task or gettext("(unreadable)"), TASK,
               link=lambda group, url: url("registeredtask_change", group.task) if group.task else "",
               hint=lambda group: group.task, css=lambda group: "rtq-name"),
        Column("queue", _("Queue"), link=lambda group, url: url("queue_change", group.queue)),
        Column("shards", _("Shard"), lambda group: ", ".join(map(str, sorted(group.shards))), is_of_shards=True),
        Column("jobs", _("Jobs"), attrgetter("count"), NUMBER),
        Column("first_at", _("First"), kind=MOMENT, css=lambda group: "rtq-when"),
        Column("last_at", _("Last"), kind=MOMENT, css=lambda group: "rtq-when"),
    )  # fmt: skip
    actions = (ACTIONS["requeue_group"], ACTIONS["discard_group"])

    empty = Empty(_("No dead letters."), _("All failed jobs are being retried or have been dealt with."))

    def find(self, readers: Readers, wanted: Wanted) -> Found:
        """The latest group first. Messages are read of those of the page."""
        found = readers.dead_letters.all_groups(GROUPED_PER_QUEUE)
        rows = readers.dead_letters.with_messages(found.groups[self.places(wanted)])
        return Found(rows, len(found.groups), len(found.groups), _groups_note(found))


def _groups_note(found: DeadGroups) -> str:
    if found.searched >= found.total:
        return ""
    text = gettext("These groups include the newest %(searched)s of %(total)s dead letters.")
    return text % {"searched": format_number(found.searched), "total": format_number(found.total)}


class Outbox(Sheet[OutboxRow]):
    """The list of its rows, the oldest first; a search finds ids by their beginnings."""

    model, list_page, title, key, searches = "job", "outbox", _("Outbox"), "job_id", _("Beginning of the ID")
    columns = (
        Column("task", _("Task"), kind=TASK, link=lambda row, url: url("registeredtask_change", row.task)),
        Column("job_id", _("ID"), under="task"),
        Column("queue", _("Queue"), link=lambda row, url: url("queue_change", row.queue)),
        Column("made", _("Made"), lambda row: made_at(row.job_id), MOMENT),
        Column("attempts", _("Attempts"), kind=NUMBER),
        Column("due_at", _("Next attempt"), kind=MOMENT),
        Column("error", _("Error"), lambda row: row.error or None),
    )
    about = _("Jobs that are committed, and that no process has moved to Redis yet: the oldest 1,000 of them.")
    empty = Empty(_("Nothing waits in the outbox."), _("What was committed is in Redis."))

    def find(self, readers: Readers, wanted: Wanted) -> Found:
        rows = waiting_rows(readers.places, MOST_LISTED, wanted.search)
        return Found(rows[self.places(wanted)], len(rows), len(rows))


class JobList(NamedTuple):
    """What is particular about a list of a queue."""

    titles: Mapping[str, Any]  # of columns; None: the column is left out
    empty: Empty


JOBS, RUNNING, GROUPS, OUTBOX = Jobs(), Running(), DeadLetterGroups(), Outbox()
JOB_LISTS = {
    "queued": JobList(
        {"state": None, "error": None, "time": _("Waiting since")},
        Empty(_("No queued jobs."), _("All enqueued jobs have started or are scheduled for later.")),
    ),
    "scheduled": JobList({"error": None, "time": _("Due")}, Empty(_("No scheduled jobs."))),
    "running": JobList({"error": None, "time": _("Started")}, Empty(_("No running jobs."))),
    "retrying": JobList({"state": None, "time": _("Next attempt")}, Empty(_("No jobs waiting for a retry."))),
    "dead": JobList(
        {"state": None, "time": _("Died")},
        Empty(_("No dead letters."), _("All failed jobs are being retried or have been dealt with.")),
    ),
    "finished": JobList(
        {"error": None, "time": _("Finished")},
        Empty(_("No finished jobs."), _("Finished jobs stay here until their results expire (RESULT_TTL).")),
    ),
}

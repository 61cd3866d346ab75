"""Worker processes: by host, and the processes of one rtq_worker together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from django_rtq.console.acting.actions import ACTIONS
from django_rtq.console.formatting import format_number
from django_rtq.console.output import facts
from django_rtq.console.reading.details import WorkerDetails
from django_rtq.console.reading.readers import Readers
from django_rtq.console.render.column import DURATION, NAMES, NUMBER, PART, SIZE, Column, State, states
from django_rtq.console.render.sheet import Empty, Sheet

STATES = {
    "works": State(_("works")),
    "quiet": State(_("quiet"), "quiet"),
    "crash_loop": State(_("waits: its processes crash"), "lost"),
    "lost": State(_("not responding"), "lost"),
}
# What JSON has of a running job.
OF_RUNNING = ("id", "queue", "task", "client", "attempt", "seconds", "progress", "is_stopping")


def _state(worker: WorkerDetails) -> str:
    if worker.is_lost:
        return "lost"
    return "crash_loop" if worker.crash_loop else "quiet" if worker.is_quiet else "works"


class Workers(Sheet[WorkerDetails]):
    """The list of workers."""

    model, title = "worker", _("Workers")
    columns = (
        Column("name", _("Worker"), hint=lambda worker: worker.crash_loop, css=lambda worker: "rtq-mono"),
        Column("supervisor_name", "rtq_worker", under="name"),
        Column("host", _("Host"), under="name"),
        Column("pid", "PID", lambda worker: str(worker.pid or ""), under="name"),
        Column("shard", _("Shard"), is_of_shards=True),
        Column("queues", _("Queues"), kind=NAMES, link=lambda queue, url: url("queue_change", queue)),
        Column("busy", _("Running"), lambda worker: (worker.busy, worker.slots), PART),
        Column("jobs_done", _("Jobs done"), kind=NUMBER),
        Column("memory_bytes", _("Memory"), kind=SIZE),
        Column("project_version", _("Version")),
        Column("version", "django_rtq", under="project_version"),
        Column("other_limits", _("Limits of other settings hold for"), kind=NAMES, under="project_version"),
        Column("up_seconds", _("Uptime"), kind=DURATION),
        Column("last_seen_seconds", _("Last seen"), kind=DURATION),
        Column("state", _("State"), _state, states(STATES), under="name"),
    )
    actions = (ACTIONS["quiet_worker"], ACTIONS["wake_worker"], ACTIONS["stop_worker"], ACTIONS["reclaim_worker"])
    section, unnamed, per_page = "host", _("Unknown host"), 15
    empty = Empty(
        _("No worker is running."),
        _("Jobs wait until a worker starts. Run one alongside the web server:"),
        "python manage.py rtq_worker",
    )
    note = _(
        "Quiet, wake and stop apply to all processes of an rtq_worker. The effect is visible here after a few seconds."
    )

    def read(self, readers: Readers, queues: Collection[str] | None = None) -> Sequence[WorkerDetails]:
        """Every process that has a lease, or whose lease has expired and that still holds jobs.

        Hosts with lost ones come first, an unknown one last.
        """
        workers = readers.workers(queues)
        lost = {worker.host for worker in workers if worker.is_lost}
        workers.sort(
            key=lambda each: (each.host not in lost, not each.host, each.host, each.supervisor, each.pid, each.name)
        )
        return workers

    def facts(self, row: WorkerDetails) -> Mapping[str, Any]:
        names = ("pid", "supervisor", "slots", "project", "is_quiet", "is_lost", "crash_loop")
        running = [{name: value for name, value in asdict(job).items() if name in OF_RUNNING} for job in row.running]
        return {**facts(row, names), "running": running}

    def summary(self, rows: Sequence[WorkerDetails]) -> str:
        """The processes of a host, and how many of their slots are used."""
        text = ngettext("%(count)s process, %(busy)s", "%(count)s processes, %(busy)s", len(rows))
        busy = _("%(busy)s of %(slots)s slots busy") % {
            "busy": format_number(sum(worker.busy for worker in rows)),
            "slots": format_number(sum(worker.slots for worker in rows)),
        }
        return text % {"count": format_number(len(rows)), "busy": busy}


WORKERS = Workers()

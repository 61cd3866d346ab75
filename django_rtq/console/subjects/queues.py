"""Queues: how many jobs each has, in which states, what became of them lately, and their memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_rtq.console.acting.actions import ACTIONS
from django_rtq.console.formatting import format_number
from django_rtq.console.reading.details import QueueDetails
from django_rtq.console.reading.memory import KINDS, QueueMemory
from django_rtq.console.reading.overview import Overview, QueueRow
from django_rtq.console.reading.readers import Readers
from django_rtq.console.render.column import (
    DURATION,
    LINE,
    METER,
    NUMBER,
    RATE,
    SIZE,
    Column,
    PageUrl,
    State,
    Steps,
    states,
)
from django_rtq.console.render.sheet import Empty, Sheet
from django_rtq.core.tasks.registry import declared_queues

STATES = {
    "open": State(_("open")),
    "paused": State(_("paused"), "paused"),
    "no_worker": State(_("no worker"), "plain"),
}
MEMORY_TITLES = {
    **{"jobs": _("Jobs"), "order": _("Order"), "outcomes": _("Outcomes"), "logs": _("Logs"), "steps": _("Steps")},
    **{"metrics": _("Metrics"), "workflows": _("Workflows"), "other": _("Other")},
}


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue, and what it did lately."""

    details: QueueDetails
    lately: QueueRow | None = None  # None: it is not known, or was never used
    workers: int = 0  # living, that serve it
    is_declared: bool = False  # by tasks or settings

    @property
    def name(self) -> str:
        """Its name."""
        return self.details.name

    @property
    def state(self) -> str:
        """One of STATES."""
        return "paused" if self.details.paused else "open" if self.workers else "no_worker"

    @property
    def is_empty(self) -> bool:
        """Whether it may be forgotten, as far as one sees."""
        return not (self.details.waiting or self.details.running or self.details.dead or self.details.paused)

    @property
    def last_hour(self) -> Steps | None:
        """Jobs that succeeded in each minute. Without the one that is not over: the line would end in a drop."""
        if self.lately is None:
            return None
        series = self.lately.series
        minutes, done = series.of("succeeded")[:-1], format_number(series.total("succeeded"))
        said = {"name": self.name, "count": done, "most": format_number(max(minutes, default=0))}
        return Steps(minutes, gettext("%(name)s: %(count)s done, %(most)s in a minute at most") % said)


def _number(name: str, title: Any, css: str = "") -> Column:
    """A column of so many jobs, which leads to their list."""

    def link(queue: Queue, url: PageUrl) -> str:
        return f"{url('queue_change', queue.name)}?state={name}"

    return Column(
        name, title, attrgetter(f"details.{name}"), NUMBER, link=link, css=lambda queue: css, is_sortable=True
    )


def _rate(name: str, title: Any, counter: str, css: str = "") -> Column:
    def value(queue: Queue) -> float | None:
        return None if queue.lately is None else queue.lately.per_minute(counter)

    return Column(name, title, value, RATE, css=lambda queue: css, is_sortable=True)


#: What can be done with a queue on its own page, beside what its list offers.
LIMITS = (ACTIONS["limit_queue"], ACTIONS["limit_clients"])


class Queues(Sheet[Queue]):
    """The list of queues."""

    model, title, css = "queue", _("Queues"), "rtq-figures"
    columns = (
        Column("name", _("Queue"), link=lambda queue, url: url("queue_change", queue.name), is_sortable=True),
        Column("state", _("State"), kind=states(STATES), under="name"),
        _number("queued", _("Queued")),
        Column("oldest_seconds", _("Oldest wait"), attrgetter("details.oldest_seconds"), DURATION, is_sortable=True),
        _number("scheduled", _("Scheduled")),
        _number("retrying", _("Retrying"), "rtq-is-warn"),
        _number("running", _("Running")),
        _number("dead", _("Dead"), "rtq-is-bad"),
        _rate("done_per_minute", _("Done/min"), "succeeded"),
        _rate("failed_per_minute", _("Failed/min"), "failed", "rtq-is-bad"),
        Column("last_hour", _("Last hour"), kind=LINE),
        Column("utilisation", _("Busy"), lambda queue: queue.lately and queue.lately.utilisation, METER),
        Column("workers", _("Workers"), kind=NUMBER, is_sortable=True),
        Column("holds", _("Held back"), lambda queue: queue.details.holds or None, under="name"),
    )
    per_page = 100  # a page that is fetched every few seconds
    actions = (ACTIONS["pause_queue"], ACTIONS["resume_queue"], ACTIONS["purge_queue"], ACTIONS["forget_queue"])
    empty = Empty(
        _("No queue has been used yet."),
        _("Start a worker, then enqueue a job:"),
        "python manage.py rtq_worker\n\nyour_task.delay(…)",
    )

    def read(self, readers: Readers) -> Sequence[Queue]:
        """Those that were used, and those that tasks and settings declare."""
        overview, declared = readers.overview.shared(), declared_queues(readers.place)
        return self.named(readers, overview, sorted({*declared, *(row.details.name for row in overview.queues)}))

    def named(self, readers: Readers, overview: Overview, names: Sequence[str]) -> Sequence[Queue]:
        """These, of which some may never have been used."""
        declared, lately = declared_queues(readers.place), {row.details.name: row for row in overview.queues}
        served = Counter(name for worker in overview.living for name in worker.queues)
        unused = [name for name in names if name not in lately]
        details = {each.name: each for each in readers.queues.details(unused)} if unused else {}
        details |= {name: row.details for name, row in lately.items()}
        return [Queue(details[name], lately.get(name), served[name], name in declared) for name in names]

    def facts(self, row: Queue) -> Mapping[str, Any]:
        return {**asdict(row.details), "declared": row.is_declared}


def _size(kind: str) -> Column:
    return Column(
        kind,
        MEMORY_TITLES[kind],
        lambda row: row.sizes[kind],
        SIZE,
        css=lambda row: "" if row.sizes[kind] else "rtq-zero",
    )


class Memory(Sheet[QueueMemory]):
    """About how many bytes of Redis each queue takes, and for what: the largest first."""

    model, list_page, title = "job", "memory", _("Memory")
    columns = (
        Column("name", _("Queue"), link=lambda row, url: url("queue_change", row.name)),
        Column("total", _("Total"), kind=SIZE),
        *map(_size, KINDS),
    )
    about = _(
        "About how many bytes of Redis the queues with most jobs take: measured at some keys of each kind. Jobs: with "
        "dead letters and failures. Order: lanes, and times of delayed jobs."
    )
    empty = Empty(_("No queue has been used yet."))

    def read(self, readers: Readers) -> Sequence[QueueMemory]:
        """The queues that take most."""
        return readers.memory.read()


QUEUES, MEMORY = Queues(), Memory()

"""Memory: about how many bytes of Redis each queue takes, and for what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _

from django_rtq.console.reading.memory import KINDS, QueueMemory
from django_rtq.console.reading.readers import Readers
from django_rtq.console.render.column import SIZE, Column
from django_rtq.console.render.sheet import Empty, Sheet

TITLES = {
    **{"jobs": _("Jobs"), "order": _("Order"), "outcomes": _("Outcomes"), "logs": _("Logs"), "steps": _("Steps")},
    **{"metrics": _("Metrics"), "workflows": _("Workflows"), "other": _("Other")},
}


def _size(kind: str) -> Column:
    def value(row: QueueMemory) -> Any:
        return row.sizes[kind]

    return Column(kind, TITLES[kind], value, SIZE, css=lambda row: "" if value(row) else "rtq-zero")


class Memory(Sheet[QueueMemory]):
    """The table, the largest queue first."""

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


MEMORY = Memory()

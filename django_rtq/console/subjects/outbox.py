"""The outbox: jobs that are committed, and not known to be in Redis yet."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from django_rtq.console.reading.readers import Readers
from django_rtq.console.render.column import MOMENT, NUMBER, TASK, Column
from django_rtq.console.render.sheet import Empty, Found, Sheet, Wanted
from django_rtq.core.jobs.job import made_at
from django_rtq.databases.outbox import OutboxRow, waiting_rows

MOST_LISTED = 1000  # the oldest


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


OUTBOX = Outbox()

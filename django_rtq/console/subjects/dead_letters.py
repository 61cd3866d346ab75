"""Dead letters by task and error."""

from __future__ import annotations

from operator import attrgetter

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_rtq.console.acting.actions import ACTIONS
from django_rtq.console.formatting import format_number
from django_rtq.console.reading.jobs.dead_letters import DeadGroup, DeadGroups
from django_rtq.console.reading.readers import Readers
from django_rtq.console.render.column import MOMENT, NUMBER, TASK, Column, PageUrl
from django_rtq.console.render.sheet import Empty, Found, Sheet, Wanted

GROUPED_PER_QUEUE = 1000  # newest dead letters of each queue: two round trips that do not block Redis for long


def _list_url(group: DeadGroup, url: PageUrl) -> str:
    return url("queue_change", group.queue, query={"state": "dead", "q": str(group.wanted.anywhere)})


class DeadLetterGroups(Sheet[DeadGroup]):
    """Groups of dead letters."""

    model, title, key = "deadletter", _("Dead letters"), "newest_id"
    per_page = 100
    columns = (
        Column("error", _("Error"), lambda group: group.error_class or gettext("(unknown)"), TASK,
               link=_list_url, hint=lambda group: group.error_class),
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
        return Found(rows, len(found.groups), len(found.groups), _note(found))


def _note(found: DeadGroups) -> str:
    if found.searched >= found.total:
        return ""
    text = gettext("These groups include the newest %(searched)s of %(total)s dead letters.")
    return text % {"searched": format_number(found.searched), "total": format_number(found.total)}


GROUPS = DeadLetterGroups()

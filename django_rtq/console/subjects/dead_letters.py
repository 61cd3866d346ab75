"""Dead letters by task and error."""

from __future__ import annotations

from collections.abc import Collection
from operator import attrgetter
from typing import NamedTuple

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_rtq.console.acting.actions import ACTIONS
from django_rtq.console.formatting import format_number
from django_rtq.console.reading.jobs.dead_letters import DeadGroup, DeadGroups
from django_rtq.console.reading.jobs.job_filter import JobFilter
from django_rtq.console.reading.readers import Readers
from django_rtq.console.reading.selection import Selection
from django_rtq.console.render.column import MOMENT, NUMBER, TASK, Column, PageUrl
from django_rtq.console.render.sheet import Empty, Found, Sheet, Wanted

GROUPED_PER_QUEUE = 1000  # newest dead letters of each queue: two round trips that do not block Redis for long


class Group(NamedTuple):
    """Those of a queue with one task and one error."""

    queue: str
    of: DeadGroup

    @property
    def is_known(self) -> bool:
        """Whether both have names: or else a filter would match other groups as well."""
        return bool(self.of.task and self.of.error_class)

    @property
    def wanted(self) -> JobFilter:
        """What finds them in their queue."""
        return JobFilter(task=self.of.task, error_class=self.of.error_class)

    @property
    def query(self) -> str:
        """What finds them."""
        return str(Selection(queues=[self.queue], states=["dead"], filter=self.wanted))


def _list_url(group: Group, url: PageUrl) -> str:
    return url("queue_change", group.queue, query={"state": "dead", "q": str(Selection(filter=group.wanted))})


class DeadLetterGroups(Sheet[Group]):
    """Groups of dead letters."""

    model, title, key = "deadletter", _("Dead letters"), "query"
    per_page = 100
    columns = (
        Column("error", _("Error"), lambda group: group.of.error_class or gettext("(unknown)"), TASK,
               link=_list_url, hint=lambda group: group.of.error_class),
        Column("message", "", attrgetter("of.message"), css=lambda group: "rtq-soft rtq-message", under="error"),
        Column("task", _("Task"), lambda group: group.of.task or gettext("(unreadable)"), TASK,
               link=lambda group, url: url("registeredtask_change", group.of.task) if group.of.task else "",
               hint=lambda group: group.of.task, css=lambda group: "rtq-name"),
        Column("queue", _("Queue"), link=lambda group, url: url("queue_change", group.queue)),
        Column("shards", _("Shard"), lambda group: ", ".join(map(str, sorted(group.of.shards))), is_of_shards=True),
        Column("jobs", _("Jobs"), attrgetter("of.count"), NUMBER),
        Column("first_at", _("First"), attrgetter("of.first_at"), MOMENT, css=lambda group: "rtq-when"),
        Column("last_at", _("Last"), attrgetter("of.last_at"), MOMENT, css=lambda group: "rtq-when"),
    )  # fmt: skip
    actions = (ACTIONS["requeue_group"], ACTIONS["discard_group"])

    empty = Empty(_("No dead letters."), _("All failed jobs are being retried or have been dealt with."))

    def find(self, readers: Readers, wanted: Wanted) -> Found:
        """The latest group first. Messages are read of those of the page."""
        found = readers.dead_letters.all_groups(GROUPED_PER_QUEUE)
        groups = [Group(queue, group) for queue, of_queue in found.items() for group in of_queue.groups]
        groups.sort(key=attrgetter("of.last_at"), reverse=True)
        rows = readers.dead_letters.with_messages(groups[self.places(wanted)])
        return Found([Group(*row) for row in rows], len(groups), len(groups), _note(found.values()))


def _note(found: Collection[DeadGroups]) -> str:
    searched, total = (sum(getattr(groups, name) for groups in found) for name in ("searched", "total"))
    if searched >= total:
        return ""
    text = gettext("These groups include the newest %(searched)s of %(total)s dead letters.")
    return text % {"searched": format_number(searched), "total": format_number(total)}


GROUPS = DeadLetterGroups()

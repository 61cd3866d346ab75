"""The page of dead letters: groups by error."""

from __future__ import annotations

from collections.abc import Collection

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from django_rtq.console.admin.display.jobs import group_row
from django_rtq.console.admin.pages.page_admin import PageAdmin, Route, place_of
from django_rtq.console.formatting import format_number
from django_rtq.console.reading.jobs.dead_letters import DeadGroups

MAX_GROUPS = 100
GROUPED_PER_QUEUE = 1000  # newest dead letters of each queue: two round trips that do not block Redis for long


class DeadLetterAdmin(PageAdmin):
    """The page of dead letters."""

    def routes(self) -> list[Route]:
        return [Route("", "changelist", self.groups)]

    # -- pages

    def groups(self, request: HttpRequest) -> HttpResponse:
        """Dead letters grouped by task and error, the latest group first."""
        dead_letters = place_of(request).readers.dead_letters
        groups_of_queues = dead_letters.all_groups(GROUPED_PER_QUEUE)
        groups = [(queue, group) for queue, of_queue in groups_of_queues.items() for group in of_queue.groups]
        groups.sort(key=lambda pair: pair[1].last_at, reverse=True)
        context = {
            "title": _("Dead letters"),
            "groups": [
                group_row(queue, group, self.url) for queue, group in dead_letters.with_messages(groups[:MAX_GROUPS])
            ],
            "older_groups": max(0, len(groups) - MAX_GROUPS),
            "found_text": _found_text(groups_of_queues.values()),
        }
        return self.render(request, "dead.html", context)


def _found_text(found: Collection[DeadGroups]) -> str:
    searched, total = (sum(getattr(groups, name) for groups in found) for name in ("searched", "total"))
    if searched >= total:
        return ""
    text = _("These groups include the newest %(searched)s of %(total)s dead letters.")
    return text % {"searched": format_number(searched), "total": format_number(total)}

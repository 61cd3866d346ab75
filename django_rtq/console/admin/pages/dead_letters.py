"""The page of dead letters: groups by error."""

from __future__ import annotations

from django_rtq.console.admin.pages.page_admin import Route
from django_rtq.console.admin.pages.sheet_admin import SheetAdmin
from django_rtq.console.subjects.dead_letters import GROUPS


class DeadLetterAdmin(SheetAdmin):
    """The page of dead letters."""

    sheet = GROUPS

    def routes(self) -> list[Route]:
        return [Route("", "changelist", self.list)]

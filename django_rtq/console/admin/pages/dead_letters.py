"""The page of dead letters: groups by error."""

from __future__ import annotations

from django_rtq.console.admin.pages.sheet_admin import SheetAdmin
from django_rtq.console.subjects.dead_letters import GROUPS


class DeadLetterAdmin(SheetAdmin):
    """The page of dead letters."""

    sheet = GROUPS

"""Purges the waiting jobs of a queue or of one of its clients, as many as a request can."""

from __future__ import annotations

import time

from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_rtq import models
from django_rtq.admin.action_log import log_action
from django_rtq.admin.display.bulk_texts import undo_text
from django_rtq.admin.pages.bulk.actions import REQUEST_SECONDS, read_token, undo_token
from django_rtq.admin.pages.bulk.undoing import UndoPages
from django_rtq.exceptions import BrokerError
from django_rtq.inspector.inspector import get_inspector


class PurgePages(UndoPages):
    """For the admins with a page that purges."""

    def purge_for_a_while(self, request: HttpRequest, queue: str, client: str | None = None, *, back: str) -> bool:
        """Purge for as long as a request may take, log it and say so. Returns whether no job is left.

        Requests with the same token are undone together. Raises BrokerError, after what was purged until then has been
        logged.
        """
        token = read_token(request.POST, "purge")
        purged, is_over, error = _purge(queue, client, token)
        message = ngettext("%(count)d job was purged.", "%(count)d jobs were purged.", purged)
        text = message % {"count": purged}
        if purged:
            if client is None:
                log_action(request, models.Queue(name=queue), text, count=purged)
            else:
                log_action(request, models.Client(name=client), f"{queue}: {text}", queue=queue, count=purged)
        if error is not None:
            raise error
        if not is_over:
            text = _("%(done)s More jobs are waiting. Purge again to continue.") % {"done": text}
        self.say_done(request, text, token, queue, back, is_over=is_over)
        return is_over


def purge_fields(data: QueryDict, count: int) -> list[tuple[str, object]]:
    """What the form of such a page brings. A purge that continues has the same token."""
    token = undo_token("purge", count)
    return [("undo", read_token(data, "purge") or token if token else "")]


def purge_query(data: QueryDict) -> dict[str, str]:
    """What the URL of the page brings that continues."""
    return {"undo": token} if (token := read_token(data, "purge")) else {}


def purge_consequence(count: int) -> str:
    """What a purge means for so many jobs."""
    text = _("This includes scheduled jobs and jobs waiting for a retry. Running jobs and dead letters are kept.")
    return f"{text} {undo_text(count)}"


def _purge(queue: str, client: str | None, token: str) -> tuple[int, bool, BrokerError | None]:
    """Returns the number of jobs, whether it is done, and an error or None."""
    inspector, ends, total = get_inspector(), time.monotonic() + REQUEST_SECONDS, 0
    while time.monotonic() < ends:
        try:
            purged = inspector.purge(queue, client, undo=token)
        except BrokerError as error:
            return total, False, error
        total += purged
        if not purged:
            return total, True, None
    return total, False, None

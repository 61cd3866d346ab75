"""Purges the waiting jobs of a queue or of one of its clients, as many as a request can."""

from __future__ import annotations

import time

from django.contrib import messages
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_rtq import models
from django_rtq.admin.action_log import log_action
from django_rtq.admin.pages.bulk_actions import REQUEST_SECONDS
from django_rtq.exceptions import BrokerError
from django_rtq.inspector.inspector import get_inspector


def purge_for_a_while(request: HttpRequest, queue: str, client: str | None = None) -> bool:
    """Purge for as long as a request may take, log it and say so. Returns whether no job is left.

    Raises BrokerError, after what was purged until then has been logged.
    """
    purged, is_over, error = _purge(queue, client)
    message = ngettext("%(count)d job was purged.", "%(count)d jobs were purged.", purged)
    text = message % {"count": purged}
    if purged:
        if client is None:
            log_action(request, models.Queue(name=queue), text, count=purged)
        else:
            log_action(request, models.Client(name=client), f"{queue}: {text}", queue=queue, count=purged)
    if error is not None:
        raise error
    if is_over:
        messages.success(request, text)
    else:
        messages.warning(request, _("%(done)s More jobs are waiting. Purge again to continue.") % {"done": text})
    return is_over


def _purge(queue: str, client: str | None) -> tuple[int, bool, BrokerError | None]:
    """Returns the number of jobs, whether it is done, and an error or None."""
    inspector, ends, total = get_inspector(), time.monotonic() + REQUEST_SECONDS, 0
    while time.monotonic() < ends:
        try:
            purged = inspector.purge(queue, client)
        except BrokerError as error:
            return total, False, error
        total += purged
        if not purged:
            return total, True, None
    return total, False, None

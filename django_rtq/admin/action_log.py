"""Who did what: an entry in the log of the admin for each action, one for a bulk of them."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.admin.models import CHANGE, LogEntry
from django.http import HttpRequest
from django.utils.text import Truncator

from django_rtq.admin.display.formatting import names_text
from django_rtq.models import AdminEntry

_MAX_IDS = 20


def log_action(request: HttpRequest, entry: AdminEntry, message: str, ids: Sequence[str] = ()) -> None:
    """Write down what was done. Of many jobs only the first ids are named."""
    if ids:
        message = f"{message} {ids_text(ids)}"
    assert request.user.pk is not None  # nobody without an account gets this far
    LogEntry.objects.log_actions(request.user.pk, [entry], CHANGE, Truncator(message).chars(2000), single_object=True)


def ids_text(ids: Sequence[str]) -> str:
    """The first ids, and how many more there are."""
    return names_text([job_id[:64] for job_id in ids], _MAX_IDS)

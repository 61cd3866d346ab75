"""Writes actions to the admin log: one entry for each action, also for one on many jobs."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.admin.models import CHANGE, LogEntry
from django.http import HttpRequest
from django.utils.text import Truncator

from django_rtq.formatting import names_text
from django_rtq.models import AdminEntry

_MAX_IDS = 20


def log_action(request: HttpRequest, entry: AdminEntry, message: str, ids: Sequence[str] = ()) -> None:
    """Add an entry to the admin log. It names only the first ids."""
    if ids:
        message = f"{message} {ids_text(ids)}"
    assert request.user.pk is not None  # anonymous users are refused before
    LogEntry.objects.log_actions(request.user.pk, [entry], CHANGE, Truncator(message).chars(2000), single_object=True)


def ids_text(ids: Sequence[str]) -> str:
    """The first ids, and the number of the others."""
    return names_text([job_id[:64] for job_id in ids], _MAX_IDS)

"""Writes actions to Django's admin log: one entry for each, also if it is about many jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import reduce
from operator import or_

from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import Q
from django.http import HttpRequest
from django.utils.text import Truncator

from django_rtq.console.formatting import names_text
from django_rtq.core.jobs.details import JobDetails
from django_rtq.models import AdminEntry

MAX_IDS = 20  # that an entry names
MAX_CHARACTERS = 1500  # of its text, without the ids
NEAR = timedelta(seconds=10)  # between an action and its entry, by the clocks of two machines


def log_action(request: HttpRequest, entry: AdminEntry, message: str, ids: Sequence[str] = ()) -> None:
    """Add an entry to the admin log. It names only the first ids."""
    assert request.user.pk is not None  # anonymous users are refused before
    text = Truncator(message).chars(MAX_CHARACTERS)
    text = f"{text} {ids_text(ids)}" if ids else text
    LogEntry.objects.log_actions(request.user.pk, [entry], CHANGE, text, single_object=True)


def who_requeued(job: JobDetails) -> str:
    """Who requeued a job last, if somebody did so on its page, or with others of its queue, task or client."""
    if (at := job.requeued_at) is None:
        return ""
    names = {"job": job.id, "deadletter": job.queue, "registeredtask": job.task, "client": job.client}
    about = (Q(content_type__model=model, object_id=name) for model, name in names.items())
    near = LogEntry.objects.filter(reduce(or_, about), content_type__app_label="django_rtq")
    near = near.filter(action_time__range=(at - NEAR, at + NEAR)).order_by("-action_time")
    return next((entry.user.get_username() for entry in near.select_related("user")[:1]), "")


def ids_text(ids: Sequence[str]) -> str:
    """The first ids, and the number of the others."""
    return names_text([job_id[:64] for job_id in ids], MAX_IDS)

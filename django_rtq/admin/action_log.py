"""Writes actions to Django's admin log, and reads them: who did what, when, with how many jobs.

One action is one entry, also if it is about many jobs. Its message is JSON, so that entries can be filtered. A
table of our own would be a second log beside Django's, which projects read and export already.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.apps import apps
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.text import Truncator

from django_rtq import models
from django_rtq.clocks import for_database, from_database
from django_rtq.formatting import names_text
from django_rtq.models import AdminEntry

MAX_IDS = 20  # that an entry names
MAX_CHARACTERS = 1500  # of its text
_KINDS = (
    *(models.Queue, models.Job, models.DeadLetter, models.Client, models.Worker, models.Workflow),
    models.RegisteredTask,
)
_FLAGS = {ADDITION: "add", CHANGE: "change", DELETION: "delete"}
#: What an entry about one of these says of itself.
_FACTS: dict[type[AdminEntry], str] = {
    models.Queue: "queue",
    models.DeadLetter: "queue",
    models.Client: "client",
    models.RegisteredTask: "task",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedAction:
    """One entry of the log."""

    id: int
    at: datetime
    user: str
    action: str  # the name of the page's URL, such as "pause"; of a schedule: "add", "change", "delete"
    text: str
    kind: str  # the model that it is about, in lower case
    subject: str  # the name of the queue, client, …
    queue: str = ""
    task: str = ""
    client: str | None = None  # None: it is not about a client
    jobs: list[str] = field(default_factory=list)  # the first ids
    count: int | None = None  # jobs; None: it is not about jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFilter:
    """Selects the entries for which all of this is true. Empty: all entries about our pages."""

    user: str = ""
    action: str = ""
    queue: str = ""
    task: str = ""
    client: str | None = None  # "" is the client without a name
    job: str = ""
    since: datetime | None = None
    until: datetime | None = None


def log_action(
    request: HttpRequest,
    entry: AdminEntry,
    message: str,
    ids: Sequence[str] = (),
    queues: Sequence[str] = (),
    **facts: str | int,
) -> None:
    """Add an entry to the admin log. It names only the first ids.

    Facts are `queue`, `queues`, `task`, `client` and `count` (of jobs), as far as `entry` and `ids` do not say them.
    """
    assert request.user.pk is not None  # anonymous users are refused before
    if isinstance(entry, models.Job) and not ids:
        ids = [entry.name]
    about = {_FACTS[type(entry)]: entry.name} if type(entry) in _FACTS else {}
    said: dict[str, Any] = {
        "text": Truncator(message).chars(MAX_CHARACTERS),
        "action": _action_of(request),
        **about,
        **({"count": len(ids)} if ids else {}),
        **facts,
        **({"queues": [{"queue": queue} for queue in queues]} if queues else {}),  # each is found by the same text
        **({"jobs": [job_id[:64] for job_id in ids[:MAX_IDS]]} if ids else {}),
    }
    LogEntry.objects.log_actions(request.user.pk, [entry], CHANGE, json.dumps(said), single_object=True)


def read_log(wanted: LogFilter, *, limit: int, before: int = 0) -> list[LoggedAction]:
    """The newest entries that match, with ids below `before` if it is given."""
    matching, texts = _matching(wanted).select_related("user", "content_type").order_by("-pk"), list(_texts(wanted))
    entries: list[LoggedAction] = []
    while len(entries) < limit:
        rows = list((matching.filter(pk__lt=before) if before else matching)[:limit])
        # Compared once more, because SQLite ignores case.
        entries += [_read(row) for row in rows if all(text in row.change_message for text in texts)]
        if len(rows) < limit:
            break
        before = rows[-1].pk
    return entries[:limit]


def ids_text(ids: Sequence[str]) -> str:
    """The first ids, and the number of the others."""
    return names_text([job_id[:64] for job_id in ids], MAX_IDS)


def _matching(wanted: LogFilter) -> QuerySet[LogEntry]:
    kinds = ContentType.objects.get_for_models(
        *_KINDS, apps.get_model("django_rtq", "Schedule"), for_concrete_models=False
    )
    ours = Q(content_type__in=[kind.pk for kind in kinds.values()])
    entries: QuerySet[LogEntry] = LogEntry.objects.filter(ours, *_conditions(wanted))
    return entries


def _texts(wanted: LogFilter) -> Iterator[str]:
    """What the message of an entry contains if it matches."""
    for name in ("action", "queue", "task", "client"):
        value = getattr(wanted, name)
        if value or (name == "client" and value is not None):
            yield f"{json.dumps(name)}: {json.dumps(value)}"
    if wanted.job:
        yield json.dumps(wanted.job[:64])


def _conditions(wanted: LogFilter) -> Iterator[Q]:
    for text in _texts(wanted):
        yield Q(change_message__contains=text)
    if wanted.user:
        yield Q(**{f"user__{get_user_model().USERNAME_FIELD}": wanted.user})
    if wanted.since:
        yield Q(action_time__gte=for_database(wanted.since))
    if wanted.until:
        yield Q(action_time__lte=for_database(wanted.until))


def _read(entry: LogEntry) -> LoggedAction:
    ours = _facts_of(entry)
    facts = ours or {}
    jobs, count = facts.get("jobs"), facts.get("count")
    return LoggedAction(
        id=entry.pk,
        at=from_database(entry.action_time),
        user=entry.user.get_username(),
        action=_text(facts.get("action")) or _FLAGS.get(entry.action_flag, ""),
        text=_message_of(entry) if ours is None else _text(facts.get("text")),
        kind=entry.content_type.model if entry.content_type else "",
        subject=entry.object_id or "",
        queue=_text(facts.get("queue")),
        task=_text(facts.get("task")),
        client=_text(facts["client"]) if isinstance(facts.get("client"), str) else None,
        jobs=[_text(job_id) for job_id in jobs if _text(job_id)] if isinstance(jobs, list) else [],
        count=count if type(count) is int else None,
    )


def _facts_of(entry: LogEntry) -> dict[str, Any] | None:
    """What our message says. None if it is not ours: others write entries about our models, too, in any JSON."""
    try:
        facts = json.loads(entry.change_message)
    except (ValueError, RecursionError):
        return None
    return facts if isinstance(facts, dict) else None


def _text(value: object) -> str:
    """A string that can be shown; "" if it is none."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""


def _message_of(entry: LogEntry) -> str:
    """The message as Django's admin shows it, or as it is if it has no form that Django knows."""
    try:
        return str(entry.get_change_message())
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError):
        return entry.change_message


def _action_of(request: HttpRequest) -> str:
    """What the page is called: "…_queue_pause" is "pause", "…_bulk_cancel_all" "cancel"."""
    name = (request.resolver_match.url_name or "") if request.resolver_match else ""
    action = name.removeprefix("django_rtq_").partition("_")[2]
    return action.removeprefix("bulk_").removeprefix("host_").removesuffix("_all")

"""Rows of the log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext_lazy

from django_rtq.admin.action_log import LoggedAction
from django_rtq.admin.display.sanitize import clean_text, short_id
from django_rtq.admin.urls import PageUrl

#: By the last word of a page's URL name. Others are shown as they are.
ACTION_LABELS: dict[str, Any] = {
    "cancel": gettext_lazy("Cancel"),
    "discard": gettext_lazy("Discard"),
    "edit": gettext_lazy("Requeue with other arguments"),
    "enqueue": gettext_lazy("Enqueue"),
    "forget": gettext_lazy("Forget"),
    "limits": gettext_lazy("Limits"),
    "move": gettext_lazy("Move"),
    "pause": gettext_lazy("Pause"),
    "purge": gettext_lazy("Purge"),
    "quiet": gettext_lazy("Quiet"),
    "reclaim": gettext_lazy("Reclaim"),
    "requeue": gettext_lazy("Requeue"),
    "resume": gettext_lazy("Resume"),
    "run_now": gettext_lazy("Run now"),
    "send": gettext_lazy("Send an event"),
    "stop": gettext_lazy("Stop"),
    "terminate": gettext_lazy("Terminate"),
    "wake": gettext_lazy("Wake"),
}
_TITLES = {
    "queue": gettext_lazy("Queue"),
    "deadletter": gettext_lazy("Queue"),
    "client": gettext_lazy("Client"),
    "registeredtask": gettext_lazy("Task"),
    "job": gettext_lazy("Job"),
    "worker": gettext_lazy("Worker"),
    "schedule": gettext_lazy("Schedule"),
}


def log_rows(entries: Iterable[LoggedAction], url: PageUrl) -> list[dict[str, Any]]:
    """Rows of the template `_log.html`."""
    return [
        {
            "entry": entry,
            "action": str(ACTION_LABELS.get(entry.action, entry.action)),
            "kind": str(_TITLES.get(entry.kind, entry.kind)),
            "subject": short_id(entry.subject) if entry.kind == "job" else clean_text(entry.subject, 80),
            "url": _subject_url(entry, url),
            "jobs": [
                {"short_id": short_id(job_id), "url": url("job_change", job_id, query={"queue": entry.queue})}
                for job_id in entry.jobs[:3]
                if job_id != entry.subject
            ],
        }
        for entry in entries
    ]


def _subject_url(entry: LoggedAction, url: PageUrl) -> str:
    """The page of what the entry is about; "" if it has none."""
    name = entry.subject
    if entry.kind == "client":
        return url("client_change", query={"client": name}) if name else f"{url('client_change')}?client="
    if not name:
        return ""
    if entry.kind == "job":
        return url("job_change", name, query={"queue": entry.queue})
    page = {"queue": "queue_change", "deadletter": "queue_change", "registeredtask": "registeredtask_change"}
    query = {"state": "dead"} if entry.kind == "deadletter" else None
    return url(page[entry.kind], name, query=query) if entry.kind in page else ""

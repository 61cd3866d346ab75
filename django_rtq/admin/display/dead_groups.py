"""Rows of dead letters that are grouped by task and error."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from django_rtq.admin.urls import PageUrl
from django_rtq.inspector.jobs.dead_letters import DeadGroup
from django_rtq.redaction import group_message


def group_row(queue: str, group: DeadGroup, url: PageUrl) -> dict[str, Any]:
    """A row of the template `_groups.html`."""
    # Without both names a filter would match other groups as well.
    is_known = bool(group.task and group.error_class)
    query = {"queue": queue, "task": group.task, "error": group.error_class}
    return {
        "queue": queue,
        "group": group,
        "message": _message_of(group),
        "url": url("queue_change", queue, query={"state": "dead", **query, "queue": ""}),
        "task_url": url("registeredtask_change", group.task) if group.task else "",
        "requeue_url": url("deadletter_requeue_all", query=query) if is_known else "",
        "discard_url": url("deadletter_discard_all", query=query) if is_known else "",
    }


def _message_of(group: DeadGroup) -> str:
    message = group_message(group)
    return (
        _("Message not shown because the arguments are very long. Open a job to see it.")
        if message is None
        else message
    )

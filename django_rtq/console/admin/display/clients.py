"""The limits of a client, and what the template of its page shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_rtq.console.acting.actions import ACTIONS
from django_rtq.console.formatting import format_number
from django_rtq.console.reading.clients.client_states import ClientInQueue
from django_rtq.console.render.html import Viewer, action_html
from django_rtq.console.sanitize import clean_text
from django_rtq.limits.limits import Limit, Limits

#: What people call a limit.
LIMIT_LABELS = {
    "max_running": gettext_lazy("Running jobs"),
    "rate": gettext_lazy("Starts"),
    "burst": gettext_lazy("Starts at once"),
    "weight": gettext_lazy("Weight"),
    "max_waiting": gettext_lazy("Waiting jobs"),
    "fair_by": gettext_lazy("Turns by"),
}


def limit_label(name: str) -> str:
    """The label of a limit."""
    return str(LIMIT_LABELS.get(name, name))


def limit_text(limit: Limit) -> str:
    """The value of a limit."""
    if limit.value is None:
        return _("no limit")
    return format_number(limit.value) if isinstance(limit.value, int) else str(limit.value)


def limit_rows(limits: Limits, own: Limits | None = None) -> list[dict[str, str]]:
    """A row for each limit: its label, its value, and where it comes from. `own`: those of the client itself."""
    rows = []
    for name, limit in limits.items():
        source = _("settings") if limit.is_from_settings else _("set at run time")
        if own is not None and name not in own:
            source = _("%(source)s, for each client") % {"source": source}
        rows.append({"label": limit_label(name), "value": limit_text(limit), "source": source})
    return rows


def client_rows(clients: list[ClientInQueue], name: str, viewer: Viewer) -> list[dict[str, Any]]:
    """A row for each queue of a client."""
    purge = ACTIONS["purge_client"]
    in_queue = replace(viewer, fields=lambda queue: {"client": name, "queue": queue})
    return [
        {
            "client": client,
            "state": clean_text(client.reason, 300),
            "limits": limit_rows(client.in_force, client.own),
            "purge": action_html(purge, "client", client.queue, in_queue, is_button=True)
            if purge.applies(client) and viewer.may(purge.permission)
            else "",
        }
        for client in clients
    ]

"""The list of clients: what its URL says, and what the template shows. The limits of a client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_rtq.console.acting.actions import ACTIONS
from django_rtq.console.admin.display.paged_list import ListParams, paged_context
from django_rtq.console.formatting import format_duration, format_number
from django_rtq.console.reading.clients.client_list import STATES, AllClients
from django_rtq.console.reading.clients.client_states import ClientInQueue
from django_rtq.console.reading.clients.queue_clients import MOST
from django_rtq.console.render.html import Viewer, action_html
from django_rtq.console.sanitize import clean_text
from django_rtq.limits.limits import Limit, Limits

_TITLES = {
    "name": gettext_lazy("Client"),
    "queued": gettext_lazy("Queued"),
    "scheduled": gettext_lazy("Scheduled"),
    "running": gettext_lazy("Running"),
    "oldest": gettext_lazy("Oldest wait"),
    "starts": gettext_lazy("Starts"),
    "time": gettext_lazy("Run time"),
    "fair": gettext_lazy("Fair share"),
}
_STATE_TITLES = {
    "": gettext_lazy("All"),
    "waiting": gettext_lazy("With waiting jobs"),
    "paused": gettext_lazy("Paused"),
    "limited": gettext_lazy("With limits"),
}


@dataclass(frozen=True, kw_only=True)
class ClientListParams(ListParams):
    """What the URL of the list says."""

    TITLES = _TITLES
    STATES = STATES
    FIRST = "queued"


def list_context(
    params: ClientListParams, found: AllClients, url: Callable[[Mapping[str, object]], str]
) -> dict[str, Any]:
    """What the template shows. `url` gives the URL of the list with some parameters."""
    names = found.matching(sort=params.sort, is_reversed=params.is_reversed, search=params.search, state=params.state)
    rows = [found.client(name) for name in names[params.start : params.start + params.PER_PAGE]]
    return {
        **paged_context(params, len(rows), len(names), url),
        "found": found,
        "rows": rows,
        "matching": len(names),
        "states": [
            {
                "title": title,
                "url": url(replace(params, state=state, page=1).query),
                "is_current": state == params.state,
            }
            for state, title in _STATE_TITLES.items()
        ],
        "age_text": _("Counted %(duration)s ago.") % {"duration": format_duration(max(1.0, found.age_seconds))}
        if found.age_seconds
        else "",
        "most": MOST,
    }


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

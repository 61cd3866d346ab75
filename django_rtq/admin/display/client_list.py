"""The list of clients: what its URL says, and what the template shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_rtq.admin.display.paged_list import ListParams, paged_context
from django_rtq.formatting import format_duration
from django_rtq.inspector.clients.client_list import STATES, ClientPage
from django_rtq.inspector.clients.queue_clients import MOST

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

    @property
    def selection(self) -> Mapping[str, Any]:
        """As arguments of ClientCounts.page()."""
        return {
            "search": self.search,
            "state": self.state,
            "sort": self.sort,
            "is_reversed": self.is_reversed,
            "start": self.start,
            "limit": self.PER_PAGE,
        }


def list_context(
    params: ClientListParams, found: ClientPage, url: Callable[[Mapping[str, object]], str]
) -> dict[str, Any]:
    """What the template shows. `url` gives the URL of the list with some parameters."""
    return {
        **paged_context(params, len(found.clients), found.matching, url),
        "found": found,
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

"""Clients: all of them over all queues, and those of one queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_rtq.console.acting.actions import ACTIONS, everywhere
from django_rtq.console.formatting import format_duration, format_number
from django_rtq.console.reading.clients import MAX_ENTRIES, STATES, AllClients, ClientInQueue
from django_rtq.console.reading.readers import Readers
from django_rtq.console.reading.selection import Selection
from django_rtq.console.render.column import BAR, DURATION, LINES, NUMBER, SHARE, Column, Kind, PageUrl, State, states
from django_rtq.console.render.sheet import Empty, Filter, Found, Sheet, Wanted
from django_rtq.limits.limit_kinds import Limits

SHARES_NOTE = _(
    "Starts and run time are parts of what ran in the last 10 minutes, estimated. The fair share is a client’s weight "  # noqa: RUF001
    "among the clients that had work."
)


#: What people call a limit.
LIMIT_LABELS = {
    "max_running": _("Running jobs"),
    "rate": _("Starts"),
    "burst": _("Starts at once"),
    "weight": _("Weight"),
    "max_waiting": _("Waiting jobs"),
    "fair_by": _("Turns by"),
}


def limit_lines(limits: Limits, own: Limits) -> list[str]:
    """Limits in force, and where each comes from. `own`: those that are not the limits of each client."""
    lines = []
    for name, limit in limits.items():
        source = gettext("settings") if limit.is_from_settings else gettext("set at run time")
        if name not in own:
            source = gettext("%(source)s, for each client") % {"source": source}
        number = format_number(limit.value) if isinstance(limit.value, int) else limit.value
        lines.append(f"{LIMIT_LABELS.get(name, name)}: {number or gettext('no limit')} ({source})")
    return lines


def _list_url(client: ClientInQueue, url: PageUrl) -> str:
    """The jobs of a client in a queue. A query cannot find those of the client without a name."""
    wanted = str(Selection(client=client.client))
    return url("queue_change", client.queue, query={"q": wanted}) if client.client else ""


def _name(name: str) -> Column:
    return Column(
        name,
        _("Client"),
        lambda client: client.client or gettext("(none)"),
        link=lambda client, url: f"{url('client_change')}?{urlencode({'client': client.client})}",
        css=lambda client: "rtq-path",  # names may be long
        is_sortable=True,
    )


def _figure(name: str, title: Any, kind: Kind = NUMBER) -> Column:
    return Column(name, title, kind=kind, is_sortable=True)


def _figures(oldest: str) -> tuple[Column, ...]:
    """What is told of a client anywhere. `oldest`: the name of that column."""
    return (
        _figure("queued", _("Queued")),
        _figure("scheduled", _("Scheduled")),
        _figure("running", _("Running")),
        Column(oldest, _("Oldest wait"), attrgetter("oldest_seconds"), DURATION, is_sortable=True),
        _figure("starts", _("Starts"), BAR),
        _figure("time", _("Run time"), SHARE),
        _figure("fair", _("Fair share"), SHARE),
        Column("shards", _("Shard"), lambda client: ", ".join(map(str, sorted(client.shards))), is_of_shards=True),
    )


class Clients(Sheet[ClientInQueue]):
    """All clients, over all queues."""

    model, title, key, order, searches = "client", _("Clients"), "client", "queued", _("Part of the name")
    columns = (
        _name("name"),
        Column(
            "limited",
            "",
            lambda client: "limited" if client.limits else "",
            states({"limited": State(_("has limits"), "plain")}),
            under="name",
        ),
        *_figures("oldest"),
        Column("reasons", _("State"), kind=LINES),
    )
    filters = {
        state: Filter(title)
        for state, title in zip(STATES, (_("With waiting jobs"), _("Paused"), _("With limits")), strict=True)
    }
    empty = Empty(_("No client has jobs."), _("Jobs of a task belong to the client that its option client names."))

    def find(self, readers: Readers, wanted: Wanted) -> Found:
        """They are kept as counters, and only those of a page are added up."""
        found = readers.clients.all()
        names = found.matching(
            sort=wanted.sort, is_reversed=wanted.is_reversed, search=wanted.search, state=wanted.state
        )
        rows = [found.client(name) for name in names[self.places(wanted)]]
        return Found(rows, len(names), found.known, _note(found))

    def where(self, row: Any) -> tuple[Sequence[str], Mapping[str, str]]:
        return [], {"client": row.client}


def _note(found: AllClients) -> str:
    """What has to be known of the figures."""
    texts = [gettext("Sums over all queues. Running jobs are counted in queues with limits."), str(SHARES_NOTE)]
    if age := found.age_seconds:
        texts.insert(0, gettext("Counted %(duration)s ago.") % {"duration": format_duration(max(1.0, age))})
    if not found.is_complete:
        text = gettext("Of a queue with more than %(most)s clients, those whose first jobs wait longest were counted.")
        texts.append(text % {"most": format_number(MAX_ENTRIES)})
    return " ".join(texts) if found.known else ""


class _OfOne(Sheet[ClientInQueue]):
    """Of one client, or of one queue."""

    model = "client"
    figures = (
        *_figures("oldest_seconds"),
        Column("limits", _("Limits"), lambda client: limit_lines(client.in_force, client.limits), LINES),
        Column("reason", _("State"), lambda client: client.reason or None,
               css=lambda client: "rtq-is-warn" if client.pause else ""),
    )  # fmt: skip

    def facts(self, row: ClientInQueue) -> Mapping[str, Any]:
        """Without what all clients of the queue have in common."""
        known = {name: value for name, value in asdict(row).items() if name != "queue_state" and value != ()}
        return {**known, "own": known["limits"], "reason": row.reason}


class InQueues(_OfOne):
    """One client, in each queue."""

    title, key = _("Queues"), "queue"
    columns = (Column("queue", _("Queue"), link=_list_url), *_OfOne.figures)
    empty = Empty(
        _("Nothing is known of this client."), _("It has no waiting jobs, no limits of its own, and is not paused.")
    )
    actions = (ACTIONS["pause_client"], ACTIONS["resume_client"], ACTIONS["limit_client"])

    def where(self, row: ClientInQueue) -> tuple[Sequence[str], Mapping[str, str]]:
        return [], {"client": row.client, "queue": row.queue}


class ClientRow(NamedTuple):
    """A client in all queues."""

    client: str
    in_queues: Sequence[ClientInQueue]


#: What can be done with a client on its own page.
OF_CLIENT = (
    *everywhere("client", lambda client: bool(client.in_queues),
                lambda client: all(each.pause for each in client.in_queues)),
    ACTIONS["cancel_client"],
    ACTIONS["requeue_client"],
    ACTIONS["erase_client"],
)  # fmt: skip


class OfQueue(_OfOne):
    """Clients of one queue."""

    title, key = _("Clients"), "client"
    columns = (_name("client"), *_OfOne.figures)


CLIENTS, IN_QUEUES, OF_QUEUE = Clients(), InQueues(), OfQueue()

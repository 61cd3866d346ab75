"""The pages of clients: who waits and who works, pauses and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from django_rtq.console.acting.verb import Target, Verb
from django_rtq.console.admin import query_params
from django_rtq.console.admin.forms import LimitsForm
from django_rtq.console.admin.pages.page_admin import PageAdmin, Route, place_of
from django_rtq.console.reading.readers import readers_of
from django_rtq.console.render.html import buttons, tables
from django_rtq.console.sanitize import clean_text
from django_rtq.console.subjects.clients import CLIENTS, IN_QUEUES, OF_CLIENT, SHARES_NOTE, ClientRow
from django_rtq.core.broker.task_backends import shard_places
from django_rtq.core.conf.queue_options import CLIENT_LIMITS
from django_rtq.core.tasks.calls import is_client_name


class ClientAdmin(PageAdmin):
    """The pages of the clients. A client may have no name, so names are in the query, not in the path."""

    sheet = CLIENTS

    def routes(self) -> list[Route]:
        return [
            Route("", "changelist", self.list),
            Route("client/", "change", self.client),
            *self.action_routes("", IN_QUEUES.actions),
        ]

    # -- pages

    def list_context(self, request: HttpRequest, rows: Any) -> Mapping[str, Any]:
        name = query_params.get_text(request.GET, "search")
        text = _("Show the client named “%(name)s”") % {"name": clean_text(name, 80)}
        return {"elsewhere": (self.url("client_change", query={"client": name}), text) if name else ()}

    def client(self, request: HttpRequest) -> HttpResponse:
        """One client in all queues."""
        name, viewer = _client_of(request.GET), self.viewer(request)
        in_queues = [in_queue for in_queue in place_of(request).readers.clients.get(name) if in_queue.is_known]
        note = f"{_('Running jobs are counted in queues with limits.')} {SHARES_NOTE}"
        context = {
            "title": _("Client %(name)s") % {"name": clean_text(name, 80) or _("(none)")},
            "sheet": IN_QUEUES,
            "tables": tables(IN_QUEUES, in_queues, viewer),
            "found": {"note": note if in_queues else ""},
            "buttons": buttons(CLIENTS, ClientRow(name, in_queues), viewer, OF_CLIENT),
            "breadcrumbs": [{"url": self.url("client_changelist"), "title": _("Clients")}],
        }
        return self.render(request, "list.html", context)

    # -- actions

    def target(self, request: HttpRequest, name: str) -> Target:
        """The client, in one queue or in all."""
        data = query_params.given(request)
        target = super().target(request, _client_of(data))
        return target._replace(queue=_queue_of(data) if "queue" in data else None)

    def home(self, target: Target) -> str:
        return self.url("client_change", query={"client": target.name})

    def act_on(self, request: HttpRequest, verb: Verb, target: Target) -> HttpResponse:
        try:
            return super().act_on(request, verb, target)
        finally:
            if request.method == "POST":
                for place in shard_places():
                    readers_of(place).clients.forget()

    def form_of(self, request: HttpRequest, verb: Verb, target: Target) -> Form | None:
        if verb.name != "limits":
            return None
        queue = _queue_of(query_params.given(request))
        _state, (client,) = place_of(request).readers.clients.in_queue(queue, [target.name])
        return LimitsForm(request.POST or None, known=CLIENT_LIMITS, limits=client.limits)


def _client_of(data: Any) -> str:
    """The client of a request; "" is the one without a name. Raises Http404."""
    name = str(data.get("client", ""))
    if not is_client_name(name):
        raise Http404
    return name


def _queue_of(data: Any) -> str:
    """The queue of a request. Raises Http404."""
    if not (queue := query_params.get_queue_name(data)):
        raise Http404
    return queue

"""The pages of clients: who waits and who works, pauses and limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _

from django_rtq import models
from django_rtq.console.acting.actions import ACTIONS
from django_rtq.console.acting.verb import Target
from django_rtq.console.admin import query_params
from django_rtq.console.admin.action_log import log_action
from django_rtq.console.admin.forms import LimitsForm
from django_rtq.console.admin.pages.page_admin import PageAdmin, Route, place_of
from django_rtq.console.reading.readers import readers_of
from django_rtq.console.render.html import buttons, tables
from django_rtq.console.sanitize import clean_text
from django_rtq.console.subjects.clients import CLIENTS, IN_QUEUES, OF_CLIENT, SHARES_NOTE, ClientRow
from django_rtq.core.broker.task_backends import shard_places
from django_rtq.core.conf.queue_options import CLIENT_LIMITS, QUEUE_LIMITS
from django_rtq.core.tasks.calls import is_client_name
from django_rtq.models import AdminEntry

SCOPES = ("client", "each", "queue")  # whose limits a form changes


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
            "title": _("Client %(name)s") % {"name": _shown(name)},
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

    def limits(self, request: HttpRequest) -> HttpResponse:
        """Change the limits of a client in a queue, of each client, or of the whole queue."""
        data = query_params.given(request)
        queue, name = _queue_of(data), _client_of(data)
        scope = query_params.get_choice(data, "scope", SCOPES, "client")
        place = place_of(request)
        state, (client,) = place.readers.clients.in_queue(queue, [name])
        change: Callable[..., None]
        entry: AdminEntry
        if scope == "client":
            title, entry, back = ACTIONS["limit_client"].question, models.Client(name=name), self.home(Target(name))
            limits, change = client.limits, partial(place.clients[name].limit, queue)
        else:
            noun, entry, back = place.queues[queue], models.Queue(name=queue), self.url("queue_change", queue)
            title, limits, change = (
                (_("Limits of queue %(queue)s"), state.limits, noun.limit)
                if scope == "queue"
                else (_("Limits of each client in queue %(queue)s"), state.default, noun.limit_clients)
            )
        known = QUEUE_LIMITS if scope == "queue" else CLIENT_LIMITS
        form = LimitsForm(request.POST if request.method == "POST" else None, known=known, limits=limits)
        if request.method == "POST" and form.is_valid():
            try:
                if not form.changed_limits:
                    messages.warning(request, _("Nothing was changed."))
                else:
                    change(**form.changed_limits)
                    what = ", ".join(f"{limit}={value}" for limit, value in form.changed_limits.items())
                    text = _("Limits in queue %(queue)s changed: %(limits)s") % {"queue": queue, "limits": what}
                    log_action(request, entry, text)
                    messages.success(request, text)
                return HttpResponseRedirect(back)
            except ValueError as error:  # it cannot be divided among shards
                form.add_error(None, str(error))
        context = {
            "title": title % {"client": _shown(name), "queue": queue},
            "form": form,
            "verb": _("Save"),
            "is_harmless": True,
            "back": back,
        }
        return self.render(request, "limits.html", context, is_form=True)

    # -- helpers

    def _dispatch(self, page: Route, request: HttpRequest, **names: str) -> HttpResponse:
        try:
            return super()._dispatch(page, request, **names)
        finally:
            if request.method == "POST":
                for place in shard_places():
                    readers_of(place).clients.forget()


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


def _shown(name: str) -> str:
    return clean_text(name, 80) or _("(none)")

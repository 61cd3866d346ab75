"""The overview, the page of a queue, and its actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from django_rtq.console.acting.verb import Target, Verb
from django_rtq.console.admin import overview, query_params
from django_rtq.console.admin.forms import ForgetForm, LimitsForm
from django_rtq.console.admin.pages.job_lists import job_table
from django_rtq.console.admin.pages.page_admin import PageAdmin, Route, place_of, wanted_in
from django_rtq.console.admin.query_params import REFRESH_HEADER
from django_rtq.console.admin.time_charts import SPANS, history_charts
from django_rtq.console.formatting import format_duration
from django_rtq.console.incidents import look
from django_rtq.console.reading.details import QueueDetails
from django_rtq.console.reading.overview import Overview
from django_rtq.console.render.html import buttons, listing, tables
from django_rtq.console.render.sheet import Wanted
from django_rtq.console.sanitize import clean_text
from django_rtq.console.subjects.clients import OF_QUEUE
from django_rtq.console.subjects.queues import LIMITS, QUEUES, Queue
from django_rtq.console.subjects.tasks import VERSIONS
from django_rtq.core.conf.config import get_config
from django_rtq.core.conf.queue_options import CLIENT_LIMITS, QUEUE_LIMITS, is_queue_name


class QueueAdmin(PageAdmin):
    """The pages of the queues."""

    sheet = QUEUES

    def routes(self) -> list[Route]:
        return [*super().routes(), *self.action_routes(actions=LIMITS)]

    # -- pages

    def list(self, request: HttpRequest, sheet: Any = None) -> HttpResponse:
        """The overview of all queues."""
        chosen = query_params.get_choice(request.GET, "span", SPANS, "1h")
        readers, span, wanted = place_of(request).readers, SPANS[chosen], wanted_in(request, self.sheet)
        is_fresh = REFRESH_HEADER not in request.headers
        seen = look(readers, lambda each: each.overview.shared(fresh=is_fresh))
        front, series = seen.overview, [row.series for row in seen.overview.queues]
        if chosen != "1h" and front.queues:
            series = readers.overview.history(span.read_minutes, span.step)
        health = overview.health_of(seen.incidents, front, self.url, readers.silent.values())
        sort = wanted.query("")["sort"]
        context = {
            **self._table(request, front, wanted, health["queues"], {"span": "" if chosen == "1h" else chosen}),
            "title": _("Task queues"),
            "health": health,
            "figures": overview.figures(front, self.url),
            "totals": overview.totals(front, self.url, seen.lag),
            "charts": history_charts(series, span, front.deploys) if series else [],
            "spans": [
                {
                    "title": each.title,
                    "url": self.url("queue_changelist", query={"span": key, "sort": sort}),
                    "is_current": key == chosen,
                }
                for key, each in SPANS.items()
            ],
        }
        return self.render(request, "overview.html", context)

    def _table(
        self, request: HttpRequest, front: Overview, wanted: Wanted, troubled: Sequence[str], also: dict[str, object]
    ) -> dict[str, Any]:
        """The table of queues, those with incidents first. Its links are relative: it is fetched every few seconds."""
        here = self.url("queue_changelist")
        page = cache(lambda name, *args: self.url(name, *args).removeprefix(here))

        def short(name: str, *args: str, query: Mapping[str, object] | None = None) -> str:
            if query is None:
                return page(name, *args)
            query = {**query, **also} if name == "queue_changelist" else query
            return self.url(name, *args, query=query).removeprefix(here)

        place = {name: number for number, name in enumerate(troubled)}
        names = sorted((row.details.name for row in front.queues), key=lambda name: place.get(name, len(place)))
        queues = QUEUES.named(place_of(request).readers, front, names)
        return listing(QUEUES, QUEUES.page(queues, wanted), wanted, self.viewer(request, url=short))

    def page(self, request: HttpRequest, name: str) -> HttpResponse:
        """The page of a queue: its jobs by state, and its clients."""
        _check_name(name)
        readers, viewer = place_of(request).readers, self.viewer(request)
        queue = readers.queue(name)
        context = {
            "title": _("Queue %(name)s") % {"name": name},
            "row": queue.details,
            **job_table(request, queue.details, viewer),
            "client_tables": tables(OF_QUEUE, readers.clients.busiest(name), viewer, titles={"fair": None}),
            "version_tables": tables(VERSIONS, queue.versions, viewer),
            "charts": history_charts([queue.series], SPANS["1h"], queue.deploys),
            "breadcrumbs": [{"url": self.url("queue_changelist"), "title": _("Queues")}],
            "buttons": buttons(QUEUES, Queue(queue.details), viewer, (*QUEUES.actions, *LIMITS)),
            **_state_of(queue.details, are_all=not readers.silent),
        }
        return self.render(request, "queue.html", context)

    # -- actions

    def target(self, request: HttpRequest, name: str) -> Target:
        _check_name(name)
        return Target(name, queue=name, by=request.user.get_username())

    def form_of(self, request: HttpRequest, verb: Verb, target: Target) -> Form | None:
        data, readers = request.POST or None, place_of(request).readers
        if verb.name == "forget" and readers.queues.get(target.name).finished:
            return ForgetForm(data)
        if verb.name not in ("limits", "limit_clients"):
            return None
        state, _clients = readers.clients.in_queue(target.name, [])
        if verb.name == "limits":
            return LimitsForm(data, known=QUEUE_LIMITS, limits=state.limits)
        return LimitsForm(data, known=CLIENT_LIMITS, limits=state.default)

    def ask_context(self, request: HttpRequest, verb: Verb, target: Target) -> dict[str, Any]:
        return {"breadcrumbs": [{"url": self.url("queue_change", target.name), "title": target.name}]}

    def back(self, request: HttpRequest, verb: Verb, target: Target) -> str:
        return self.url("queue_changelist") if verb.name == "forget" else super().back(request, verb, target)


def _check_name(name: str) -> None:
    """Raises Http404 if the name is not valid for a queue."""
    if not is_queue_name(name):
        raise Http404


def _state_of(details: QueueDetails, *, are_all: bool) -> dict[str, Any]:
    """The state of a queue and its warning, shown above its jobs. `are_all`: no shard is silent."""
    contact = details.contact_seconds
    is_alone = are_all and (contact is None or contact > get_config().lease_seconds)
    warning = _("No worker serves this queue, so its jobs do not run. Start one:") if is_alone else ""
    waits = format_duration(details.oldest_seconds)
    oldest = _("oldest job waiting for %(duration)s") % {"duration": waits} if details.queued else ""
    return {
        "warning": warning,
        "command": f"python manage.py rtq_worker --queues {details.name}" if is_alone else "",
        "state_text": ", ".join(filter(None, [clean_text(details.holds, 200), oldest])),
    }

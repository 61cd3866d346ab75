"""The overview, the page of a queue, and its actions: pause, resume, purge and forget."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_rtq import models
from django_rtq.console import permissions
from django_rtq.console.admin import query_params
from django_rtq.console.admin.action_log import log_action
from django_rtq.console.admin.display import overview
from django_rtq.console.admin.display.bulk_texts import purge_consequence
from django_rtq.console.admin.display.charts.history import SPANS, deploy_events, history_charts, span_links
from django_rtq.console.admin.display.incidents import health_of, health_of_shards
from django_rtq.console.admin.display.jobs import PAGE_SIZE, JobTable
from django_rtq.console.admin.pages.bulk.pages import BulkPages
from django_rtq.console.admin.pages.page_admin import Route, counts_of
from django_rtq.console.admin.refreshing import REFRESH_HEADER
from django_rtq.console.formatting import format_duration
from django_rtq.console.incidents import Incident, find_incidents
from django_rtq.console.incidents.schedules import known_schedules
from django_rtq.console.inspector.details import QueueDetails
from django_rtq.console.inspector.inspector import Inspector, get_inspector
from django_rtq.console.inspector.metrics.time_series import Series
from django_rtq.console.inspector.overview import Overview
from django_rtq.console.inspector.places import shard_place, view_backend, views_all_shards
from django_rtq.core.conf.config import get_config
from django_rtq.core.conf.queue_options import is_queue_name
from django_rtq.databases.outbox import OutboxLag, outbox_lag

MAX_CLIENTS = 20


class QueueAdmin(BulkPages):
    """The pages of the queues."""

    bulk_prefix, bulk_home, bulk_entry = "queue_", "queue_changelist", models.Queue

    def routes(self) -> list[Route]:
        return [
            Route("", "changelist", self.overview),
            Route("<str:name>/pause/", "pause", self.pause, permissions.PAUSE, "POST"),
            Route("<str:name>/resume/", "resume", self.resume, permissions.PAUSE, "POST"),
            Route("<str:name>/purge/", "purge", self.purge, permissions.PURGE, "BOTH"),
            Route("<str:name>/forget/", "forget", self.forget, permissions.PURGE, "BOTH"),
            Route("<str:name>/", "change", self.queue),
        ]

    # -- pages

    def overview(self, request: HttpRequest) -> HttpResponse:
        """The overview of all queues."""
        chosen = query_params.get_choice(request.GET, "span", SPANS, "1h")
        if views_all_shards():
            return self._overview_of_shards(request, chosen)
        front, series = _read_overview(get_inspector(), chosen, is_fresh=REFRESH_HEADER not in request.headers)
        lag = outbox_lag()
        health = health_of(find_incidents(front, lag, known_schedules()), front, self.url)
        return self._render_overview(request, chosen, front, series, lag, {"health": health})

    def _overview_of_shards(self, request: HttpRequest, chosen: str) -> HttpResponse:
        """The same of all shards together. Raises BrokerError if none answers."""
        from django_rtq.console.shards.all_shards import ask_shards, merged_front  # most projects have no shards

        read = partial(_read_overview, chosen=chosen, is_fresh=REFRESH_HEADER not in request.headers)
        answers = ask_shards(lambda inspector, _number: read(inspector))
        front, series = merged_front(answers.checked())
        lags: dict[int, OutboxLag | None] = {}
        found: dict[int, list[Incident]] = {}
        for number, (of_shard, _series) in answers.by_shard.items():
            with view_backend(shard_place(number)):
                lags[number] = outbox_lag()
                found[number] = find_incidents(of_shard, lags[number], known_schedules())
        of_all = {"health": health_of_shards(answers, found, front, self.url), "counts": counts_of(front)}
        return self._render_overview(request, chosen, front, series, overview.sum_of_lags(lags.values()), of_all)

    def _render_overview(
        self,
        request: HttpRequest,
        chosen: str,
        front: Overview,
        series: Sequence[Series],
        lag: OutboxLag | None,
        more: dict[str, Any],
    ) -> HttpResponse:
        span = SPANS[chosen]
        events = deploy_events(front.deploys)
        context = {
            "title": _("Task queues"),
            "totals": overview.totals(front, self.url, lag),
            "rows": overview.rows(front, self.url),
            "charts": history_charts(series, span, events) if series else [],
            "spans": span_links(SPANS, chosen, lambda key: self.url("queue_changelist", query={"span": key})),
            **more,
        }
        return self.render(request, "overview.html", context)

    def queue(self, request: HttpRequest, name: str) -> HttpResponse:
        """The page of a queue: its jobs by state, and its clients."""
        _check_name(name)
        table = JobTable.read(request, name)
        queue_page = get_inspector().queue_page(
            name,
            table.state,
            cursor=table.cursor,
            limit=PAGE_SIZE,
            filter=table.filter,
            clients=MAX_CLIENTS,
        )
        details = queue_page.details
        context = {
            "title": _("Queue %(name)s") % {"name": name},
            "row": details,
            **table.context(queue_page.page, details, self.url),
            "clients": queue_page.clients.clients,
            "breadcrumbs": [{"url": self.url("queue_changelist"), "title": _("Queues")}],
            **_state_of(details),
        }
        return self.render(request, "queue.html", context)

    # -- actions

    def pause(self, request: HttpRequest, name: str) -> HttpResponse:
        """Pause a queue: no new jobs start."""
        _check_name(name)
        if get_inspector().pause(name):
            log_action(request, models.Queue(name=name), _("Paused."))
            message = _("Queue %(name)s is paused. Running jobs continue, and no new jobs start.")
            messages.success(request, message % {"name": name})
        else:
            messages.warning(request, _("Queue %(name)s was already paused.") % {"name": name})
        return self._back(request, name)

    def resume(self, request: HttpRequest, name: str) -> HttpResponse:
        """Resume a paused queue."""
        _check_name(name)
        if get_inspector().resume(name):
            log_action(request, models.Queue(name=name), _("Resumed."))
            messages.success(request, _("Queue %(name)s was resumed.") % {"name": name})
        else:
            messages.warning(request, _("Queue %(name)s is not paused.") % {"name": name})
        return self._back(request, name)

    def purge(self, request: HttpRequest, name: str) -> HttpResponse:
        """Delete all waiting jobs, after the name of the queue was typed."""
        _check_name(name)
        details = get_inspector().queues.get(name)
        waiting = _waiting(details)
        if request.method == "POST":
            if request.POST.get("name", "") == name:
                return self._purge(request, name)
            messages.error(request, _("Nothing was purged: the name you typed is not the name of the queue."))
        context = {
            "title": _("Purge queue %(name)s") % {"name": name},
            "row": details,
            "question": ngettext(
                "This deletes %(count)d job that is waiting in queue %(name)s.",
                "This deletes %(count)d jobs that are waiting in queue %(name)s.",
                waiting,
            )
            % {"count": waiting, "name": name},
            "consequence": purge_consequence(),
            "breadcrumbs": [{"url": self.url("queue_change", name), "title": name}],
        }
        return self.render(request, "purge.html", context, is_form=True)

    def forget(self, request: HttpRequest, name: str) -> HttpResponse:
        """Remove a queue without jobs and workers from all lists, after its name was typed."""
        _check_name(name)
        if request.method == "POST":
            if request.POST.get("name", "") == name:
                return self._forget(request, name)
            messages.error(request, _("Nothing was changed: the name you typed is not the name of the queue."))
        context = {
            "title": _("Forget queue %(name)s") % {"name": name},
            "row": get_inspector().queues.get(name),
            "breadcrumbs": [{"url": self.url("queue_change", name), "title": name}],
        }
        return self.render(request, "forget.html", context, is_form=True)

    # -- helpers

    def _forget(self, request: HttpRequest, name: str) -> HttpResponse:
        answer = get_inspector().forget(name, discard_outcomes="discard_outcomes" in request.POST)
        if reason := _why_it_stays(answer):
            messages.error(request, reason % {"name": name})
            return HttpResponseRedirect(self.url("queue_forget", name))
        if answer == "forgotten":
            log_action(request, models.Queue(name=name), _("Forgotten."))
            messages.success(request, _("Queue %(name)s was forgotten.") % {"name": name})
        else:
            messages.warning(request, _("Queue %(name)s is in no list: nothing was changed.") % {"name": name})
        return HttpResponseRedirect(self.url("queue_changelist"))

    def _purge(self, request: HttpRequest, name: str) -> HttpResponse:
        back = self.url("queue_change", name)

        def log(text: str) -> None:
            log_action(request, models.Queue(name=name), text)

        is_over = self.purge_for_a_while(request, name, None, log)
        return HttpResponseRedirect(back if is_over else self.url("queue_purge", name))

    def _back(self, request: HttpRequest, name: str) -> HttpResponse:
        return HttpResponseRedirect(query_params.get_next_url(request, self.url("queue_change", name)))


def _read_overview(inspector: Inspector, chosen: str, *, is_fresh: bool) -> tuple[Overview, list[Series]]:
    """The overview, and the counters of its queues in the chosen time."""
    shared, span = inspector.shared_overview, SPANS[chosen]
    front = shared.read(fresh=is_fresh)
    if chosen == "1h" or not front.queues:
        return front, [row.series for row in front.queues]
    return front, shared.history(front, span.read_minutes, span.step)


def _check_name(name: str) -> None:
    """Raises Http404 if the name is not valid for a queue."""
    if not is_queue_name(name):
        raise Http404


def _waiting(details: QueueDetails) -> int:
    """The number of jobs that a purge deletes."""
    return details.queued + details.scheduled + details.retrying


def _why_it_stays(answer: str) -> str:
    """Why a queue was not forgotten; "": it was, or no list had it."""
    return {
        "jobs": _("Queue %(name)s stays: it has jobs or dead letters."),
        "paused": _("Queue %(name)s stays: it is paused. Resume it first."),
        "limits": _("Queue %(name)s stays: it has limits, or clients that are paused."),
        "workers": _("Queue %(name)s stays: a worker serves it."),
        "recent": _("Queue %(name)s stays: its last jobs finished a few minutes ago. Try again in two minutes."),
        "outcomes": _("Queue %(name)s stays: it keeps outcomes of finished jobs."),
    }.get(answer, "")


def _state_of(details: QueueDetails) -> dict[str, Any]:
    """The state of a queue and its warning, shown above its jobs."""
    is_alone = details.contact_seconds is None or details.contact_seconds > get_config().lease_seconds
    warning = _("No worker serves this queue, so its jobs do not run. Start one:") if is_alone else ""
    waits = format_duration(details.oldest_seconds)
    return {
        "waiting": _waiting(details),
        "is_empty": not (_waiting(details) or details.running or details.dead or details.paused),
        "warning": warning,
        "command": f"python manage.py rtq_worker --queues {details.name}" if is_alone else "",
        "state_text": _("oldest job waiting for %(duration)s") % {"duration": waits} if details.queued else "",
    }

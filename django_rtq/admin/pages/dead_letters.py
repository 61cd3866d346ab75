"""Pages of dead letters: groups by error; requeue and discard selected or all matching ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _

from django_rtq import models
from django_rtq.admin import permissions, query_params
from django_rtq.admin.action_log import ids_text, log_action
from django_rtq.admin.display.dead_groups import group_row
from django_rtq.admin.display.sanitize import clean_text
from django_rtq.admin.display.texts import (
    REMAINDER_HINTS,
    bulk_done_text,
    bulk_progress_text,
    bulk_question,
    no_longer_dead_text,
)
from django_rtq.admin.pages.bulk_actions import BulkRequest
from django_rtq.admin.pages.page_admin import PageAdmin, Route
from django_rtq.exceptions import JobNotFound
from django_rtq.formatting import format_moment, format_number
from django_rtq.inspector.inspector import get_inspector
from django_rtq.inspector.jobs.dead_letters import BulkAction, DeadGroups
from django_rtq.jobs.job import JobState, moment

MAX_GROUPS = 200
GROUPED_PER_QUEUE = 1000  # newest dead letters of each queue: two round trips that do not block Redis for long


class DeadLetterAdmin(PageAdmin):
    """The pages of dead letters."""

    def routes(self) -> list[Route]:
        return [
            Route("", "changelist", self.groups),
            Route("requeue/", "requeue", partial(self.selected, verb="requeue"), permissions.REQUEUE, "POST"),
            Route("discard/", "discard", partial(self.selected, verb="discard"), permissions.DISCARD, "POST"),
            Route("requeue-all/", "requeue_all", partial(self.sweep, verb="requeue"), permissions.REQUEUE, "BOTH"),
            Route("discard-all/", "discard_all", partial(self.sweep, verb="discard"), permissions.DISCARD, "BOTH"),
            Route(
                "requeue-all/progress/", "requeue_progress", partial(self.progress, verb="requeue"), permissions.REQUEUE
            ),
            Route(
                "discard-all/progress/", "discard_progress", partial(self.progress, verb="discard"), permissions.DISCARD
            ),
        ]

    # -- pages

    def groups(self, request: HttpRequest) -> HttpResponse:
        """Dead letters grouped by task and error, the latest group first."""
        found = get_inspector().dead_letters.all_groups(GROUPED_PER_QUEUE)
        groups = [(queue, group) for queue, of_queue in found.items() for group in of_queue.groups]
        groups.sort(key=lambda pair: pair[1].last_at, reverse=True)
        context = {
            "title": _("Dead letters"),
            "groups": [group_row(queue, group, self.url) for queue, group in groups[:MAX_GROUPS]],
            "found_text": _found_text(found.values()),
        }
        return self.render(request, "dead.html", context)

    # -- actions

    def selected(self, request: HttpRequest, *, verb: BulkAction) -> HttpResponse:
        """Requeue or discard the selected jobs. Discarding asks for confirmation first."""
        queue, ids = query_params.get_queue_name(request.POST), query_params.get_ids(request.POST)
        back = HttpResponseRedirect(query_params.get_next_url(request, self.url("deadletter_changelist")))
        if not queue or not ids:
            messages.warning(request, _("Nothing was done: no job was selected."))
            return back
        if verb == "discard" and "confirmed" not in request.POST:
            return self._confirm(request, queue, ids)
        inspector = get_inspector()
        done = inspector.requeue(queue, ids) if verb == "requeue" else inspector.discard(queue, ids)
        if done:
            text = bulk_done_text(verb, len(done))
            log_action(request, models.DeadLetter(name=queue), text, done)
            messages.success(request, text)
        if len(done) < len(ids):
            messages.warning(request, no_longer_dead_text(len(ids) - len(done)))
        return back

    def sweep(self, request: HttpRequest, *, verb: BulkAction) -> HttpResponse:
        """Requeue or discard all matching dead letters, after confirmation."""
        given = request.POST if request.method == "POST" else request.GET
        sweep = BulkRequest.read(given, verb)
        if not sweep.queue:
            messages.warning(request, _("Choose a queue or a group of dead letters first."))
            return HttpResponseRedirect(self.url("deadletter_changelist"))
        if request.method == "POST" and sweep.until_ms:
            return self._sweep(request, sweep)
        sweep, found = sweep.counted(get_inspector())
        hint = _(
            "If this takes longer than a few seconds, a job of this queue does the rest, even if you close this page."
        )
        context = {"question": bulk_question(verb, found.count), "hint": hint, "can_go_on": found.count > 0}
        return self._render_sweep(request, sweep, context)

    def progress(self, request: HttpRequest, *, verb: BulkAction) -> HttpResponse:
        """The progress of a bulk action."""
        inspector, sweep = get_inspector(), BulkRequest.read(request.GET, verb)
        if not sweep.queue or not sweep.until_ms:
            return HttpResponseRedirect(self.url("deadletter_changelist"))
        total = query_params.get_int(request.GET, "total", 1, minimum=1, maximum=10**9)
        left = sweep.counted(inspector)[1].count
        state = _state_of(query_params.get_text(request.GET, "job"), sweep.queue)
        if sweep.per_second and left and state == "over":  # the next job has not been enqueued yet
            state = "slow"
        done = max(0, total - left)
        progress = {
            "total": total,
            "done": done,
            "text": bulk_progress_text(verb, done, total),
            "hint": REMAINDER_HINTS[state](),
        }
        can_go_on = left > 0 and state != "running"
        return self._render_sweep(request, sweep, {"progress": progress, "can_go_on": can_go_on}, total=total)

    # -- helpers

    def _confirm(self, request: HttpRequest, queue: str, ids: Sequence[str]) -> HttpResponse:
        """Ask for confirmation before discarding."""
        back = query_params.get_next_url(request, self.url("deadletter_changelist"))
        context = {
            "title": _("Discard dead letters"),
            "question": bulk_question("discard", len(ids)),
            "consequence": _("Their arguments and failures are deleted. This cannot be undone."),
            "facts": [(_("Queue"), queue), (_("Jobs"), clean_text(ids_text(ids)))],
            "action": self.url("deadletter_discard"),
            "fields": [("queue", queue), ("next", back), ("confirmed", "yes"), *(("id", job_id) for job_id in ids)],
            "verb": _("Discard"),
            "back": back,
            "breadcrumbs": [{"url": self.url("deadletter_changelist"), "title": _("Dead letters")}],
        }
        return self.render(request, "confirm.html", context, is_form=True)

    def _sweep(self, request: HttpRequest, sweep: BulkRequest) -> HttpResponse:
        inspector = get_inspector()
        if sweep.per_second:
            return self._enqueue_rest(request, sweep, 0)  # a request does not wait
        result = sweep.run(inspector)
        done, text = len(result.done), bulk_done_text(sweep.verb, len(result.done))
        filter_text = _filter_text(sweep)
        if result.stopped_by is not None:
            if done:
                log_action(request, models.DeadLetter(name=sweep.queue), f"{text} ({filter_text}) {result.stopped_by}")
            raise result.stopped_by
        if not result.is_complete:
            return self._enqueue_rest(request, sweep, done)
        if done:
            log_action(request, models.DeadLetter(name=sweep.queue), f"{text} ({filter_text})")
            messages.success(request, text)
        else:
            message = _(
                "Nothing was done: no dead letter matches any more. Someone else may have requeued or discarded them."
            )
            messages.warning(request, message)
        return HttpResponseRedirect(self.url("deadletter_changelist"))

    def _enqueue_rest(self, request: HttpRequest, sweep: BulkRequest, done: int) -> HttpResponse:
        left = sweep.counted(get_inspector())[1].count
        total = query_params.get_int(request.POST, "total", done + left, minimum=1)
        job = sweep.enqueue_rest()
        log_message = _("%(done)s Job %(id)s does the rest. (%(filter)s)")
        facts = {"done": bulk_done_text(sweep.verb, done), "id": job.id, "filter": _filter_text(sweep)}
        log_action(request, models.DeadLetter(name=sweep.queue), log_message % facts)
        query = {**sweep.query, "total": total, "job": job.id}
        return HttpResponseRedirect(self.url(f"deadletter_{sweep.verb}_progress", query=query))

    def _render_sweep(
        self, request: HttpRequest, sweep: BulkRequest, more: dict[str, Any], total: int | None = None
    ) -> HttpResponse:
        titles = {"requeue": _("Requeue dead letters"), "discard": _("Discard dead letters")}
        buttons = {"requeue": _("Requeue"), "discard": _("Discard")}
        hidden = {**sweep.query, **({} if total is None else {"total": total, "per_second": 0})}
        context = {
            "title": titles[sweep.verb],
            "verb": sweep.verb,
            "facts": _facts(sweep),
            "hidden": [(name, value) for name, value in hidden.items() if value],
            "button": buttons[sweep.verb] if total is None else _("Continue here"),
            "action_url": self.url(f"deadletter_{sweep.verb}_all"),
            "back_url": self._list_of(sweep),
            "breadcrumbs": [{"url": self.url("deadletter_changelist"), "title": _("Dead letters")}],
            **more,
        }
        return self.render(request, "sweep.html", context, is_form="question" in more)

    def _list_of(self, sweep: BulkRequest) -> str:
        if not sweep.queue:
            return self.url("deadletter_changelist")
        return self.url("queue_change", sweep.queue, query={"state": "dead", **sweep.wanted.query})


def _filter_text(sweep: BulkRequest) -> str:
    return ", ".join(f"{name}: {value}" for name, value in _facts(sweep))


def _facts(sweep: BulkRequest) -> list[tuple[str, str]]:
    """Pairs of a label and a value that describe the selected dead letters."""
    until = moment(sweep.until_ms)
    facts = [(_("Queue"), sweep.queue), *sweep.wanted.facts]
    if sweep.per_second:
        facts.append((_("Limit per second"), str(sweep.per_second)))
    if until is not None:
        facts.append((_("Died before"), format_moment(until)))
    return facts


def _found_text(found: Collection[DeadGroups]) -> str:
    searched, total = (sum(getattr(groups, name) for groups in found) for name in ("searched", "total"))
    if searched >= total:
        return ""
    text = _("These groups include the newest %(searched)s of %(total)s dead letters.")
    return text % {"searched": format_number(searched), "total": format_number(total)}


def _state_of(job_id: str, queue: str) -> str:
    """The state of the job that processes the remaining dead letters: a key of REMAINDER_HINTS."""
    try:
        job = get_inspector().find(job_id, queue)
    except JobNotFound:
        return "over"
    if job.state is JobState.RUNNING:
        return "running"
    if job.state in (JobState.DEAD, JobState.CANCELLED, JobState.EXPIRED):
        return "failed"
    if job.state is JobState.SUCCEEDED:
        return "over"
    inspector = get_inspector()
    is_served = not inspector.queues.get(queue).paused and inspector.workers([queue])
    return "queued" if is_served else "paused"

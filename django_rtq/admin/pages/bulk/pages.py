"""Pages of bulk actions: on the selected jobs of a list, or on all that match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _

from django_rtq.admin import permissions, query_params
from django_rtq.admin.action_log import ids_text, log_action
from django_rtq.admin.display.bulk_texts import (
    REMAINDER_HINTS,
    bulk_button,
    bulk_consequence,
    bulk_done_text,
    bulk_progress_text,
    bulk_question,
    bulk_title,
    no_longer_text,
    nothing_matches_text,
)
from django_rtq.admin.display.sanitize import clean_text
from django_rtq.admin.display.texts import STATE_LABELS, rest_refused_text
from django_rtq.admin.pages.bulk.actions import BulkRequest, default_state, read_token, states_of, undo_token
from django_rtq.admin.pages.bulk.move_targets import move_targets, read_target, warn_if_nobody_serves, warn_of_target
from django_rtq.admin.pages.bulk.undoing import UndoPages, done_before_text
from django_rtq.admin.pages.page_admin import Route
from django_rtq.exceptions import BrokerError, JobNotFound, QueueFull
from django_rtq.formatting import format_moment
from django_rtq.inspector.bulk import Verb
from django_rtq.inspector.inspector import get_inspector
from django_rtq.jobs.job import JobState, moment
from django_rtq.models import AdminEntry

_ASKING = ("discard", "cancel", "move")  # also for selected jobs
_PERMISSIONS: dict[str, str] = {
    "requeue": permissions.REQUEUE,
    "run_now": permissions.REQUEUE,
    "move": permissions.REQUEUE,
    "discard": permissions.DISCARD,
    "cancel": permissions.CANCEL,
}


class BulkPages(UndoPages):
    """The pages of some bulk actions, for the admin that has their URLs."""

    bulk_prefix: ClassVar[str]  # what the names of the URLs begin with
    bulk_home: ClassVar[str]  # where to go if no list is known
    bulk_entry: ClassVar[Callable[..., AdminEntry]]  # what the admin log names

    def bulk_routes(self, verb: Verb, folder: str = "") -> list[Route]:
        """The URLs of one action. `folder`: what their paths begin with."""
        path, name = f"{folder}{verb.replace('_', '-')}", f"{self.bulk_prefix.partition('_')[2]}{verb}"
        permission = _PERMISSIONS[verb]
        undo = partial(self.undo, verb="discard", entry=self.bulk_entry, home=self.bulk_home)
        return [
            *([Route(f"{path}/undo/", f"{name}_undo", undo, permission, "POST")] if verb == "discard" else []),
            Route(f"{path}/", name, partial(self.selected, verb=verb), permission, "POST"),
            Route(f"{path}-all/", f"{name}_all", partial(self.sweep, verb=verb), permission, "BOTH"),
            Route(f"{path}-all/progress/", f"{name}_progress", partial(self.progress, verb=verb), permission),
        ]

    # -- actions

    def selected(self, request: HttpRequest, *, verb: Verb) -> HttpResponse:
        """Act on the selected jobs. Discarding, cancelling and moving ask first."""
        queue, ids = query_params.get_queue_name(request.POST), query_params.get_ids(request.POST)
        back = HttpResponseRedirect(query_params.get_next_url(request, self.url(self.bulk_home)))
        if not queue or not ids:
            messages.warning(request, _("Nothing was done: no job was selected."))
            return back
        state = query_params.get_choice(request.POST, "state", states_of(verb), default_state(verb))
        if verb in _ASKING and "confirmed" not in request.POST:
            return self._confirm_selected(request, queue, ids, verb, state)
        token, target = read_token(request.POST, verb), read_target(request.POST, queue) if verb == "move" else ""
        if verb == "move" and not target:
            warn_of_target(request, queue)
            return self._confirm_selected(request, queue, ids, verb, state)
        done = _act(verb, queue, state, ids, token or target)
        if done:
            text = bulk_done_text(verb, len(done), state, target)
            log_action(request, self.bulk_entry(name=queue), text, done, queues=_named(target))
            self.say_done(request, text, token, queue, back.url)
        else:
            self.offer_undo(request, done_before_text(), token, queue, back.url)
        if done and target:
            warn_if_nobody_serves(request, target)
        if len(done) < len(ids):
            messages.warning(request, no_longer_text(len(ids) - len(done), state, verb))
        return back

    def sweep(self, request: HttpRequest, *, verb: Verb) -> HttpResponse:
        """Act on all matching jobs, after confirmation."""
        given = request.POST if request.method == "POST" else request.GET
        sweep = BulkRequest.read(given, verb)
        if not sweep.queue:
            messages.warning(request, _("Choose a queue or a group of dead letters first."))
            return HttpResponseRedirect(self.url(self.bulk_home))
        if request.method == "POST" and sweep.until_ms and (sweep.target or verb != "move"):
            return self._sweep(request, sweep)
        if verb == "move" and "target" in request.POST:
            warn_of_target(request, sweep.queue)
        sweep, found = replace(sweep, until_ms=None).counted(get_inspector())
        hint = _(
            "If this takes longer than a few seconds, a job of this queue does the rest, even if you close this page."
        )
        snapshot = (
            _("Jobs that die from now on are not affected.")
            if sweep.state == "dead"
            else _("Jobs that are made from now on are not affected.")
        )
        context = {
            "question": bulk_question(verb, found.count, sweep.state, searched=found.searched, total=found.total),
            "consequence": bulk_consequence(verb, sweep.state, found.count, is_complete=found.is_complete)
            if verb in _ASKING
            else "",
            "hint": f"{snapshot} {hint}",
            "can_go_on": found.count > 0 or not found.is_complete,
            "targets": move_targets(sweep.queue) if verb == "move" else (),
        }
        sweep = replace(sweep, undo=undo_token(verb, found.count, is_complete=found.is_complete))
        return self._render_sweep(request, sweep, context)

    def progress(self, request: HttpRequest, *, verb: Verb) -> HttpResponse:
        """The progress of a bulk action."""
        inspector, sweep = get_inspector(), BulkRequest.read(request.GET, verb)
        if not sweep.queue or not sweep.until_ms:
            return HttpResponseRedirect(self.url(self.bulk_home))
        total = query_params.get_int(request.GET, "total", 1, minimum=1, maximum=10**9)
        found = sweep.counted(inspector)[1]
        left = found.count if found.is_complete else max(1, found.count)
        state = _state_of(query_params.get_text(request.GET, "job"), sweep.queue)
        if sweep.per_second and left and state == "over" and sweep.has_next_job(inspector):
            state = "slow"
        hint = REMAINDER_HINTS[state]()
        if left and state == "over" and verb == "move":
            hint = f"{hint} {no_longer_text(left, sweep.state, verb)}"
        done = max(0, total - left)
        progress = {
            "total": total,
            "done": done,
            "is_known": found.is_complete,
            "text": bulk_progress_text(verb, done, total, sweep.state, at_least_left=0 if found.is_complete else left),
            "hint": hint,
        }
        can_go_on = left > 0 and state != "running"
        context = {
            "progress": progress,
            "can_go_on": can_go_on,
            "undo_button": "" if left else self._undo(request, sweep),
        }
        return self._render_sweep(request, sweep, context, total=total)

    # -- helpers

    def _confirm_selected(
        self, request: HttpRequest, queue: str, ids: Sequence[str], verb: Verb, state: str
    ) -> HttpResponse:
        """Ask for confirmation before something that cannot be undone."""
        back = query_params.get_next_url(request, self.url(self.bulk_home))
        context = {
            "title": bulk_title(verb),
            "question": bulk_question(verb, len(ids), state),
            "consequence": bulk_consequence(verb, state, len(ids)),
            "facts": [(_("Queue"), queue), (_("Jobs"), clean_text(ids_text(ids)))],
            "action": self.url(f"{self.bulk_prefix}{verb}"),
            "fields": [
                ("queue", queue),
                ("state", state),
                ("next", back),
                ("confirmed", "yes"),
                ("undo", undo_token(verb, len(ids))),
                *(("id", job_id) for job_id in ids),
            ],
            "verb": bulk_button(verb, state),
            "back": back,
            "breadcrumbs": self._crumbs(queue, state),
            "is_harmless": verb == "move",
            "targets": move_targets(queue) if verb == "move" else (),
        }
        return self.render(request, "confirm.html", context, is_form=True)

    def _sweep(self, request: HttpRequest, sweep: BulkRequest) -> HttpResponse:
        inspector = get_inspector()
        if sweep.per_second:
            return self._enqueue_rest(request, sweep, 0)  # a request does not wait
        result = sweep.run(inspector)
        done, text = len(result.done), bulk_done_text(sweep.verb, len(result.done), sweep.state, sweep.target)
        filter_text = _filter_text(sweep)
        if result.stopped_by is not None:
            if done:
                self._log(request, sweep, f"{text} ({filter_text}) {result.stopped_by}", done)
            raise result.stopped_by
        if not result.is_complete:
            return self._enqueue_rest(request, sweep, done)
        is_of_dead = sweep.state == "dead" and sweep.verb != "move"
        back = self.url(self.bulk_home) if is_of_dead else self._list_of(sweep)
        if done:
            self._log(request, sweep, f"{text} ({filter_text})", done)
            self.say_done(request, text, sweep.undo, sweep.queue, back)
            if sweep.target:
                warn_if_nobody_serves(request, sweep.target)
        elif not self.offer_undo(request, done_before_text(), sweep.undo, sweep.queue, back) and not result.refused:
            messages.warning(request, nothing_matches_text(sweep.state))
        if result.refused:
            messages.warning(request, no_longer_text(result.refused, sweep.state, sweep.verb))
        return HttpResponseRedirect(back)

    def _undo(self, request: HttpRequest, sweep: BulkRequest) -> str:
        """The button that undoes it, for half a minute after its end; or that it cannot be undone."""
        if not sweep.undo:
            return ""
        aside = get_inspector().undos.read(sweep.queue, sweep.undo)
        return self.with_undo(request, "", aside, sweep.undo, sweep.queue, self.url(self.bulk_home))

    def _enqueue_rest(self, request: HttpRequest, sweep: BulkRequest, done: int) -> HttpResponse:
        left = sweep.counted(get_inspector())[1].count
        total = query_params.get_int(request.POST, "total", done + left, minimum=1)
        try:
            job = sweep.enqueue_rest()
        except (BrokerError, QueueFull) as error:
            return self._rest_refused(request, sweep, done, error)
        log_message = _("%(done)s Job %(id)s does the rest. (%(filter)s)")
        facts = {
            "done": bulk_done_text(sweep.verb, done, sweep.state, sweep.target),
            "id": job.id,
            "filter": _filter_text(sweep),
        }
        self._log(request, sweep, log_message % facts, done)
        query = {**sweep.query, "total": total, "job": job.id}
        return HttpResponseRedirect(self.url(f"{self.bulk_prefix}{sweep.verb}_progress", query=query))

    def _rest_refused(
        self, request: HttpRequest, sweep: BulkRequest, done: int, error: BrokerError | QueueFull
    ) -> HttpResponse:
        """Log what was done, and ask again. Raises BrokerError."""
        text = bulk_done_text(sweep.verb, done, sweep.state, sweep.target)
        if done:
            self._log(request, sweep, f"{text} ({_filter_text(sweep)}) {error}", done)
        if isinstance(error, BrokerError):
            raise error
        messages.warning(request, rest_refused_text(text, error))
        return HttpResponseRedirect(self.url(f"{self.bulk_prefix}{sweep.verb}_all", query=sweep.query))

    def _log(self, request: HttpRequest, sweep: BulkRequest, message: str, count: int) -> None:
        wanted = sweep.wanted
        facts = {
            name: text for name, text in (("task", wanted.task.removeprefix("=")), ("client", wanted.client)) if text
        }
        log_action(
            request, self.bulk_entry(name=sweep.queue), message, count=count, queues=_named(sweep.target), **facts
        )

    def _render_sweep(
        self, request: HttpRequest, sweep: BulkRequest, more: dict[str, Any], total: int | None = None
    ) -> HttpResponse:
        hidden = {**sweep.query, **({} if total is None else {"total": total, "per_second": 0})}
        context = {
            "title": bulk_title(sweep.verb),
            "verb": sweep.verb,
            "facts": _facts(sweep),
            "hidden": [(name, value) for name, value in hidden.items() if value],
            "button": bulk_button(sweep.verb, sweep.state) if total is None else _("Continue here"),
            "action_url": self.url(f"{self.bulk_prefix}{sweep.verb}_all"),
            "back_url": self._list_of(sweep),
            "breadcrumbs": self._crumbs(sweep.queue, sweep.state),
            **more,
        }
        return self.render(request, "sweep.html", context, is_form="question" in more)

    def _list_of(self, sweep: BulkRequest) -> str:
        if not sweep.queue:
            return self.url(self.bulk_home)
        return self.url("queue_change", sweep.queue, query={"state": sweep.state, **sweep.wanted.query})

    def _crumbs(self, queue: str, state: str) -> list[dict[str, str]]:
        if state == "dead":
            return [{"url": self.url("deadletter_changelist"), "title": _("Dead letters")}]
        return [{"url": self.url("queue_change", queue, query={"state": state}), "title": queue}]


def _named(target: str) -> list[str]:
    return [target] if target else []


def _act(verb: Verb, queue: str, state: str, ids: Sequence[str], with_what: str) -> list[str]:
    """Act on these jobs, with the token of an undo or the queue to move to. Returns the ids of what it acted on."""
    inspector = get_inspector()
    if verb == "move":
        return inspector.job_mover.move_some(queue, ids, with_what)
    if verb == "requeue" or verb == "discard":  # noqa: PLR1714 - for mypy
        return inspector.requeue(queue, ids) if verb == "requeue" else inspector.discard(queue, ids, undo=with_what)
    return inspector.live_jobs.act(queue, state, verb, ids)


def _filter_text(sweep: BulkRequest) -> str:
    return ", ".join(f"{name}: {value}" for name, value in _facts(sweep))


def _facts(sweep: BulkRequest) -> list[tuple[str, str]]:
    """Pairs of a label and a value that describe the selected jobs."""
    until = moment(sweep.until_ms)
    facts = [(_("Queue"), sweep.queue), *sweep.wanted.facts]
    if sweep.state != "dead":
        facts.insert(1, (_("State"), str(STATE_LABELS[JobState(sweep.state)])))
    if sweep.target:
        facts.append((_("To queue"), sweep.target))
    if sweep.per_second:
        facts.append((_("Limit per second"), str(sweep.per_second)))
    if until is not None:
        facts.append((_("Died before") if sweep.state == "dead" else _("Made before"), format_moment(until)))
    return facts


def _state_of(job_id: str, queue: str) -> str:
    """The state of the job that does the rest: a key of REMAINDER_HINTS."""
    if not job_id:
        return "over"
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

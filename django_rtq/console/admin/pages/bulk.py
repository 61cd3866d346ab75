"""Actions on many jobs: on those that are selected, or on all that a query finds.

1. the page says how many jobs that will be, and remembers the moment: jobs that die, or are made, later are left out
2. the request works for two seconds, which is enough for thousands of jobs
3. the rest becomes a job of each queue with the highest priority, whose page the message links and shows its progress
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_rtq import models
from django_rtq.console.acting.jobs import (
    ROUTED,
    act,
    done_text,
    nothing_text,
    question,
    refused_text,
    waiting_texts,
    words_of,
)
from django_rtq.console.admin import query_params
from django_rtq.console.admin.action_log import ids_text, log_action
from django_rtq.console.admin.filters import filter_query
from django_rtq.console.admin.pages.page_admin import Route, is_typed, place_of
from django_rtq.console.admin.pages.sheet_admin import SheetAdmin
from django_rtq.console.formatting import STATE_LABELS, format_moment, format_number, number_text
from django_rtq.console.reading.actions import ACTIONS, LATEST, Verb, targets_in
from django_rtq.console.reading.members import forget_workflows, stop_workflows, workflows_of
from django_rtq.console.reading.readers import Readers
from django_rtq.console.reading.selection import QueryError, Selection, query_error
from django_rtq.console.reading.sweep import STEP, Count, Sweep
from django_rtq.console.redaction import redacted
from django_rtq.console.sanitize import clean_text
from django_rtq.console.search import check_states, read_query
from django_rtq.core.jobs.job import JobState, moment
from django_rtq.exceptions import BrokerError
from django_rtq.models import AdminEntry

REQUEST_SECONDS = 2.0
LONGEST_QUERY = 4000  # characters
_ALSO_LATER = ("purge", "erase")  # what is done with jobs that were made after the question, too


@dataclass(frozen=True, slots=True)
class _Form:
    """What a URL or a form says: a query, or the ids of jobs in a list."""

    sweep: Sweep
    wanted: Selection  # as it was asked for: without the queues in which jobs were counted, and without a moment

    @classmethod
    def read(cls, readers: Readers, data: QueryDict, verb: Verb) -> _Form:
        """Raises QueryError."""
        if "q" in data:
            wanted = read_query(readers, query_params.get_text(data, "q", LONGEST_QUERY), LONGEST_QUERY)
            check_states(verb, wanted)
            if wanted.filter.text:  # it would find what is hidden from people
                why = _("actions do not search for a text; select the jobs instead")
                raise query_error(wanted.filter.text, why)
        else:
            queue, allowed = query_params.get_queue_name(data), ACTIONS[verb].states
            states = [query_params.get_choice(data, "state", allowed, allowed[0])]
            wanted = Selection(queues=[queue], states=states, ids=query_params.get_ids(data) if queue else [])
        counted, queues = data.getlist("in"), wanted.queues
        if counted and not queues:
            queues = [name for name in readers.queues.names() if name in counted]
        if wanted == Selection() or not (wanted.ids or "q" in data) or (counted and not queues):
            raise QueryError(_("Nothing was done: no job was selected."))
        until_ms = query_params.get_int(data, "until_ms", 0, maximum=LATEST) or None
        target = read_target(readers, data) if verb == "requeue" else ""
        return cls(Sweep(verb=verb, selection=replace(wanted, queues=queues, until_ms=until_ms), target=target), wanted)

    @property
    def queue(self) -> str:
        """The queue that is meant; "": there is none, or several."""
        return self.wanted.queues[0] if len(self.wanted.queues) == 1 else ""

    @property
    def is_of_dead(self) -> bool:
        """Whether it is about dead letters."""
        return list(self.sweep.states) == ["dead"]

    def workflows(self, readers: Readers) -> list[tuple[str, str]]:
        """Those of a client that is erased: their places and ids."""
        client = self.wanted.filter.client
        return workflows_of(client, readers.places) if client and self.sweep.verb == "erase" else []

    @property
    def typed(self) -> str:
        """What has to be typed before a whole queue is purged."""
        return self.queue if self.wanted == Selection(queues=self.wanted.queues) and self.sweep.verb == "purge" else ""

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Pairs of a label and a value that describe the jobs."""
        states, until = self.wanted.states, moment(self.sweep.selection.until_ms)
        facts = [(_("Queue"), queue) for queue in self.wanted.queues]
        if states and not self.is_of_dead:
            facts.append((_("State"), ", ".join(str(STATE_LABELS[JobState(state)]) for state in states)))
        if query := str(Selection(filter=self.wanted.filter)):
            facts.append((_("Filter"), clean_text(query)))
        if self.wanted.ids:
            facts.append((_("Jobs"), clean_text(ids_text(self.wanted.ids))))
        if self.sweep.target:
            facts.append((_("To queue"), self.sweep.target))
        if until is not None and self.sweep.verb not in _ALSO_LATER:
            facts.append((_("Died before") if self.is_of_dead else _("Made before"), format_moment(until)))
        return facts

    @property
    def hint(self) -> str:
        """Which jobs are left alone, and what happens if it takes long."""
        if self.wanted.ids or self.sweep.verb in _ALSO_LATER:
            return ""
        snapshot = (
            _("Jobs that die from now on are not affected.")
            if self.is_of_dead
            else _("Jobs that are made from now on are not affected.")
        )
        rest = _(
            "If this takes longer than a few seconds, a job of this queue does the rest, even if you close this page."
        )
        return f"{snapshot} {rest if self.queue else ''}"

    def fields(self, counted: Count | None) -> list[tuple[str, object]]:
        """Of the form that confirms it."""
        if counted is None:
            named = [("queue", self.queue), ("state", self.wanted.states[0]), ("confirmed", "yes")]
            return [*named, *(("id", job_id) for job_id in self.wanted.ids)]
        found = () if self.wanted.queues else dict.fromkeys([*counted.by_queue, *counted.cut])
        return [("q", str(self.wanted)), ("until_ms", counted.until_ms), *(("in", queue) for queue in found)]


class BulkPages(SheetAdmin):
    """The page of each action on many jobs. Lists, and pages of queues, tasks, clients and workflows lead to it."""

    def bulk_routes(self) -> list[Route]:
        """One address for each verb."""
        return [
            Route(f"bulk/{verb.name.replace('_', '-')}/", f"bulk_{verb.name}", partial(self.bulk, verb=name),
                  verb.permission, "BOTH")
            for name, verb in ROUTED.items()
        ]  # fmt: skip

    def bulk(self, request: HttpRequest, *, verb: Verb) -> HttpResponse:
        """Do it, or ask before. Selected jobs are requeued, or run now, without a question."""
        data = request.POST if request.method == "POST" else request.GET
        try:
            form = _Form.read(place_of(request).readers, data, verb)
        except QueryError as error:
            if data.get("q"):
                raise
            messages.warning(request, str(error))
            return HttpResponseRedirect(query_params.get_next_url(request, self.url("queue_changelist")))
        is_confirmed = "confirmed" in data or not ACTIONS[verb].asks if form.wanted.ids else form.sweep.until_ms > 0
        if request.method == "POST" and is_confirmed and not refuses_target(request) and is_typed(request, form.typed):
            return self._act(request, form)
        return self._ask(request, form)

    # -- helpers

    def _ask(self, request: HttpRequest, form: _Form) -> HttpResponse:
        sweep, back, found, workflows = form.sweep, self._home(form), None, 0
        if form.wanted.ids:
            back, counted = query_params.get_next_url(request, back), Count(by_queue={"": len(form.wanted.ids)})
        else:
            sweep = replace(sweep, selection=form.wanted)
            found = counted = place_of(request).readers.sweeps.count(sweep, shown=redacted)
            workflows = len(form.workflows(place_of(request).readers))
            if not counted.count and counted.is_complete and not workflows:
                messages.warning(request, nothing_text(sweep))
                return HttpResponseRedirect(back)
            form = replace(form, sweep=replace(sweep, selection=replace(form.wanted, until_ms=counted.until_ms)))
        numbers = {} if form.wanted.queues else counted.by_queue
        words = words_of(sweep)
        context = {
            "title": words.title,
            "question": question(sweep, counted),
            "consequence": f"{words.consequence} {form.hint}".strip(),
            "facts": [
                *form.facts,
                *((name, number_text(number, is_cut=name in counted.cut)) for name, number in numbers.items()),
                *([(_("Workflows"), format_number(workflows))] if workflows else []),
            ],
            "fields": [*form.fields(found), *([("next", back)] if form.wanted.ids else [])],
            "typed": form.typed,
            "verb": words.label,
            "is_harmless": words.is_harmless,
            "targets": requeue_targets(place_of(request).readers, form.queue) if sweep.verb == "requeue" else (),
            "breadcrumbs": [{"url": self._home(form), "title": self._entry(form).name or _("Jobs")}],
            "back": back,
        }
        return self.render(request, "confirm.html", context, is_form=True)

    def _act(self, request: HttpRequest, form: _Form) -> HttpResponse:
        """Do it, tell the user and log it. Raises BrokerError, after what was done until then has been logged."""
        sweep, ids, workflows = form.sweep, form.wanted.ids, form.workflows(place_of(request).readers)
        stop_workflows(workflows)
        acted = act(place_of(request), sweep, seconds=REQUEST_SECONDS, limit=STEP)
        result, jobs, error = acted.result, acted.rest, acted.error
        text = said = done_text(sweep, result)
        if jobs:
            rest, names = _("Jobs of these queues do the rest:"), ", ".join(job.queue_name for job in jobs)
            links = [(self.url("job_change", job.id, query={"queue": job.queue_name}), job.queue_name) for job in jobs]
            said = format_html("{} {} {}.", text, rest, format_html_join(", ", '<a href="{}">{}</a>', links))
            text = f"{text} {rest} {names}."
        if result.count or jobs:
            which = "" if ids else f" ({', '.join(f'{name}: {value}' for name, value in form.facts)})"
            log_action(request, self._entry(form), f"{text} {error or ''}".strip() + which, result.done if ids else ())
        if isinstance(error, BrokerError):
            raise error
        if error is not None:
            why = _("%(done)s The rest could not be enqueued. %(error)s Repeat the action to continue.")
            messages.warning(request, why % {"done": text, "error": error})
            return self._redirect_to(form)
        if sweep.verb == "purge" and not result.is_complete:
            messages.warning(request, _("%(done)s More jobs are waiting. Purge again to continue.") % {"done": text})
            return self._redirect_to(form)
        self._forget(request, form, workflows)
        self._tell(request, form, said, has_done=bool(result.count or jobs), refused=result.refused)
        for queue in dict.fromkeys(filter(None, [sweep.target, *(job.queue_name for job in jobs)])):
            warn_if_nobody_serves(request, queue)
        is_over = form.is_of_dead and result.is_complete and not ids
        back = self.url("deadletter_changelist") if is_over and form.wanted.states else self._home(form)
        return HttpResponseRedirect(query_params.get_next_url(request, back))

    def _forget(self, request: HttpRequest, form: _Form, workflows: Sequence[tuple[str, str]]) -> None:
        """Delete those of a client that is erased, after its jobs."""
        if deleted := forget_workflows(workflows):
            text = ngettext("%(count)d workflow was deleted.", "%(count)d workflows were deleted.", deleted)
            log_action(request, self._entry(form), text % {"count": deleted})
            messages.success(request, text % {"count": deleted})

    def _tell(self, request: HttpRequest, form: _Form, said: str, *, has_done: bool, refused: int) -> None:
        if has_done:
            messages.success(request, said)
        if refused:
            messages.warning(request, refused_text(form.sweep.states, refused))
        elif not has_done:
            messages.warning(request, nothing_text(form.sweep))

    def _redirect_to(self, form: _Form) -> HttpResponse:
        """To the question, once more."""
        query = {"q": str(form.wanted), "target": form.sweep.target}
        return HttpResponseRedirect(self.url(f"job_bulk_{form.sweep.verb}", query=query))

    def _entry(self, form: _Form) -> AdminEntry:
        """What the log names: what the jobs are of, or else the queue of their list."""
        wanted, states = form.wanted.filter, form.wanted.states
        if not states and wanted.workflow:
            return models.Workflow(name=wanted.workflow[:255])
        if not states and wanted.client is not None:
            return models.Client(name=wanted.client)
        if not states and wanted.task:
            return models.RegisteredTask(name=wanted.task.removeprefix("=")[:255])
        return (models.DeadLetter if form.is_of_dead else models.Queue)(name=form.queue)

    def _home(self, form: _Form) -> str:
        """The page of that: a list with the same filter."""
        entry = self._entry(form)
        if isinstance(entry, models.Client):
            return self.url("client_change", query={"client": entry.name})
        if isinstance(entry, models.Workflow | models.RegisteredTask):
            return self.url(f"{entry._meta.model_name}_change", entry.name)
        if not form.queue:
            return self.url("queue_changelist")
        state = form.wanted.states[0] if form.wanted.states else ""
        return self.url("queue_change", form.queue, query={"state": state, **filter_query(form.wanted.filter)})


# -- another queue in which dead letters are requeued


def requeue_targets(readers: Readers, queue: str = "") -> list[tuple[str, str]]:
    """The other queues, and how a form shows each."""
    overview = readers.shared_overview.read()
    paused = {row.details.name: row.details.paused for row in overview.queues}
    served = {name for worker in overview.workers for name in worker.queues}
    labels = []
    for name in sorted(targets_in(readers.places) - {queue}):
        unserved = "" if name in served else _("no worker serves it")
        notes = ", ".join(filter(None, [_("paused") if paused.get(name) else "", unserved]))
        labels.append((name, _("%(queue)s (%(notes)s)") % {"queue": name, "notes": notes} if notes else name))
    return labels


def read_target(readers: Readers, data: QueryDict) -> str:
    """The queue that was chosen; "" if there is none, or it is not one of the choice."""
    target = query_params.get_text(data, "target")
    return target if target and target in targets_in(readers.places) else ""


def refuses_target(request: HttpRequest) -> bool:
    """Whether a form names a queue that is not one of the choice: the user is told."""
    if not query_params.get_text(request.POST, "target") or read_target(place_of(request).readers, request.POST):
        return False
    messages.warning(request, _("Nothing was done: choose a queue from the list."))
    return True


def warn_if_nobody_serves(request: HttpRequest, target: str) -> None:
    """Say that the jobs have to wait."""
    for text in waiting_texts(place_of(request).readers, target):
        messages.warning(request, text)

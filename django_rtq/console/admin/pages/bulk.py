"""Actions on many jobs: on those that are selected, or on all that a query finds.

1. the page says how many jobs that will be, and remembers the moment: jobs that die, or are made, later are left out
2. the request works for two seconds, which is enough for thousands of jobs
3. the rest becomes a job of each queue with the highest priority, whose page the message links and shows its progress
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain
from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _

from django_rtq import models
from django_rtq.console.acting.actions import (
    ROUTED,
    act,
    done_text,
    nothing_text,
    question,
    refused_text,
    waiting_texts,
    words_of,
)
from django_rtq.console.acting.verb import MAX_QUEUES_NAMED
from django_rtq.console.admin import query_params
from django_rtq.console.admin.action_log import ids_text, log_action
from django_rtq.console.admin.pages.page_admin import PageAdmin, Route, is_typed, place_of
from django_rtq.console.formatting import STATE_LABELS, format_moment, format_number, names_text, number_text
from django_rtq.console.reading.actions import LATEST, Verb, targets_in
from django_rtq.console.reading.members import read_query
from django_rtq.console.reading.readers import Readers
from django_rtq.console.reading.selection import Selection, query_error
from django_rtq.console.reading.sweep import STEP, Count, Sweep
from django_rtq.console.sanitize import clean_text
from django_rtq.core.jobs.job import JobState, moment
from django_rtq.exceptions import BrokerError, JobNotFound
from django_rtq.models import AdminEntry

REQUEST_SECONDS = 2.0
LONGEST_QUERY = 100_000  # characters: a form names each queue in which jobs were found
_ALSO_LATER = ("purge", "erase")  # what is done with jobs that were made after the question, too


class BulkPages(PageAdmin):
    """The page of each action on many jobs. Lists, and pages of queues, tasks, clients and workflows lead to it."""

    def bulk_routes(self) -> list[Route]:
        """One address for each verb."""
        return [
            Route(f"bulk/{verb.name.replace('_', '-')}/", f"bulk_{verb.name}", partial(self.bulk, verb=name),
                  verb.permission, "BOTH")
            for name, verb in ROUTED.items()
        ]  # fmt: skip

    def bulk(self, request: HttpRequest, *, verb: str) -> HttpResponse:
        """Do it, or ask before. Selected jobs are requeued, or run now, without a question."""
        sweep = _read(request, verb)
        selection = sweep.selection
        if not selection.ids and (sweep.terminates or replace(selection, until_ms=None) == Selection()):
            messages.warning(request, _("Nothing was done: no job was selected."))
            return HttpResponseRedirect(query_params.get_next_url(request, self.url("queue_changelist")))
        is_sure = selection.until_ms is not None or (selection.ids and ROUTED[verb].is_harmless)
        is_confirmed = request.method == "POST" and is_sure and is_target(request, sweep.target)
        if is_confirmed and is_typed(request, _to_type(sweep)):
            return self._act(request, sweep)
        return self._ask(request, sweep)

    # -- helpers

    def _ask(self, request: HttpRequest, sweep: Sweep) -> HttpResponse:
        readers, back, before = place_of(request).readers, self._home(sweep), ""
        selection = replace(sweep.selection, until_ms=None)
        sweep, words = replace(sweep, selection=selection), words_of(sweep)
        counts: Mapping[str, int] = {}
        job = readers.find(selection.ids[0], _queue_of(sweep) or None) if len(selection.ids) == 1 else None
        if selection.ids:
            before = query_params.get_next_url(request, "")
            counted = Count(by_queue={"": len(selection.ids)}, until_ms=LATEST)
        else:
            counted = readers.sweeps.count(sweep)
            if not counted.count and counted.is_complete and not counted.workflows:
                messages.warning(request, nothing_text(sweep))
                return HttpResponseRedirect(back)
        if not (selection.ids or selection.queues):  # it is about the queues in which jobs were found
            counts = counted.by_queue
            selection = replace(selection, queues=list(dict.fromkeys([*counts, *counted.cut])))
        context = {
            "title": words.label,
            "question": question(sweep, counted),
            "consequence": f"{words.consequence} {_hint(sweep)}".strip(),
            "facts": [
                *([(_("Task"), clean_text(job.task, 300))] if job else []),
                *_facts(sweep, moment(counted.until_ms)),
                *((name, number_text(number, is_cut=name in counted.cut)) for name, number in counts.items()),
                *([(_("Workflows"), format_number(counted.workflows))] if counted.workflows else []),
            ],
            "fields": [
                ("q", str(selection)),
                ("until_ms", counted.until_ms),
                *(("id", job_id) for job_id in selection.ids),
                *([("next", before)] if before else []),
            ],
            "typed": _to_type(sweep),
            "verb": words.label,
            "is_harmless": words.is_harmless,
            "targets": requeue_targets(readers, _queue_of(sweep)) if sweep.verb == "requeue" else (),
            "target": sweep.target,
            "breadcrumbs": [{"url": self._home(sweep), "title": clean_text(self._entry(sweep).name, 40) or _("Jobs")}],
            "back": before or back,
        }
        return self.render(request, "confirm.html", context, is_form=True)

    def _act(self, request: HttpRequest, sweep: Sweep) -> HttpResponse:
        """Do it, tell the user and log it. Raises BrokerError, after what was done until then has been logged."""
        ids = sweep.selection.ids
        result = act(place_of(request), sweep, seconds=REQUEST_SECONDS, limit=STEP)
        jobs, error, has_done = result.rest, result.stopped_by, bool(result.count or result.workflows or result.rest)
        text = said = done_text(sweep, result)
        if jobs:
            rest, names = _("Jobs of these queues do the rest:"), ", ".join(job.queue_name for job in jobs)
            links = [(self.url("job_change", job.id, query={"queue": job.queue_name}), job.queue_name) for job in jobs]
            said = format_html("{} {} {}.", text, rest, format_html_join(", ", '<a href="{}">{}</a>', links))
            text = f"{text} {rest} {names}."
        if has_done:
            facts = ", ".join(f"{name}: {value}" for name, value in _facts(sweep, moment(sweep.selection.until_ms)))
            which = "" if ids else f" ({facts})"
            log_action(request, self._entry(sweep), f"{text} {error or ''}".strip() + which, result.done if ids else ())
        if isinstance(error, BrokerError):
            raise error
        if error is not None:
            why = _("%(done)s The rest could not be enqueued. %(error)s Repeat the action to continue.")
            messages.warning(request, why % {"done": text, "error": error})
            return self._ask(request, sweep)
        if sweep.verb == "purge" and not result.is_complete:
            messages.warning(request, _("%(done)s More jobs are waiting. Purge again to continue.") % {"done": text})
            return self._ask(request, sweep)
        if has_done:
            messages.success(request, said)
        if result.refused or not has_done:
            messages.warning(request, _why_not(place_of(request).readers, sweep, result.refused))
        served = dict.fromkeys(filter(None, [sweep.target, *(job.queue_name for job in jobs)]))
        for why in chain.from_iterable(waiting_texts(place_of(request).readers, queue) for queue in served):
            messages.warning(request, why)
        back = self._home(sweep, is_over=True)
        if _is_of_dead(sweep) and sweep.selection.states and result.is_complete and not ids:
            back = self.url("deadletter_changelist")
        return HttpResponseRedirect(query_params.get_next_url(request, back))

    def _entry(self, sweep: Sweep) -> AdminEntry:
        """What the log names: the job, what the jobs are of, or else the queue of their list."""
        wanted, states = sweep.selection, sweep.selection.states
        if len(wanted.ids) == 1:
            return models.Job(name=wanted.ids[0][:255])
        if not states and wanted.workflow:
            return models.Workflow(name=wanted.workflow[:255])
        if not states and wanted.client is not None:
            return models.Client(name=wanted.client)
        if not states and wanted.task:
            return models.RegisteredTask(name=wanted.task.removeprefix("=")[:255])
        return (models.DeadLetter if _is_of_dead(sweep) else models.Queue)(name=_queue_of(sweep))

    def _home(self, sweep: Sweep, *, is_over: bool = False) -> str:
        """The page of that: a list with the same filter. `is_over`: there is no page of a job that was discarded."""
        entry, selection = self._entry(sweep), sweep.selection
        if isinstance(entry, models.Job) and not (is_over and sweep.verb == "discard"):
            return self.url("job_change", entry.name, query={"queue": sweep.target or _queue_of(sweep)})
        if isinstance(entry, models.Client):
            return self.url("client_change", query={"client": entry.name})
        if isinstance(entry, models.Workflow | models.RegisteredTask):
            return self.url(f"{entry._meta.model_name}_change", entry.name)
        if not (queue := _queue_of(sweep)):
            return self.url("queue_changelist")
        state = selection.states[0] if selection.states else ""
        return self.url("queue_change", queue, query={"state": state, "q": str(selection.anywhere)})


def _read(request: HttpRequest, verb: str) -> Sweep:
    """What a URL or a form says: a query, and the ids of those jobs that were selected. Raises QueryError."""
    data = query_params.given(request)
    ids = query_params.get_ids(data)
    text = query_params.get_text(data, "q", LONGEST_QUERY) or (query_params.get_text(data, "list") if ids else "")
    wanted = read_query(place_of(request).readers, text, LONGEST_QUERY)
    if wanted.text:  # it would find what is hidden from people
        why = _("actions do not search for a text; select the jobs instead")
        raise query_error(wanted.text, why)
    if ids:
        wanted = Selection(queues=wanted.queues, states=wanted.states, ids=ids)
    until_ms = query_params.get_int(data, "until_ms", 0, maximum=LATEST) or None
    target = query_params.get_text(data, "target") if verb == "requeue" else ""
    selection = replace(wanted, until_ms=until_ms)
    if verb == "terminate":
        return Sweep(verb="cancel", selection=selection, terminates=True)
    return Sweep(verb=cast(Verb, verb), selection=selection, target=target)


def why_unchanged(readers: Readers, job_id: str, queue: str) -> str:
    """Why nothing was done with a job."""
    words = {"id": clean_text(job_id, 60)}
    try:
        state = STATE_LABELS[readers.find(job_id, queue or None).state]
    except JobNotFound:
        return _("Nothing was done: job %(id)s no longer exists. Someone else may have discarded it.") % words
    text = _("Nothing was done: job %(id)s is now %(state)s. Someone else may have acted first.")
    return text % {**words, "state": str(state)}


def _why_not(readers: Readers, sweep: Sweep, refused: int) -> str:
    """Why nothing was done with so many jobs; 0: with none, as there is none."""
    if len(sweep.selection.ids) == 1:
        return why_unchanged(readers, sweep.selection.ids[0], _queue_of(sweep))
    return refused_text(refused) if refused else nothing_text(sweep)


def _queue_of(sweep: Sweep) -> str:
    """The queue that is meant; "": there is none, or several."""
    return sweep.selection.queues[0] if len(sweep.selection.queues) == 1 else ""


def _is_of_dead(sweep: Sweep) -> bool:
    return list(sweep.states) == ["dead"]


def _to_type(sweep: Sweep) -> str:
    """What has to be typed: the queue that is purged."""
    return _queue_of(sweep) if sweep.verb == "purge" and sweep.selection.client is None else ""


def _facts(sweep: Sweep, until: datetime | None) -> list[tuple[str, str]]:
    """Pairs of a label and a value that describe the jobs."""
    selection, states, facts = sweep.selection, sweep.selection.states, []
    if selection.queues:
        facts.append((_("Queue"), names_text(selection.queues, MAX_QUEUES_NAMED)))
    if states and not _is_of_dead(sweep):
        facts.append((_("State"), ", ".join(str(STATE_LABELS[JobState(state)]) for state in states)))
    if query := str(selection.anywhere):
        facts.append((_("Filter"), clean_text(query)))
    if selection.ids:
        facts.append((_("Jobs"), clean_text(ids_text(selection.ids))))
    if sweep.target:
        facts.append((_("To queue"), sweep.target))
    if until and not selection.ids and sweep.verb not in _ALSO_LATER:
        facts.append((_("Died before") if _is_of_dead(sweep) else _("Made before"), format_moment(until)))
    return facts


def _hint(sweep: Sweep) -> str:
    """Which jobs are left alone, and what happens if it takes long."""
    if sweep.selection.ids or sweep.verb in _ALSO_LATER:
        return ""
    snapshot = _("Jobs that die or are made from now on are not affected.")
    rest = _("If this takes longer than a few seconds, a job of this queue does the rest, even if you close this page.")
    return f"{snapshot} {rest if _queue_of(sweep) else ''}"


# -- another queue in which dead letters are requeued


def requeue_targets(readers: Readers, queue: str = "") -> list[tuple[str, str]]:
    """The other queues, and how a form shows each."""
    overview = readers.overview.shared()
    paused = {row.details.name: row.details.paused for row in overview.queues}
    served = {name for worker in overview.workers for name in worker.queues}
    labels = []
    for name in sorted(targets_in(readers.places) - {queue}):
        unserved = "" if name in served else _("no worker serves it")
        notes = ", ".join(filter(None, [_("paused") if paused.get(name) else "", unserved]))
        labels.append((name, _("%(queue)s (%(notes)s)") % {"queue": name, "notes": notes} if notes else name))
    return labels


def is_target(request: HttpRequest, target: str) -> bool:
    """Whether jobs can be requeued there; "": in their own queue. The user is told if not."""
    is_right = not target or target in targets_in(place_of(request).readers.places)
    if not is_right:
        messages.warning(request, _("Nothing was done: choose a queue from the list."))
    return is_right

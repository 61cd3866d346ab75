"""Actions on many jobs: on selected ones, on all that match a filter, on all of a client, a task or a queue.

1. a page says how many jobs that will be, and remembers the moment: jobs that die, or are made, later are left out
2. the request works for two seconds, which is enough for thousands of jobs
3. the rest becomes a job of each queue with the highest priority, whose page the message links and shows its progress
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, ClassVar

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _

from django_rtq.console import permissions
from django_rtq.console.acting.verb import Said
from django_rtq.console.admin import query_params
from django_rtq.console.admin.action_log import ids_text, log_action
from django_rtq.console.admin.display.bulk_texts import (
    bulk_button,
    bulk_consequence,
    bulk_done_text,
    bulk_hint,
    bulk_question,
    bulk_title,
    no_longer_text,
    nothing_matches_text,
)
from django_rtq.console.admin.display.texts import number_text, rest_refused_text
from django_rtq.console.admin.filters import filter_facts, filter_query, read_filter
from django_rtq.console.admin.pages.bulk.requeue_targets import (
    read_target,
    refuses_target,
    requeue_targets,
    warn_if_nobody_serves,
)
from django_rtq.console.admin.pages.page_admin import PageAdmin, Route
from django_rtq.console.formatting import format_moment, format_number
from django_rtq.console.inspector.actions import ACTIONS, LATEST, Verb
from django_rtq.console.inspector.inspector import get_inspector
from django_rtq.console.inspector.jobs.job_filter import JobFilter
from django_rtq.console.inspector.selection import Selection
from django_rtq.console.inspector.sweep import STEP, Count, Result, Sweep, sum_of_results
from django_rtq.console.internal_tasks import enqueue_rest
from django_rtq.console.render.column import STATE_LABELS
from django_rtq.console.sanitize import clean_text
from django_rtq.core.handle import JobHandle
from django_rtq.core.jobs.job import JobState, moment
from django_rtq.exceptions import BrokerError, QueueFull
from django_rtq.models import AdminEntry

REQUEST_SECONDS = 2.0

_PERMISSIONS: Mapping[str, str] = {
    "requeue": permissions.REQUEUE,
    "run_now": permissions.REQUEUE,
    "discard": permissions.DISCARD,
    "cancel": permissions.CANCEL,
}

Log = Callable[[str], None]  # writes a text to the admin log


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkForm:
    """A sweep of the jobs of a queue in one state, as a URL or a form says it."""

    sweep: Sweep
    queue: str  # "": none was named
    state: str

    @classmethod
    def read(cls, data: QueryDict, verb: Verb) -> BulkForm:
        """From a query string or a form."""
        queue = query_params.get_queue_name(data)
        state = read_state(data, verb)
        selection = Selection(
            queues=[queue], states=[state], filter=read_filter(data), until_ms=read_moment_ms(data) or None
        )
        target = read_target(data) if verb == "requeue" else ""
        sweep = Sweep(verb=verb, selection=selection, target=target)
        return cls(sweep=sweep, queue=queue, state=state)

    @property
    def query(self) -> dict[str, object]:
        """As parameters of a URL or fields of a form."""
        sweep, selection = self.sweep, self.sweep.selection
        optional = {
            "state": "" if self.state == "dead" else self.state,
            "target": sweep.target,
        }
        given = {name: value for name, value in optional.items() if value}
        return {"queue": self.queue, **filter_query(selection.filter), "until_ms": selection.until_ms, **given}

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Pairs of a label and a value that describe the jobs."""
        until = moment(self.sweep.selection.until_ms)
        facts = [(_("Queue"), self.queue), *filter_facts(self.sweep.selection.filter)]
        if self.state != "dead":
            facts.insert(1, (_("State"), str(STATE_LABELS[JobState(self.state)])))
        if self.sweep.target:
            facts.append((_("To queue"), self.sweep.target))
        if until is not None:
            facts.append((_("Died before") if self.state == "dead" else _("Made before"), format_moment(until)))
        return facts

    @property
    def targets(self) -> Sequence[Any]:
        """The other queues in which they can be requeued, if that is the action."""
        return requeue_targets(self.queue) if self.sweep.verb == "requeue" else ()

    @property
    def filter_text(self) -> str:
        """The facts, for the log."""
        return ", ".join(f"{name}: {value}" for name, value in self.facts)

    def at(self, until_ms: int | None) -> BulkForm:
        """The same with another moment."""
        selection = replace(self.sweep.selection, until_ms=until_ms)
        return replace(self, sweep=replace(self.sweep, selection=selection))


@dataclass(frozen=True, slots=True, kw_only=True)
class AllJobs:
    """All jobs of a client or of a task, and how a page asks before something is done with them."""

    wanted: JobFilter
    log: Log
    title: str
    question: Callable[[Count], str]
    consequence: str
    nothing: str  # that there are none
    workflows: int = 0  # that are meant, too
    action: str  # the URL of the page
    fields: Sequence[tuple[str, object]] = ()  # what names them
    breadcrumbs: Sequence[Mapping[str, str]]
    back: str


class BulkPages(PageAdmin):
    """The pages of actions on many jobs, for the admin that has their URLs."""

    bulk_prefix: ClassVar[str]  # what the names of the URLs begin with
    bulk_home: ClassVar[str]  # where to go if no list is known
    bulk_entry: ClassVar[Callable[..., AdminEntry]]  # what the admin log names

    def bulk_routes(self, verb: Verb, folder: str = "") -> list[Route]:
        """The URLs of one action on the jobs of a list. `folder`: what their paths begin with."""
        path, name = f"{folder}{verb.replace('_', '-')}", f"{self.bulk_prefix.partition('_')[2]}{verb}"
        permission = _PERMISSIONS[verb]
        return [
            Route(f"{path}/", name, partial(self.selected, verb=verb), permission, "POST"),
            Route(f"{path}-all/", f"{name}_all", partial(self.all_matching, verb=verb), permission, "BOTH"),
        ]

    # -- pages

    def selected(self, request: HttpRequest, *, verb: Verb) -> HttpResponse:
        """Act on the selected jobs. Discarding and cancelling ask first."""
        queue, ids = query_params.get_queue_name(request.POST), query_params.get_ids(request.POST)
        back = HttpResponseRedirect(query_params.get_next_url(request, self.url(self.bulk_home)))
        if not queue or not ids:
            messages.warning(request, _("Nothing was done: no job was selected."))
            return back
        form = BulkForm.read(request.POST, verb)
        sweep, state = form.sweep, form.state
        if ACTIONS[verb].asks and "confirmed" not in request.POST:
            return self._confirm_selected(request, form, ids)
        done = get_inspector().actions.done(verb, queue, ids, sweep.how(state))
        if done:
            text = bulk_done_text(verb, len(done), state, sweep.target)
            log_action(request, self.bulk_entry(name=queue), text, done)
            messages.success(request, text)
        if refused := len(get_inspector().actions.reached(ids)) - len(done):
            messages.warning(request, no_longer_text(refused, state))
        return back

    def all_matching(self, request: HttpRequest, *, verb: Verb) -> HttpResponse:
        """Act on all matching jobs of a list, after confirmation."""
        form = BulkForm.read(request.POST if request.method == "POST" else request.GET, verb)
        if not form.queue:
            messages.warning(request, _("Choose a queue or a group of dead letters first."))
            return HttpResponseRedirect(self.url(self.bulk_home))
        if request.method == "POST" and form.sweep.selection.until_ms and not refuses_target(request):
            return self._act_on_matching(request, form)
        count = get_inspector().sweeps.count(form.at(None).sweep)
        if not count.count and count.is_complete:
            messages.warning(request, nothing_matches_text(form.state))
            return HttpResponseRedirect(self._list_of(form))
        form = form.at(count.until_ms)
        consequence = bulk_consequence(verb, form.state, count.count) if ACTIONS[verb].asks else ""
        context = {
            "question": bulk_question(verb, count.count, form.state, searched=count.searched, total=count.total),
            "consequence": f"{consequence} {bulk_hint(form.state)}".strip(),
            "facts": form.facts,
            "action": self.url(f"{self.bulk_prefix}{verb}_all"),
            "fields": [(name, value) for name, value in form.query.items() if value],
            "targets": form.targets,
            "back": self._list_of(form),
        }
        return self._ask(request, form, context)

    # -- for pages of a client, a task or a queue

    def act_on_all(self, request: HttpRequest, verb: Verb, jobs: AllJobs) -> HttpResponse:
        """Cancel all waiting jobs of a client or a task, or requeue all of its dead letters, after a question."""
        sweep = _read_sweep(request.POST, verb, jobs.wanted)
        if request.method == "POST" and sweep.selection.until_ms and not refuses_target(request):
            self.act_in_queues(request, sweep, jobs.log)
            return HttpResponseRedirect(jobs.back)
        counted = get_inspector().sweeps.count(_read_sweep(QueryDict(), verb, jobs.wanted))
        if not counted.count and not counted.cut and not jobs.workflows:
            messages.warning(request, jobs.nothing)
            return HttpResponseRedirect(jobs.back)
        queues = dict.fromkeys([*counted.by_queue, *counted.cut])
        context = {
            "title": jobs.title,
            "question": jobs.question(counted),
            "consequence": jobs.consequence,
            "facts": [
                *((queue, number_text(n, is_cut=queue in counted.cut)) for queue, n in counted.by_queue.items()),
                *([(_("Workflows"), format_number(jobs.workflows))] if jobs.workflows else []),
            ],
            "fields": [*jobs.fields, ("until_ms", counted.until_ms), *(("in", queue) for queue in queues)],
            "action": jobs.action,
            "verb": {"cancel": _("Cancel jobs"), "requeue": _("Requeue"), "erase": _("Erase")}[verb],
            "is_harmless": verb == "requeue",
            "targets": requeue_targets() if verb == "requeue" else (),
            "breadcrumbs": jobs.breadcrumbs,
            "back": jobs.back,
        }
        return self.render(request, "confirm.html", context, is_form=True)

    def act_in_queues(self, request: HttpRequest, sweep: Sweep, log: Log, state: str = "") -> Result | None:
        """Act in all queues of a sweep, tell the user and log it. Returns what was done; None: the rest was refused.

        Raises BrokerError.
        """
        result, jobs, error = _act(sweep)
        text = done = bulk_done_text(sweep.verb, result.count, state, sweep.target)
        if jobs:
            rest, names = _("Jobs of these queues do the rest:"), ", ".join(job.queue_name for job in jobs)
            links = [(self.url("job_change", job.id, query={"queue": job.queue_name}), job.queue_name) for job in jobs]
            done = format_html("{} {} {}.", text, rest, format_html_join(", ", '<a href="{}">{}</a>', links))
            text = f"{text} {rest} {names}."
        if result.count or jobs:
            log(text if error is None else f"{text} {error}")
        if isinstance(error, BrokerError):
            raise error
        if error is not None:
            messages.warning(request, rest_refused_text(text, error))
            return None
        if result.count or jobs or not state:
            (messages.warning if jobs else messages.success)(request, done)
        for queue in dict.fromkeys(filter(None, [sweep.target, *(job.queue_name for job in jobs)])):
            warn_if_nobody_serves(request, queue)
        return result

    def purge_for_a_while(self, queue: str, client: str | None, log: Log) -> Said:
        """Purge for as long as a request may take, and log it. Refused: more jobs are left.

        Raises BrokerError, after what was purged until then has been logged.
        """
        selection = Selection(queues=[queue], filter=JobFilter(client=client))
        result, _jobs, error = _act(Sweep(verb="purge", selection=selection))
        text = bulk_done_text("purge", result.count)
        if result.count:
            log(text)
        if error is not None:
            raise error
        if result.is_complete:
            return Said("done", text)
        return Said("refused", _("%(done)s More jobs are waiting. Purge again to continue.") % {"done": text})

    # -- helpers

    def _act_on_matching(self, request: HttpRequest, form: BulkForm) -> HttpResponse:
        def log(text: str) -> None:
            log_action(request, self.bulk_entry(name=form.queue), f"{text} ({form.filter_text})")

        result = self.act_in_queues(request, form.sweep, log, form.state)
        if result is None:
            return HttpResponseRedirect(self.url(f"{self.bulk_prefix}{form.sweep.verb}_all", query=form.query))
        if result.refused:
            messages.warning(request, no_longer_text(result.refused, form.state))
        elif not result.count and result.is_complete:
            messages.warning(request, nothing_matches_text(form.state))
        is_over = form.state == "dead" and result.is_complete
        return HttpResponseRedirect(self.url(self.bulk_home) if is_over else self._list_of(form))

    def _confirm_selected(self, request: HttpRequest, form: BulkForm, ids: Sequence[str]) -> HttpResponse:
        """Ask for confirmation before something is done with selected jobs."""
        back, verb = query_params.get_next_url(request, self.url(self.bulk_home)), form.sweep.verb
        context = {
            "question": bulk_question(verb, len(ids), form.state),
            "consequence": bulk_consequence(verb, form.state, len(ids)),
            "facts": [(_("Queue"), form.queue), (_("Jobs"), clean_text(ids_text(ids)))],
            "action": self.url(f"{self.bulk_prefix}{verb}"),
            "fields": [
                ("queue", form.queue),
                ("state", form.state),
                ("next", back),
                ("confirmed", "yes"),
                *(("id", job_id) for job_id in ids),
            ],
            "back": back,
        }
        return self._ask(request, form, context)

    def _ask(self, request: HttpRequest, form: BulkForm, context: dict[str, Any]) -> HttpResponse:
        verb = form.sweep.verb
        about = {
            "title": bulk_title(verb),
            "verb": bulk_button(verb),
            "is_harmless": not ACTIONS[verb].asks,
            "breadcrumbs": self._crumbs(form),
        }
        return self.render(request, "confirm.html", {**about, **context}, is_form=True)

    def _list_of(self, form: BulkForm) -> str:
        query = {"state": form.state, **filter_query(form.sweep.selection.filter)}
        return self.url("queue_change", form.queue, query=query)

    def _crumbs(self, form: BulkForm) -> list[dict[str, str]]:
        if form.state == "dead":
            return [{"url": self.url("deadletter_changelist"), "title": _("Dead letters")}]
        return [{"url": self.url("queue_change", form.queue, query={"state": form.state}), "title": form.queue}]


def read_state(data: QueryDict, verb: Verb) -> str:
    """The state of the jobs. Dead letters if none is named, as far as that is possible."""
    states = ACTIONS[verb].states
    return query_params.get_choice(data, "state", states, "dead" if "dead" in states else states[0])


def read_moment_ms(data: QueryDict) -> int:
    """The moment of the snapshot that a form remembers; 0: none."""
    return query_params.get_int(data, "until_ms", 0, maximum=LATEST)


def _read_sweep(data: QueryDict, verb: Verb, wanted: JobFilter) -> Sweep:
    """An action on all jobs of a client or a task, from a form that names the queues. Raises Http404."""
    named = data.getlist("in")
    queues = [queue for queue in get_inspector().queues.names() if queue in named] if named else []
    if named and not queues:
        raise Http404
    selection = Selection(queues=queues, filter=wanted, until_ms=read_moment_ms(data) or None)
    target = read_target(data) if verb == "requeue" else ""
    return Sweep(verb=verb, selection=selection, target=target)


def _act(sweep: Sweep) -> tuple[Result, list[JobHandle[Any]], BrokerError | QueueFull | None]:
    """Act for as long as a request may take. Returns what was done, the jobs that do the rest, and the first error."""
    ends = time.monotonic() + REQUEST_SECONDS
    in_shards = get_inspector().in_each_shard(lambda: _act_here(sweep, ends))
    if len(in_shards) == 1:
        return in_shards[0]
    results, jobs, errors = zip(*in_shards, strict=True)
    return sum_of_results(results), list(chain.from_iterable(jobs)), next(filter(None, errors), None)


def _act_here(sweep: Sweep, ends: float) -> tuple[Result, list[JobHandle[Any]], BrokerError | QueueFull | None]:
    """In one shard, until that moment; one step at least."""
    jobs: list[JobHandle[Any]] = []
    left = max(0.0, ends - time.monotonic())
    result = get_inspector().sweeps.run(sweep, seconds=left, limit=STEP)
    if isinstance(result.stopped_by, BrokerError):
        return result, jobs, result.stopped_by
    queues = result.queues_left if sweep.verb != "purge" else ()
    try:
        for job in enqueue_rest(sweep, queues):
            jobs.append(job)
    except (BrokerError, QueueFull) as error:
        return result, jobs, error
    return result, jobs, None

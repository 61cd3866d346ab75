"""The banner of the overview: what is wrong, since when, and the buttons that end it; or that all is well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from django.urls import NoReverseMatch
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from django_rtq.console.admin.urls import PageUrl
from django_rtq.console.formatting import format_number
from django_rtq.console.incidents import Action, Incident, of_shards, worst_of
from django_rtq.console.incidents.detection import reported
from django_rtq.console.incidents.queues import failed_lately
from django_rtq.console.incidents.server import silent_shard
from django_rtq.console.inspector.overview import Overview
from django_rtq.console.sanitize import clean_text

if TYPE_CHECKING:
    from django_rtq.console.shards.all_shards import ShardAnswers

#: Pages that need no subject.
_LISTS: dict[Action, tuple[Any, str]] = {
    Action.SHOW_RUNNING: (gettext_lazy("Show running jobs"), "job_changelist"),
    Action.SHOW_WORKERS: (gettext_lazy("Show workers"), "worker_changelist"),
    Action.SHOW_SCHEDULES: (gettext_lazy("Show schedules"), "schedule_changelist"),
}
MAX_OF_KIND = 3  # incidents of one kind that are shown; the others are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentLine:
    """One incident in the banner."""

    text: str
    url: str = ""  # the page with the details
    since: datetime | None = None
    since_text: str = ""
    links: Sequence[tuple[str, str]] = ()  # label and URL of further pages
    requeue_url: str = ""  # asks before it requeues
    resume_url: str = ""  # takes a POST
    command: str = ""
    is_critical: bool = False


@dataclass(slots=True, kw_only=True)
class Health:
    """The banner of the overview."""

    lines: list[IncidentLine] = field(default_factory=list)  # the worst first
    worst: str = "ok"  # of the incidents
    summary: str = ""  # shown if there are no incidents
    is_well: bool = True  # no incidents, recent failures or dead letters

    @property
    def level(self) -> str:
        """The CSS class of the banner."""
        if self.lines:
            return {"critical": "bad", "warning": "warn"}.get(self.worst, "plain")
        return "good" if self.is_well else "plain"


def health_of(incidents: Sequence[Incident], overview: Overview, url: PageUrl) -> Health:
    """The banner for these incidents."""
    lines, seen = [], Counter(incident.kind for incident in incidents)
    shown: Counter[str] = Counter()
    for incident in incidents:
        shown[incident.kind] += 1
        if shown[incident.kind] <= MAX_OF_KIND:
            lines.append(_line(incident, overview.now, url))
        if shown[incident.kind] == seen[incident.kind] > MAX_OF_KIND:
            lines.append(_more(incident, seen[incident.kind] - MAX_OF_KIND, url))
    summary, is_well = _summary(overview)
    return Health(lines=lines, worst=worst_of(incidents), summary=summary, is_well=is_well)


def health_of_shards(
    answers: ShardAnswers, found: Mapping[int, Sequence[Incident]], overview: Overview, url: PageUrl
) -> Health:
    """The banner of all shards together, with those that are silent."""
    silent = [silent_shard(each.number, each.error, since=each.since, is_missing=True) for each in answers.silent]
    return health_of(reported([*silent, *of_shards(found)]), overview, url)


def _url_in(url: PageUrl, number: int, name: str, *args: str, query: Mapping[str, object] | None = None) -> str:
    return url(name, *args, query={**(query or {}), "shard": str(number)})


def _line(incident: Incident, now: datetime, url: PageUrl) -> IncidentLine:
    text = clean_text(incident.text, 1000)
    if len(incident.shards) == 1:
        url = partial(_url_in, url, incident.shards[0])
    pages = [
        (label, address) for action in incident.actions for label, address in [_page(action, incident, url)] if label
    ]
    if incident.task:
        pages.append((_("Show the task"), url("registeredtask_change", incident.task)))
    query = {"queue": incident.queue, "task": incident.task, "error": incident.error_class}
    can_requeue, can_resume = Action.REQUEUE in incident.actions, Action.RESUME in incident.actions
    return IncidentLine(
        text=text,
        url=pages[0][1] if pages else "",
        since=incident.since,
        since_text=incident.since_text(now),
        links=pages[1:],
        requeue_url=url("deadletter_requeue_all", query=query) if can_requeue else "",
        resume_url=url("queue_resume", incident.queue) if can_resume else "",
        command=incident.command,
        is_critical=incident.is_critical,
    )


def _page(action: Action, incident: Incident, url: PageUrl) -> tuple[str, str]:
    """Label and URL of the page of an action; empty if it is none."""
    query = {"task": incident.task, "error": incident.error_class}
    if action in _LISTS:
        label, name = _LISTS[action]
        try:
            return str(label), url(name)
        except NoReverseMatch:  # this site does not have the page
            return "", ""
    match action:
        case Action.SHOW_QUEUE:
            return _("Show the queue"), url("queue_change", incident.queue)
        case Action.SHOW_DEAD | Action.SHOW_RETRYING:
            is_dead = action is Action.SHOW_DEAD
            label = _("Show the dead letters") if is_dead else _("Show the jobs")
            query = {"state": "dead" if is_dead else "retrying", **query}
            return label, url("queue_change", incident.queue, query=query)
        case Action.SHOW_JOB:
            return _("Show the job"), url("job_change", incident.job_id, query={"queue": incident.queue})
        case Action.SHOW_WORKFLOW:
            return _("Show the workflow"), url("workflow_change", incident.workflow)
        case Action.SHOW_CLIENT:
            # An empty name is one, too, and has to stay in the query.
            name = incident.client or ""
            address = url("client_change", query={"client": name})
            return _("Show the client"), address if name else f"{address}?client="
    return "", ""


def _more(incident: Incident, count: int, url: PageUrl) -> IncidentLine:
    text = ngettext(
        "%(count)s more incident of the kind %(kind)s.", "%(count)s more incidents of the kind %(kind)s.", count
    ) % {"count": format_number(count), "kind": incident.kind}
    tasks = url("registeredtask_changelist")
    address = {"task_failing": tasks, "task_paused": tasks, "dead_letters": url("deadletter_changelist")}
    address["workflow_stuck"] = url("workflow_changelist")
    address["workflow_blocked"] = url("workflow_changelist", query={"state": "blocked"})
    return IncidentLine(text=text, url=address.get(incident.kind, ""), is_critical=incident.is_critical)


def _summary(overview: Overview) -> tuple[str, bool]:
    """The text if there are no incidents, and whether there are no failures and dead letters either."""
    count = len(overview.living)
    workers = ngettext("%(count)d worker", "%(count)d workers", count) % {"count": count}
    failed, dead = sum(map(failed_lately, overview.queues)), sum(row.details.dead for row in overview.queues)
    if not failed and not dead:
        return _("All is well: %(workers)s, no long waits.") % {"workers": workers}, True
    parts = [_("%(workers)s, no long waits.") % {"workers": workers}]
    if failed:
        text = ngettext("%(count)s run failed recently.", "%(count)s runs failed recently.", failed)
        parts.append(text % {"count": format_number(failed)})
    if dead:
        text = ngettext("%(count)s older dead letter remains.", "%(count)s older dead letters remain.", dead)
        parts.append(text % {"count": format_number(dead)})
    return " ".join(parts), False

"""The incidents of the overview as cards: what is wrong, since when, and what ends it; or that all is well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from django.urls import NoReverseMatch
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from django_rtq.console.admin.filters import filter_query
from django_rtq.console.formatting import format_duration, format_number, format_percent
from django_rtq.console.incidents import Action, Incident, Severity, worst_of
from django_rtq.console.incidents.detection import reported
from django_rtq.console.incidents.incident import DETECTORS
from django_rtq.console.incidents.server import silent_shard
from django_rtq.console.reading.jobs.job_filter import JobFilter
from django_rtq.console.reading.overview import Overview
from django_rtq.console.reading.readers import SilentShard
from django_rtq.console.reading.selection import Selection
from django_rtq.console.render.column import PageUrl
from django_rtq.console.sanitize import clean_text

#: What an action is called, its page, and which field of the incident is in the address of that.
_PAGES: dict[Action, tuple[Any, str, str]] = {
    Action.SHOW_QUEUE: (gettext_lazy("Show the queue"), "queue_change", "queue"),
    Action.SHOW_DEAD: (gettext_lazy("Show the dead letters"), "queue_change", "queue"),
    Action.SHOW_RETRYING: (gettext_lazy("Show the jobs"), "queue_change", "queue"),
    Action.SHOW_JOB: (gettext_lazy("Show the job"), "job_change", "job_id"),
    Action.SHOW_RUNNING: (gettext_lazy("Show running jobs"), "job_changelist", ""),
    Action.SHOW_WORKERS: (gettext_lazy("Show workers"), "worker_changelist", ""),
    Action.SHOW_CLIENT: (gettext_lazy("Show the client"), "client_change", ""),
    Action.SHOW_SCHEDULES: (gettext_lazy("Show schedules"), "schedule_changelist", ""),
    Action.SHOW_WORKFLOW: (gettext_lazy("Show the workflow"), "workflow_change", "workflow"),
    Action.SHOW_OUTBOX: (gettext_lazy("Show the outbox"), "job_outbox", ""),
}
#: The list of the subjects of a kind.
_LISTS = {
    "dead_letters": "deadletter_changelist",
    **dict.fromkeys(("task_failing", "task_paused"), "registeredtask_changelist"),
    **dict.fromkeys(("workflow_stuck", "workflow_blocked"), "workflow_changelist"),
}
MAX_OF_KIND = 3  # incidents of one kind that are shown; the others are counted
LEAST_SHOWN, MOST_SHOWN = 3, 6  # cards; so many are shown if they are critical. The others are folded
_LEVELS = {
    Severity.CRITICAL: ("bad", gettext_lazy("Critical")),
    Severity.WARNING: ("warn", gettext_lazy("Warning")),
    Severity.INFO: ("plain", ""),
}
_JOBS = ("dead", "waiting", "jobs", "count", "failed")  # the values that are numbers of jobs, the most telling first


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentLine:
    """One incident, or how many there are more of a kind."""

    text: str  # without the subject, if it began with it and a colon
    subject: str = ""
    figure: str = ""
    kind: str = ""  # for people; "": this is no incident, but tells of some
    where: str = ""  # the shards
    level: str = ""  # a CSS class
    severity: Any = ""  # in words
    url: str = ""  # the page with the details
    since: datetime | None = None
    since_text: str = ""
    links: Sequence[tuple[str, str]] = ()  # label and URL of further pages
    requeue_url: str = ""  # asks before it requeues
    resume_url: str = ""  # takes a POST
    command: str = ""


@dataclass(slots=True, kw_only=True)
class Health:
    """What the overview says first."""

    lines: list[IncidentLine] = field(default_factory=list)  # the worst first
    shown: int = 0  # how many of them are not folded
    queues: list[str] = field(default_factory=list)  # with incidents, the worst first
    worst: str = "ok"  # of the incidents
    summary: str = ""  # shown if there are no incidents
    is_well: bool = True  # no incidents, recent failures or dead letters

    @property
    def level(self) -> str:
        """The CSS class of the whole."""
        if self.lines:
            return {"critical": "bad", "warning": "warn"}.get(self.worst, "plain")
        return "good" if self.is_well else "plain"

    @property
    def open_lines(self) -> list[IncidentLine]:
        """Those that are seen at once."""
        return self.lines[: self.shown]

    @property
    def folded_lines(self) -> list[IncidentLine]:
        """Those behind "4 more"."""
        return self.lines[self.shown :]


def health_of(
    incidents: Sequence[Incident], overview: Overview, url: PageUrl, silent: Iterable[SilentShard] = ()
) -> Health:
    """The cards of these incidents: of each severity first those for which most jobs wait longest.

    `silent`: shards that do not answer, which are incidents, too.
    """
    away = (silent_shard(each.number, each.error, since=each.since, is_missing=True) for each in silent)
    incidents = reported([*away, *incidents])
    lines, more, seen = [], [], Counter[str]()
    ordered = _by_weight(incidents, overview.now)
    for incident in ordered:
        seen[incident.kind] += 1
        if seen[incident.kind] <= MAX_OF_KIND:
            lines.append(_line(incident, overview.now, url))
        elif seen[incident.kind] == MAX_OF_KIND + 1:
            more.append(incident)
    critical = sum(line.level == "bad" for line in lines)
    shown = max(LEAST_SHOWN, min(MOST_SHOWN, critical))
    lines += [_more(incident, seen[incident.kind] - MAX_OF_KIND, url) for incident in more]
    summary, is_well = _summary(overview)
    return Health(
        lines=lines,
        shown=shown,
        queues=list(dict.fromkeys(incident.queue for incident in ordered if incident.queue)),
        worst=worst_of(incidents),
        summary=summary,
        is_well=is_well,
    )


def _by_weight(incidents: Sequence[Incident], now: datetime) -> list[Incident]:
    """The critical ones first, and of each severity those with most jobs times how long they wait."""

    def weight(incident: Incident) -> float:
        jobs = next((incident.values[name] for name in _JOBS if incident.values.get(name)), 1)
        return float(jobs) * max(1.0, (now - incident.since).total_seconds() if incident.since else 1.0)

    return sorted(incidents, key=lambda each: (each.severity.rank, -weight(each), not each.actions))


def _url_in(url: PageUrl, number: int, name: str, *args: str, query: Mapping[str, object] | None = None) -> str:
    return url(name, *args, query={**(query or {}), "shard": str(number)})


def _line(incident: Incident, now: datetime, url: PageUrl) -> IncidentLine:
    level, severity = _LEVELS[incident.severity]
    if len(incident.shards) == 1:
        url = partial(_url_in, url, incident.shards[0])
    pages = _pages(incident, url)
    dead = Selection(queues=[incident.queue] if incident.queue else [], states=["dead"], filter=_filter_of(incident))
    can_requeue, can_resume = Action.REQUEUE in incident.actions, Action.RESUME in incident.actions
    return IncidentLine(
        text=clean_text(incident.short_text, 1000),
        subject=clean_text(incident.subject, 120),
        figure=_figure(incident.values),
        kind=str(DETECTORS[incident.kind].title),
        where=incident.where_text,
        level=level,
        severity=severity,
        url=pages[0][1] if pages else "",
        since=incident.since,
        since_text=incident.since_text(now),
        links=pages[1 : 2 if can_requeue or can_resume else 3],  # two buttons at most
        requeue_url=url("job_bulk_requeue", query={"q": str(dead)}) if can_requeue else "",
        resume_url=url("queue_resume", incident.queue) if can_resume else "",
        command=incident.command,
    )


def _figure(values: Mapping[str, Any]) -> str:
    """The one number that says most; "" if none does."""
    if "share" in values:
        return format_percent(values["share"] / 100)
    if "failed" in values:
        return format_percent(values["failed"] / values["runs"])
    number = next((values[name] for name in ("dead", "count") if values.get(name, 0) > 1), 0)
    return format_number(number) if number else format_duration(values["duration"]) if "duration" in values else ""


def _filter_of(incident: Incident) -> JobFilter:
    return JobFilter(task=incident.task, error_class=incident.error_class)


def _pages(incident: Incident, url: PageUrl) -> list[tuple[str, str]]:
    """Labels and URLs of what a person can do, and of the task; those that this site has."""
    jobs = filter_query(_filter_of(incident))
    queries: Mapping[Action, Mapping[str, str]] = {
        Action.SHOW_DEAD: {"state": "dead", **jobs},
        Action.SHOW_RETRYING: {"state": "retrying", **jobs},
        Action.SHOW_JOB: {"queue": incident.queue},
        Action.SHOW_CLIENT: {"client": incident.client or ""},
    }
    pages = []
    for action in (each for each in incident.actions if each in _PAGES):
        label, name, subject = _PAGES[action]
        with suppress(NoReverseMatch):
            address = url(name, *([getattr(incident, subject)] if subject else []), query=queries.get(action))
            if action is Action.SHOW_CLIENT and not incident.client:  # an empty name has to stay in the query
                address += f"{'&' if '?' in address else '?'}client="
            pages.append((str(label), address))
    return [*pages, *([(_("Show the task"), url("registeredtask_change", incident.task))] if incident.task else [])]


def _more(incident: Incident, count: int, url: PageUrl) -> IncidentLine:
    text = ngettext(
        "%(count)s more incident of the kind %(kind)s.", "%(count)s more incidents of the kind %(kind)s.", count
    ) % {"count": format_number(count), "kind": DETECTORS[incident.kind].title}
    name, query = _LISTS.get(incident.kind), {"state": "blocked"} if incident.kind == "workflow_blocked" else {}
    return IncidentLine(text=text, url=url(name, query=query) if name else "")


def _summary(overview: Overview) -> tuple[str, bool]:
    """The text if there are no incidents, and whether there are no failures and dead letters either."""
    count = len(overview.living)
    workers = ngettext("%(count)d worker", "%(count)d workers", count) % {"count": count}
    failed, dead = (
        sum(row.lately("failed") for row in overview.queues),
        sum(row.details.dead for row in overview.queues),
    )
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

"""What the overview shows of all queues: what is wrong, as cards, or that all is well; and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from django.urls import NoReverseMatch
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from django_rtq.console.formatting import format_duration, format_number, format_percent, names_text
from django_rtq.console.incident_options import incident_options
from django_rtq.console.incidents import Action, Incident, Severity, reported
from django_rtq.console.incidents.incident import DETECTORS
from django_rtq.console.incidents.server import silent_shard
from django_rtq.console.merging import grouped, most
from django_rtq.console.reading.overview import Overview
from django_rtq.console.reading.readers import SilentShard
from django_rtq.console.reading.selection import Selection
from django_rtq.console.render.column import PageUrl
from django_rtq.console.sanitize import clean_text
from django_rtq.databases.outbox import OutboxLag

_translated = _  # of texts that are marked elsewhere
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


def health_of(
    incidents: Sequence[Incident], overview: Overview, url: PageUrl, silent: Iterable[SilentShard] = ()
) -> dict[str, Any]:
    """What the overview says first: a card for each incident, those that are folded, and which queues have some.

    Of each severity first those for which most jobs wait longest. `silent`: shards that do not answer, which are
    incidents, too.
    """
    away = (silent_shard(each.number, each.error, since=each.since, is_missing=True) for each in silent)
    ordered = _by_weight(reported([*away, *incidents]), overview.now)
    by_kind = grouped((incident.kind, incident) for incident in ordered)
    shown = [one for one in ordered if any(one is each for each in by_kind[one.kind][:MAX_OF_KIND])]
    lines = [_line(incident, overview.now, url) for incident in shown]
    lines += [_more(each[0], len(each) - MAX_OF_KIND, url) for each in by_kind.values() if len(each) > MAX_OF_KIND]
    unfolded = max(LEAST_SHOWN, min(MOST_SHOWN, sum(incident.is_critical for incident in shown)))
    level, summary = (_LEVELS[ordered[0].severity][0], "") if ordered else _summary(overview)
    return {
        "level": level,  # the CSS class of the whole
        "summary": summary,
        "lines": lines[:unfolded],
        "folded_lines": lines[unfolded:],
        "queues": list(dict.fromkeys(incident.queue for incident in ordered if incident.queue)),
    }


def _by_weight(incidents: Sequence[Incident], now: datetime) -> list[Incident]:
    """The critical ones first, and of each severity those with most jobs times how long they wait."""

    def weight(incident: Incident) -> float:
        jobs = next((incident.values[name] for name in _JOBS if incident.values.get(name)), 1)
        return float(jobs) * max(1.0, (now - incident.since).total_seconds() if incident.since else 1.0)

    return sorted(incidents, key=lambda each: (each.severity.rank, -weight(each), not each.actions))


def _url_in(url: PageUrl, number: int, name: str, *args: str, query: Mapping[str, object] | None = None) -> str:
    return url(name, *args, query={**(query or {}), "shard": str(number)})


def _line(incident: Incident, now: datetime, url: PageUrl) -> dict[str, Any]:
    """A card."""
    level, severity = _LEVELS[incident.severity]
    if len(incident.shards) == 1:
        url = partial(_url_in, url, incident.shards[0])
    pages = _pages(incident, url)
    dead = replace(_filter_of(incident), queues=[incident.queue] if incident.queue else [], states=["dead"])
    can_requeue, can_resume = Action.REQUEUE in incident.actions, Action.RESUME in incident.actions
    return {
        "text": clean_text(incident.short_text, 1000),  # without the subject, if it began with it and a colon
        "subject": clean_text(incident.subject, 120),
        "figure": _figure(incident.values),
        "kind": str(DETECTORS[incident.kind].title),
        "where": incident.where_text,  # the shards
        "level": level,
        "severity": severity,
        "url": pages[0][1] if pages else "",
        "since": incident.since,
        "since_text": incident.since_text(now),
        "links": pages[1 : 2 if can_requeue or can_resume else 3],  # two buttons at most
        "requeue_url": url("job_bulk_requeue", query={"q": str(dead)}) if can_requeue else "",  # asks before
        "resume_url": url("queue_resume", incident.queue) if can_resume else "",  # takes a POST
        "command": incident.command,
    }


def _figure(values: Mapping[str, Any]) -> str:
    """The one number that says most; "" if none does."""
    if "share" in values:
        return format_percent(values["share"] / 100)
    if "failed" in values:
        return format_percent(values["failed"] / values["runs"])
    number = next((values[name] for name in ("dead", "count") if values.get(name, 0) > 1), 0)
    return format_number(number) if number else format_duration(values["duration"]) if "duration" in values else ""


def _filter_of(incident: Incident) -> Selection:
    return Selection(task=incident.task and f"={incident.task}", error_class=incident.error_class)


def _pages(incident: Incident, url: PageUrl) -> list[tuple[str, str]]:
    """Labels and URLs of what a person can do, and of the task; those that this site has."""
    jobs = {"q": str(_filter_of(incident))}
    queries: Mapping[Action, Mapping[str, str]] = {
        Action.SHOW_DEAD: {"state": "dead", **jobs},
        Action.SHOW_RETRYING: {"state": "retrying", **jobs},
        Action.SHOW_JOB: {"queue": incident.queue},
        Action.SHOW_CLIENT: {"client": incident.client or ""},
    }
    pages = []
    for action in (each for each in incident.actions if each not in (Action.REQUEUE, Action.RESUME)):
        label, name, subject = action.value
        with suppress(NoReverseMatch):
            address = url(name, *([getattr(incident, subject)] if subject else []), query=queries.get(action))
            if action is Action.SHOW_CLIENT and not incident.client:  # an empty name has to stay in the query
                address += f"{'&' if '?' in address else '?'}client="
            pages.append((_translated(label), address))
    return [*pages, *([(_("Show the task"), url("registeredtask_change", incident.task))] if incident.task else [])]


def _more(incident: Incident, count: int, url: PageUrl) -> dict[str, Any]:
    """How many more there are of a kind."""
    text = ngettext(
        "%(count)s more incident of the kind %(kind)s.", "%(count)s more incidents of the kind %(kind)s.", count
    ) % {"count": format_number(count), "kind": DETECTORS[incident.kind].title}
    name, query = _LISTS.get(incident.kind), {"state": "blocked"} if incident.kind == "workflow_blocked" else {}
    return {"text": text, "url": url(name, query=query) if name else ""}


def _summary(overview: Overview) -> tuple[str, str]:
    """The CSS class and the text if there are no incidents: all is well without recent failures and dead letters."""
    count = len(overview.living)
    workers = {"workers": ngettext("%(count)d worker", "%(count)d workers", count) % {"count": count}}
    failed = sum(row.lately("failed") for row in overview.queues)
    dead = sum(row.details.dead for row in overview.queues)
    if not failed and not dead:
        return "good", _("All is well: %(workers)s, no long waits.") % workers
    parts = [_("%(workers)s, no long waits.") % workers]
    if failed:
        text = ngettext("%(count)s run failed recently.", "%(count)s runs failed recently.", failed)
        parts.append(text % {"count": format_number(failed)})
    if dead:
        text = ngettext("%(count)s older dead letter remains.", "%(count)s older dead letters remain.", dead)
        parts.append(text % {"count": format_number(dead)})
    return "plain", " ".join(parts)


# -- figures


def figures(overview: Overview, url: PageUrl) -> list[dict[str, Any]]:
    """The oldest wait, the failing share, what runs, and dead letters, of all queues."""
    queues = [row.details for row in overview.queues if row.details.oldest_seconds and not row.details.paused]
    oldest = max(queues, key=lambda queue: queue.oldest_seconds or 0.0, default=None)
    seconds = oldest.oldest_seconds if oldest else None
    free = (queue.oldest_seconds or 0.0 for queue in queues if not (queue.is_at_limit or queue.is_at_rate))
    is_late = max(free, default=0.0) > incident_options().oldest_seconds
    failed, done = (sum(row.lately(name) for row in overview.queues) for name in ("failed", "succeeded"))
    share = failed / (failed + done) if failed or done else None
    is_failing = share is not None and share >= incident_options().failure_rate
    counts = {
        "failed": failed,
        "runs": failed + done,
        "slots": sum(worker.slots for worker in overview.living),
        "count": sum(row.series.total("dead") for row in overview.queues),
    }
    said = {name: format_number(number) for name, number in counts.items()}
    of_runs = _("%(failed)s of %(runs)s in 5 min") % said if share is not None else ""
    of_slots, lately = _("of %(slots)s slots") % said, _("%(count)s in the last hour") % said
    dead, letters = _sum_of(overview, "dead"), url("deadletter_changelist")
    return [
        _cell(_("Oldest wait"), seconds, format_duration, "rtq-is-bad" * is_late, note=oldest.name if oldest else ""),
        _cell(_("Failing"), share, format_percent, "rtq-is-bad" * is_failing, note=of_runs),
        _cell(_("Running"), _sum_of(overview, "running"), url=url("job_changelist"), note=of_slots),
        _cell(_("Dead letters"), dead, css="rtq-is-bad", url=letters, note=lately),
    ]


def totals(overview: Overview, url: PageUrl, lag: OutboxLag | None = None) -> list[dict[str, Any]]:
    """The other totals of all queues."""
    cells = [
        _cell(_("Queued"), _sum_of(overview, "queued")),
        _cell(_("Scheduled"), _sum_of(overview, "scheduled")),
        _cell(_("Retrying"), _sum_of(overview, "retrying")),
        _cell(_("Done/min"), sum(row.per_minute("succeeded") for row in overview.queues)),
        _cell(_("Workers"), len(overview.living), url=url("worker_changelist")),
        {"title": _("Scheduler"), **_scheduler(overview)},
    ]
    if lag:
        cells.append(_cell(_("Outbox"), lag.jobs, url=url("job_outbox")))
    server = overview.server
    if server.used_memory:
        name = f"{server.name.title()} {server.version}"
        cells.append(_cell(name, server.used_memory, _size, url=url("job_memory")))
    return cells


def _sum_of(overview: Overview, name: str) -> int:
    return sum(getattr(row.details, name) for row in overview.queues)


def _cell(
    title: str, value: Any, write: Callable[[Any], str] = format_number, css: str = "", **more: str
) -> dict[str, Any]:
    """`css`: of a value that is not nothing."""
    return {"title": title, "text": write(value), "css": css if value else "rtq-zero", **more}


def _scheduler(overview: Overview) -> dict[str, str]:
    """Whether a scheduler looks for due jobs in every queue. No number that changes while it does."""
    missing = overview.unscheduled
    if overview.scheduler_seconds is None or not overview.queues:
        return {"text": format_duration(None), "css": "rtq-zero"}
    late = [row.details for row in overview.queues if row.details.name in missing and row.details.needs_scheduler]
    if late:
        return {"text": _ago_text(most(queue.scheduler_seconds for queue in late)), "css": "rtq-is-warn"}
    if len(missing) == len(overview.queues):
        return {"text": _ago_text(overview.scheduler_seconds), "css": ""}
    some = _("alive; none for %(names)s") % {"names": names_text(missing, 3)}
    return {"text": some if missing else _("alive"), "css": ""}


def _ago_text(seconds: float | None) -> str:
    return _("never") if seconds is None else _("%(duration)s ago") % {"duration": format_duration(seconds)}


def _size(number: int) -> str:
    return _("%(number)s MB") % {"number": format_number(round(number / 1_048_576, 1))}

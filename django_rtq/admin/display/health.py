"""The banner of the overview: what is wrong, or that all is well."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_rtq.admin.display.problems import (
    Problem,
    failed_lately,
    failing_tasks,
    hung_jobs,
    long_waits,
    new_dead_letters,
    silent_workers,
)
from django_rtq.admin.display.sanitize import clean_text
from django_rtq.admin.urls import PageUrl
from django_rtq.formatting import format_duration, format_number, names_text
from django_rtq.inspector.overview import Overview
from django_rtq.inspector.queues import unserved
from django_rtq.inspector.server_info import problems_of
from django_rtq.tasks.registry import declared_queues
from django_rtq.transactions.outbox import OutboxLag

OUTBOX_SECONDS = 60.0  # jobs that are in the outbox for less are not reported
CLOCK_SECONDS = 1.0  # a clock that is behind by less is not reported
_MAX_NAMED = 5  # queues in one sentence


@dataclass(slots=True)
class Health:
    """The banner of the overview."""

    problems: list[Problem] = field(default_factory=list)  # the worst first
    summary: str = ""  # shown if there are no problems
    is_well: bool = True  # no problems, recent failures or dead letters
    idle_queues: str = ""  # with jobs but without a worker: the value of --queues

    @property
    def level(self) -> str:
        """The CSS class of the banner."""
        if self.problems:
            return "bad" if self.problems[0].is_bad else "warn"
        return "good" if self.is_well else "plain"


def check_health(overview: Overview, url: PageUrl, lag: OutboxLag | None = None) -> Health:
    """Collect all problems, the worst first."""
    waiting = [q.name for q in (row.details for row in overview.queues) if q.queued or q.scheduled or q.retrying]
    idle = unserved(waiting, overview.workers)
    found = [Problem(text=text, url=url("worker_changelist"), is_bad=True) for text in _workers(overview, idle)]
    found += [Problem(text=text, is_bad=name in _BAD) for name, text in problems_of(overview.server, _)]
    for detect in (failing_tasks, new_dead_letters, hung_jobs, silent_workers):
        found += detect(overview, url)
    found += [Problem(text=text) for text in (*_clock(overview), *_queues(overview), *_unserved(overview, idle))]
    found += long_waits(overview, url)
    found += _outbox(lag) if lag else ()
    summary, is_well = _summary(overview)
    return Health(
        problems=sorted(found, key=lambda problem: not problem.is_bad),
        summary=summary,
        is_well=is_well,
        idle_queues=",".join(idle),
    )


def _workers(overview: Overview, idle: list[str]) -> Iterator[str]:
    if overview.queues and not overview.workers:
        yield _("No worker is running, so no jobs are processed. Start one:")
    elif idle:
        yield _("Jobs are waiting in queues that no worker serves: %(names)s.") % {
            "names": names_text(idle, _MAX_NAMED)
        }
    lost = sum(worker.is_lost for worker in overview.workers)
    if lost:
        yield ngettext(
            "%(count)d worker has stopped responding. Its jobs will be reclaimed shortly.",
            "%(count)d workers have stopped responding. Their jobs will be reclaimed shortly.",
            lost,
        ) % {"count": lost}


def _queues(overview: Overview) -> Iterator[str]:
    delayed = {q.details.name for q in overview.queues if q.details.scheduled or q.details.retrying}
    unscheduled = [name for name in overview.unscheduled if name in delayed]
    if unscheduled and overview.workers:
        yield _(
            "No scheduler is running for these queues, so scheduled jobs and retries do not start: %(names)s. Were "
            "all workers started with --no-scheduler?"
        ) % {"names": names_text(unscheduled, _MAX_NAMED)}
    paused = [q.details.name for q in overview.queues if q.details.paused]
    if paused:
        yield _("Paused queues: %(names)s.") % {"names": names_text(paused, _MAX_NAMED)}


def _unserved(overview: Overview, idle: list[str]) -> Iterator[str]:
    """Declared queues without a worker in which no job waits yet; without any worker, that is said alone."""
    names = [name for name in unserved(declared_queues(), overview.workers) if name not in idle]
    if names and overview.workers:
        yield _("No worker serves these queues, which tasks or settings declare: %(names)s.") % {
            "names": names_text(names, _MAX_NAMED)
        }


def _outbox(lag: OutboxLag) -> Iterator[Problem]:
    if lag.error:
        text = _("The database did not say how many jobs wait in the outbox: %(error)s")
        yield Problem(text=text % {"error": clean_text(lag.error)}, is_bad=True)
    elif lag.oldest_seconds >= OUTBOX_SECONDS:
        yield Problem(
            text=ngettext(
                "%(count)s job waits in the outbox, for %(duration)s. Is a worker or scheduler running with this "
                "database, and does its log name an error?",
                "%(count)s jobs wait in the outbox, the oldest for %(duration)s. Is a worker or scheduler running with "
                "this database, and does its log name an error?",
                lag.jobs,
            )
            % {"count": format_number(lag.jobs), "duration": format_duration(lag.oldest_seconds)},
            is_bad=True,
        )


def _clock(overview: Overview) -> Iterator[str]:
    behind = max((q.details.clock_behind_seconds for q in overview.queues), default=0.0)
    if behind >= CLOCK_SECONDS:
        yield _(
            "The clock of the Redis server was set back and is %(duration)s behind. Until it has caught up, time "
            "passes 10 percent more slowly for jobs."
        ) % {"duration": format_duration(behind)}


def _summary(overview: Overview) -> tuple[str, bool]:
    """The text if there are no problems, and whether there are no failures and dead letters either."""
    count = len(overview.workers)
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


_BAD = {"evicts", "log_failed", "snapshot_failed", "replica"}

"""Whether all is well, in words: what an operator should know first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_rtq.admin.display.formatting import duration_text, number_text
from django_rtq.admin.display.problems import (
    Address,
    Trouble,
    failed_lately,
    failing_tasks,
    hung_jobs,
    long_waits,
    new_dead_letters,
    silent_workers,
)
from django_rtq.broker.redis.server_info import problems_of
from django_rtq.inspector.details import WorkerDetails
from django_rtq.inspector.overview import Overview

CLOCK_SECONDS = 1.0  # by which the server's clock may be behind before it is told
_NAMED = 5  # queues in one sentence


@dataclass(slots=True)
class Health:
    """The banner of the overview."""

    problems: list[Trouble] = field(default_factory=list)  # the worst first
    summary: str = ""  # when there is none
    is_well: bool = True  # and nothing is left to do either
    idle_queues: str = ""  # with work, and without a worker: as an option of the command

    @property
    def level(self) -> str:
        """The name of its colour."""
        if self.problems:
            return "bad" if self.problems[0].is_bad else "warn"
        return "good" if self.is_well else "plain"


def health_of(front: Overview, url: Address) -> Health:
    """What is wrong, as far as it can be seen from the front."""
    served = {name for worker in front.workers if not is_lost(worker) for name in worker.queues}
    alone = [row.details for row in front.queues if row.details.name not in served]
    idle = [q.name for q in alone if q.queued or q.scheduled or q.retrying]
    found = [Trouble(text=text, url=url("worker_changelist"), is_bad=True) for text in _workers(front, idle)]
    found += [Trouble(text=text, is_bad=name in _BAD) for name, text in problems_of(front.server, _)]
    for look in (failing_tasks, new_dead_letters, hung_jobs, silent_workers):
        found += look(front, url)
    found += [Trouble(text=text) for text in (*_clock(front), *_queues(front))]
    found += long_waits(front, url)
    summary, is_well = _summary(front)
    return Health(
        problems=sorted(found, key=lambda trouble: not trouble.is_bad),
        summary=summary,
        is_well=is_well,
        idle_queues=",".join(idle),
    )


def is_lost(worker: WorkerDetails) -> bool:
    """Whether its lease ran out, so that its jobs are about to be given to others."""
    return worker.lease_left_seconds < 0


def _workers(front: Overview, idle: list[str]) -> Iterator[str]:
    if front.queues and not front.workers:
        yield _("No worker is alive: nothing runs. Start one:")
    elif idle:
        yield _("No worker serves these queues, and jobs wait there: %(names)s.") % {"names": _names(idle)}
    lost = sum(is_lost(worker) for worker in front.workers)
    if lost:
        yield ngettext(
            "%(count)d worker is not seen any more; its jobs are about to be given to others.",
            "%(count)d workers are not seen any more; their jobs are about to be given to others.",
            lost,
        ) % {"count": lost}


def _queues(front: Overview) -> Iterator[str]:
    waiting_for_time = {q.details.name for q in front.queues if q.details.scheduled or q.details.retrying}
    unscheduled = [name for name in front.unscheduled if name in waiting_for_time]
    if unscheduled and front.workers:
        yield _(
            "Nobody looks for due jobs in these queues: %(names)s. Is every worker started with --no-scheduler?"
        ) % {"names": _names(unscheduled)}
    paused = [q.details.name for q in front.queues if q.details.paused]
    if paused:
        yield _("Paused: %(names)s.") % {"names": _names(paused)}


def _clock(front: Overview) -> Iterator[str]:
    behind = max((q.details.clock_behind_seconds for q in front.queues), default=0.0)
    if behind >= CLOCK_SECONDS:
        yield _(
            "The clock of the Redis server was put back and is %(duration)s behind. Until it has caught up, jobs go by"
            " a time that runs a tenth more slowly."
        ) % {"duration": duration_text(behind)}


def _summary(front: Overview) -> tuple[str, bool]:
    """What to say when there is no trouble, and whether nothing at all is left to do."""
    count = len(front.workers)
    workers = ngettext("%(count)d worker", "%(count)d workers", count) % {"count": count}
    failed, dead = sum(map(failed_lately, front.queues)), sum(row.details.dead for row in front.queues)
    if not failed and not dead:
        return _("All is well: %(workers)s, nobody waits for long.") % {"workers": workers}, True
    parts = [_("%(workers)s, nobody waits for long.") % {"workers": workers}]
    if failed:
        text = ngettext("%(count)s run failed lately.", "%(count)s runs failed lately.", failed)
        parts.append(text % {"count": number_text(failed)})
    if dead:
        text = ngettext(
            "%(count)s dead letter is left from before.", "%(count)s dead letters are left from before.", dead
        )
        parts.append(text % {"count": number_text(dead)})
    return " ".join(parts), False


def _names(names: list[str]) -> str:
    shown, more = ", ".join(names[:_NAMED]), len(names) - _NAMED
    if more <= 0:
        return shown
    text = ngettext("%(names)s and %(count)d more", "%(names)s and %(count)d more", more)
    return text % {"names": shown, "count": more}


_BAD = {"evicts", "log_failed", "snapshot_failed", "replica"}

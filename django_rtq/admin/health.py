"""Whether all is well, in words: what an operator should know first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_rtq.admin.figures import duration_text
from django_rtq.broker.details import WorkerDetails
from django_rtq.broker.front import Front

LONG_WAIT_SECONDS = 300.0
CLOCK_SECONDS = 1.0  # by which the server's clock may be behind before it is told
_NAMED = 5  # queues in one sentence


@dataclass(slots=True)
class Health:
    """The banner of the overview."""

    bad: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    summary: str = ""  # when all is well
    idle_queues: str = ""  # with work, and without a worker: as an option of the command

    @property
    def problems(self) -> list[str]:
        """The worst first."""
        return [*self.bad, *self.warnings]

    @property
    def level(self) -> str:
        """The name of its colour."""
        return "bad" if self.bad else "warn"


def health_of(front: Front) -> Health:
    """What is wrong, as far as it can be seen from the front."""
    health = Health()
    served = {name for worker in front.workers if not is_lost(worker) for name in worker.queues}
    alone = [row.details for row in front.queues if row.details.name not in served]
    idle = [q.name for q in alone if q.queued or q.scheduled or q.retrying]
    health.idle_queues = ",".join(idle)
    health.bad += _workers(front, idle)
    health.bad += [_SERVER[name](front.server) for name in front.server.warnings if name in _BAD]
    health.warnings += [_SERVER[name](front.server) for name in front.server.warnings if name not in _BAD]
    health.warnings += _clock(front)
    health.warnings += _queues(front)
    health.summary = _summary(front)
    return health


def is_lost(worker: WorkerDetails) -> bool:
    """Whether its lease ran out, so that its jobs are about to be given to others."""
    return worker.lease_left_seconds < 0


def _workers(front: Front, idle: list[str]) -> Iterator[str]:
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


def _queues(front: Front) -> Iterator[str]:
    waiting_for_time = {q.details.name for q in front.queues if q.details.scheduled or q.details.retrying}
    unscheduled = [name for name in front.unscheduled if name in waiting_for_time]
    if unscheduled and front.workers:
        yield _(
            "Nobody looks for due jobs in these queues: %(names)s. Is every worker started with --no-scheduler?"
        ) % {"names": _names(unscheduled)}
    paused = [q.details.name for q in front.queues if q.details.paused]
    if paused:
        yield _("Paused: %(names)s.") % {"names": _names(paused)}
    late = [q.details for q in front.queues if (q.details.oldest_seconds or 0) > LONG_WAIT_SECONDS]
    if late:
        worst = max(late, key=lambda q: q.oldest_seconds or 0)
        yield _("The oldest job of %(name)s has been waiting for %(duration)s.") % {
            "name": worst.name,
            "duration": duration_text(worst.oldest_seconds),
        }


def _clock(front: Front) -> Iterator[str]:
    behind = max((q.details.clock_behind_seconds for q in front.queues), default=0.0)
    if behind >= CLOCK_SECONDS:
        yield _(
            "The clock of the Redis server was put back and is %(duration)s behind. Until it has caught up, jobs go by"
            " a time that runs a tenth more slowly."
        ) % {"duration": duration_text(behind)}


def _summary(front: Front) -> str:
    count = len(front.workers)
    workers = ngettext("%(count)d worker", "%(count)d workers", count) % {"count": count}
    return _("All is well: %(workers)s, nobody waits for long.") % {"workers": workers}


def _names(names: list[str]) -> str:
    shown, more = ", ".join(names[:_NAMED]), len(names) - _NAMED
    if more <= 0:
        return shown
    text = ngettext("%(names)s and %(count)d more", "%(names)s and %(count)d more", more)
    return text % {"names": shown, "count": more}


_BAD = {"evicts", "log_failed", "snapshot_failed", "replica"}
_SERVER = {
    "evicts": lambda server: (
        _("Redis deletes keys when it is full (maxmemory-policy %(policy)s), and jobs are keys. Set it to noeviction.")
        % {"policy": server.eviction_policy}
    ),
    "volatile": lambda server: _(
        "Redis keeps no append-only log: when it restarts, jobs may be lost. Set appendonly yes."
    ),
    "nearly_full": lambda server: (
        _("Redis is nearly full: %(used)s of %(most)s.")
        % {"used": filesizeformat(_bytes(server.used_memory)), "most": filesizeformat(_bytes(server.max_memory))}
    ),
    "log_failed": lambda server: _("Redis could not write its append-only log: look at its disk."),
    "snapshot_failed": lambda server: _("Redis could not save its snapshot: look at its disk."),
    "replica": lambda server: _("This Redis is a replica, which takes no jobs. Is the address that of the master?"),
}


def _bytes(number: int | None) -> int:
    return number or 0

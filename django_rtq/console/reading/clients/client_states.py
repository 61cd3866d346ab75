"""One client in one queue: its jobs, its limits, why it may not start a job, and its part of recent runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from django_rtq.console.merging import ALL, ANY, EVERY, FIRST, MOST, ONE, SUM, TOTAL
from django_rtq.console.reading.clients.holds import Holds, holds_text
from django_rtq.limits.limits import ClientPause, Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """A client's part of what ran in the last ten minutes, each from 0 to 1; None: nothing ran.

    Estimated from counters of ten minutes each, to which workers add once a second what they have finished.
    """

    starts: float | None = None  # of the number of runs
    time: float | None = None  # of the time that they took
    #: Its weight among the clients that had work: whose jobs ran, or could start now. None: it had none.
    fair: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """What all clients of a queue have in common."""

    limits: Limits  # of the queue itself
    default: Limits = field(metadata=ALL)  # of each client
    running: int = field(metadata=SUM)  # counted while there are limits
    holds: Holds
    runs: float = field(metadata=SUM)  # of the last ten minutes; an estimate, like Shares
    busy_seconds: float = field(metadata=SUM)  # how long these took


@dataclass(slots=True, kw_only=True)
class ClientInQueue:
    """What one client has in one queue. Those of several queues add up, too."""

    client: str
    queue: str
    queued: int = field(metadata=SUM)  # jobs in its lanes
    #: How long the first of them has been waiting; None: no job waits.
    oldest_seconds: float | None = field(metadata=MOST)
    scheduled: int = field(metadata=SUM)  # jobs that wait for their time, retries included
    running: int | None = field(metadata=TOTAL)  # None: not counted, because the queue has no limits
    own: Limits = field(metadata=ALL)  # the limits of this client
    pause: ClientPause | None = field(metadata=FIRST)
    is_blocked: bool = field(metadata=ANY)  # it has jobs, and waits until it may start one
    holds: Holds  # why it may not start a job
    runs: float = field(metadata=SUM)  # of the last ten minutes
    busy_seconds: float = field(metadata=SUM)  # how long these took
    fair_runs: float = field(metadata=SUM)  # how many would be its own if runs went by weights
    queue_state: QueueState = field(metadata=ONE)
    shards: Sequence[int] = field(default=(), metadata=EVERY)  # that know it
    in_queues: Sequence[ClientInQueue] = ()  # whose sum it is

    @property
    def shares(self) -> Shares:
        """Its parts of what ran."""
        return Shares(
            starts=_part(self.runs, self.queue_state.runs),
            time=_part(self.busy_seconds, self.queue_state.busy_seconds),
            fair=_part(self.fair_runs, self.queue_state.runs) if self.fair_runs else None,
        )

    @property
    def default(self) -> Limits:
        """The limits of each client."""
        return self.queue_state.default

    @property
    def in_force(self) -> Limits:
        """The limits that hold for it: its own come first."""
        return {**self.default, **self.own}

    @property
    def is_known(self) -> bool:
        """Whether it has jobs or limits in this queue, or ran jobs lately."""
        return bool(self.queued or self.scheduled or self.running or self.runs or self.own or self.pause)

    @property
    def reason(self) -> str:
        """Why its jobs do not start, in the language of the user. "" if they do, or if it has none and may."""
        reasons = [holds_text(self.holds)]
        if self.queued and self.queue_state.holds:
            reasons.append(_("the queue: %(reason)s") % {"reason": holds_text(self.queue_state.holds)})
        blocked = _("waits until it may start a job") if self.is_blocked else ""
        return "; ".join(filter(None, reasons)) or blocked

    @property
    def reasons(self) -> list[str]:
        """Queues in which its jobs do not start, and why."""
        return [f"{each.queue}: {each.reason}" for each in self.in_queues if each.reason]


def _part(one: float, of_all: float) -> float | None:
    return min(1.0, one / of_all) if of_all else None

"""One client in one queue: its jobs, its limits, why it may not start a job, and its part of recent runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from django_rtq.console.inspector.clients.holds import NO_HOLDS, Holds, holds_text, read_holds
from django_rtq.console.merging import ANY, FIRST, JOINED, MOST, SUM, TOTAL
from django_rtq.limits.limits import ClientPause, Limits, read_limits, read_pause

_BILLION = 1_000_000_000


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
    default: Limits  # of each client
    running: int  # counted while there are limits
    holds: Holds
    runs: int  # of the last ten minutes; an estimate, like Shares
    busy_seconds: float  # how long these took


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientInQueue:
    """What one client has in one queue."""

    client: str
    queue: str
    queued: int = field(metadata=SUM)  # jobs in its lanes
    #: How long the first of them has been waiting; None: no job waits.
    oldest_seconds: float | None = field(metadata=MOST)
    scheduled: int = field(metadata=SUM)  # jobs that wait for their time, retries included
    running: int | None = field(metadata=TOTAL)  # None: not counted, because the queue has no limits
    own: Limits  # the limits of this client
    pause: ClientPause | None = field(metadata=FIRST)
    is_blocked: bool = field(metadata=ANY)  # it has jobs, and waits until it may start one
    holds: Holds  # why it may not start a job
    shares: Shares
    queue_state: QueueState
    shards: Sequence[int] = field(default=(), metadata=JOINED)  # that know it, if all are read at once

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
        has_jobs = self.queued or self.scheduled or self.running or self.shares.starts
        return bool(has_jobs or self.own or self.pause)

    @property
    def reason(self) -> str:
        """Why its jobs do not start, in the language of the user. "" if they do, or if it has none and may."""
        of_queue = self.queue_state.holds if self.queued else NO_HOLDS
        return reason_text(self.holds, of_queue, is_blocked=self.is_blocked)


def reason_text(holds: Holds, of_queue: Holds, *, is_blocked: bool) -> str:
    """Why the jobs of a client do not start, by what holds it and its queue. "" if nothing does."""
    reasons = [holds_text(holds)]
    if of_queue:
        reasons.append(_("the queue: %(reason)s") % {"reason": holds_text(of_queue)})
    return "; ".join(filter(None, reasons)) or (_("waits until it may start a job") if is_blocked else "")


def read_client_states(queue: str, clients: Sequence[str], reply: Sequence[Any]) -> Iterator[ClientInQueue]:
    """Read the reply of the script `client_states` about these clients."""
    state = read_queue_state(reply)
    for client, values in zip(clients, reply[3:], strict=True):
        yield _read_client(queue, client, reply[0], state, values)


def read_queue_state(reply: Sequence[Any]) -> QueueState:
    """Read what that reply says of the queue."""
    now_ms, texts, (paused, running, starts_at, runs, busy_us) = reply[:3]
    limits, limits_at_run_time, default, default_at_run_time = (text.decode() for text in texts)
    of_queue = read_limits(limits, limits_at_run_time)
    return QueueState(
        limits=of_queue,
        default=read_limits(default, default_at_run_time),
        running=int(running or 0),
        holds=read_holds(now_ms, paused, _at_limit(of_queue, int(running or 0)), starts_at),
        runs=runs,
        busy_seconds=busy_us / 1_000_000,
    )


def _read_client(queue: str, client: str, now_ms: int, state: QueueState, found: Sequence[Any]) -> ClientInQueue:
    queued, since, scheduled, running, own, own_at_run_time, pause, is_blocked, starts_at, *parts = found
    limits = read_limits(own.decode(), own_at_run_time.decode())
    is_counted = running or limits or state.default or state.limits or pause
    at_limit = _at_limit({**state.default, **limits}, int(running or 0))
    return ClientInQueue(
        client=client,
        queue=queue,
        queued=queued,
        oldest_seconds=max(0.0, (now_ms - float(since)) / 1000) if since else None,
        scheduled=scheduled,
        running=int(running or 0) if is_counted else None,
        own=limits,
        pause=read_pause(pause.decode()),
        is_blocked=is_blocked == 1,
        holds=read_holds(now_ms, pause, at_limit, starts_at),
        shares=Shares(**dict(zip(("starts", "time", "fair"), map(_part, parts), strict=True))),
        queue_state=state,
    )


def _at_limit(limits: Limits, running: int) -> int | None:
    """How many jobs it may run, if it runs as many."""
    most = limits.get("max_running")
    return most.value if most is not None and most.value is not None and running >= most.value else None


def _part(billionths: Any) -> float | None:
    return None if billionths == b"" else billionths / _BILLION

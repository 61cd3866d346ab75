"""Limits of a queue and of its clients, and paused clients: reads and changes them.

What is set here is stored in Redis, holds for all workers at once, and wins over RTQ["QUEUES"].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from django_rtq.broker.broker import Broker
from django_rtq.broker.limits import limit_text, read_limit
from django_rtq.broker.redis.commands import Command
from django_rtq.jobs.job import clock_moment

NewLimit: TypeAlias = int | Literal["settings"] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How many jobs may run at once; None: any number."""

    max_running: int | None
    is_from_settings: bool  # and not set at run time


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPause:
    """Since when a client is paused, and who did it; "" if that is not known."""

    since: datetime
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """What one client may run, and what it does run."""

    name: str
    limit: Limit | None  # its own
    pause: ClientPause | None
    running: int  # counted while there are limits
    is_blocked: bool  # it has jobs, and waits until it may start one


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimits:
    """The limits of a queue, and the clients that have one, are paused, run jobs, or are blocked."""

    queue: Limit | None = None
    default: Limit | None = None  # of each client that has no limit of its own
    running: int = 0  # counted while there are limits
    clients: Mapping[str, ClientLimits] = field(default_factory=dict)


class LimitEditor:
    """Reads and changes limits, and pauses clients. Any thread may use it. All methods raise BrokerUnavailable."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._redis, self._keys = broker.redis, broker.keys

    def read(self, queue: str) -> QueueLimits:
        """The limits in force, in one round trip."""
        keys = self._keys.of(queue)
        hashes = [keys.limits, keys.limit_sources, keys.running_counts, keys.blocked]
        replies = self._redis.execute([("HGETALL", key) for key in hashes], resend=True)
        limits, sources, counts, blocked = (
            {name.decode(): text.decode() for name, text in zip(reply[::2], reply[1::2], strict=True)}
            for reply in replies
        )
        clients = {name.partition(":")[2] for name in (*limits, *counts) if ":" in name} | blocked.keys()
        return QueueLimits(
            queue=_limit("queue", limits, sources),
            default=_limit("clients", limits, sources),
            running=int(counts.get("queue", 0)),
            clients={
                name: ClientLimits(
                    name=name,
                    limit=_limit(f"client:{name}", limits, sources),
                    pause=_pause(limits.get(f"paused:{name}")),
                    running=int(counts.get(f"client:{name}", 0)),
                    is_blocked=name in blocked,
                )
                for name in sorted(clients)
            },
        )

    def set_queue(self, queue: str, max_running: NewLimit) -> None:
        """Let at most so many jobs of the queue run at once, on all machines together.

        None: any number. "settings": what RTQ["QUEUES"] says. Raises ValueError.
        """
        self._broker.limits.change(queue, {"run:queue": _new_text(max_running)})

    def set_default(self, queue: str, max_running: NewLimit) -> None:
        """The same for each client that has no limit of its own."""
        self._broker.limits.change(queue, {"run:clients": _new_text(max_running)})

    def set_client(self, queue: str, client: str, max_running: NewLimit) -> None:
        """The same for one client."""
        self._broker.limits.change(queue, {f"run:client:{client}": _new_text(max_running)})

    def pause_client(self, queue: str, client: str, by: str = "") -> bool:
        """Start no more jobs of a client. What it enqueues waits. False: it was paused already."""
        was_paused, (seconds, _) = self._redis.execute([self._is_paused(queue, client), ("TIME",)], resend=True)
        if not was_paused:
            self._broker.limits.change(queue, {f"run:paused:{client}": f"{int(seconds) * 1000} {by}"})
        return not was_paused

    def resume_client(self, queue: str, client: str) -> bool:
        """Start the jobs of a paused client again. False: it was not paused."""
        was_paused = self._redis.execute_one(self._is_paused(queue, client), resend=True)
        self._broker.limits.change(queue, {f"run:paused:{client}": ""})
        return bool(was_paused)

    def _is_paused(self, queue: str, client: str) -> Command:
        return ("HEXISTS", self._keys.of(queue).limits, f"paused:{client}")


def _new_text(max_running: NewLimit) -> str:
    return "" if max_running == "settings" else limit_text(max_running)


def _limit(name: str, limits: Mapping[str, str], sources: Mapping[str, str]) -> Limit | None:
    text = limits.get(name)
    if text is None:
        return None
    return Limit(max_running=read_limit(text), is_from_settings=f"run:{name}" not in sources)


def _pause(text: str | None) -> ClientPause | None:
    if text is None:
        return None
    ms, _, by = text.partition(" ")
    return ClientPause(since=clock_moment(int(ms)), by=by)

"""Limits of a queue and of its clients, and paused clients: reads and changes them.

What is set here is stored in Redis, holds for all workers at once, and wins over RTQ["QUEUES"].
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.redis.commands import Command
from django_rtq.core.jobs.job import clock_moment
from django_rtq.core.validation import did_you_mean
from django_rtq.limits.limit_kinds import LIMIT_KINDS
from django_rtq.limits.store import limit_values


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit in force, and where it comes from."""

    value: Any  # as in RTQ["QUEUES"]; None: no limit
    is_from_settings: bool  # and not set at run time


Limits: TypeAlias = Mapping[str, Limit]  # by name, like "max_running"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPause:
    """Since when a client is paused, and who did it; "" if that is not known."""

    since: datetime
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """What one client may run, and what it does run."""

    name: str
    limits: Limits  # its own
    pause: ClientPause | None
    running: int  # counted while there are limits
    is_blocked: bool  # it has jobs, and waits until it may start one
    starts_in_seconds: float | None  # until it may, if only its rate stops it


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimits:
    """The limits of a queue, and the clients that have one, are paused, run jobs, or are blocked."""

    queue: Limits = field(default_factory=dict)
    default: Limits = field(default_factory=dict)  # of each client, where it has none of its own
    running: int = 0  # counted while there are limits
    starts_in_seconds: float | None = None  # until it may start a job, if only its rate stops it
    clients: Mapping[str, ClientLimits] = field(default_factory=dict)


class LimitReader:
    """Reads limits. Any thread may use it. Raises BrokerUnavailable."""

    def __init__(self, broker: Broker) -> None:
        self._redis, self._keys = broker.redis, broker.keys

    def read(self, queue: str) -> QueueLimits:
        """The limits in force, in one round trip."""
        keys = self._keys.of(queue)
        hashes = [keys.limits, keys.limit_sources, keys.running_counts, keys.blocked]
        commands: list[Command] = [("HGETALL", key) for key in hashes]
        starts = ("ZRANGE", keys.next_starts, 0, -1, "WITHSCORES")
        *replies, next_starts, (seconds, micros) = self._redis.execute([*commands, starts, ("TIME",)], resend=True)
        waits = _waits(next_starts, int(seconds) * 1000 + int(micros) // 1000)
        limits, sources, counts, blocked = (
            {name.decode(): text.decode() for name, text in zip(reply[::2], reply[1::2], strict=True)}
            for reply in replies
        )
        clients = {name.partition(":")[2] for name in (*limits, *counts) if ":" in name} | blocked.keys()
        return QueueLimits(
            queue=_limits("queue", limits, sources),
            default=_limits("clients", limits, sources),
            running=int(counts.get("queue", 0)),
            starts_in_seconds=waits.get("queue"),
            clients={
                name: ClientLimits(
                    name=name,
                    limits=_limits(f"client:{name}", limits, sources),
                    pause=read_pause(limits.get(f"paused:{name}", "")),
                    running=int(counts.get(f"client:{name}", 0)),
                    is_blocked=name in blocked,
                    starts_in_seconds=waits.get(f"client:{name}"),
                )
                for name in sorted(clients)
            },
        )


def limits_text(known: Collection[str], limits: Mapping[str, Any]) -> str:
    """The limits as they are stored. Raises ValueError for one that is not known here, or a wrong value."""
    if not limits:
        raise ValueError(f"Which limit? Give at least one of: {', '.join(known)}.")
    for name in limits:
        if name not in known:
            hint = did_you_mean(name, known, otherwise=f" Known are: {', '.join(known)}.")
            raise ValueError(f"{name!r} is not a limit here.{hint}")
    return " ".join(
        f"{name}=" if value == "settings" else LIMIT_KINDS[name].text(value) for name, value in limits.items()
    )


def read_limits(text: str, at_run_time: str) -> Limits:
    """The limits in a stored text, and those of them that were set at run time."""
    set_names, values = limit_values(at_run_time), limit_values(text)
    return {
        name: Limit(
            value=None if value == "none" else LIMIT_KINDS[name].decode(value),
            is_from_settings=name not in set_names,
        )
        for name, value in values.items()
        if name in LIMIT_KINDS  # a later version may have stored others
    }


def _waits(next_starts: Sequence[bytes], now_ms: int) -> dict[str, float]:
    """Seconds until those members may start a job."""
    pairs = zip(next_starts[::2], next_starts[1::2], strict=True)
    return {member.decode(): max(0.0, (float(due) - now_ms) / 1000) for member, due in pairs}


def _limits(field_name: str, limits: Mapping[str, str], sources: Mapping[str, str]) -> Limits:
    return read_limits(limits.get(field_name, ""), sources.get(f"run:{field_name}", ""))


def read_pause(text: str) -> ClientPause | None:
    """A stored pause; "" is none."""
    if not text:
        return None
    ms, _, by = text.partition(" ")
    return ClientPause(since=clock_moment(int(ms)), by=by)

"""The Broker: a method for each verb of a job's life that a program does.

Every method may be repeated when its answer got lost; see the header of each script for what happens then.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from django.core.signals import setting_changed
from django.dispatch import receiver

from django_rtq.broker.keys import Keys
from django_rtq.broker.new_job import NewJob, UniqueJob
from django_rtq.broker.notes import note_commands
from django_rtq.broker.recipe import read_recipe
from django_rtq.broker.schedule_state import ScheduleState, read_states
from django_rtq.broker.scripts import SCRIPTS, Argument, Command
from django_rtq.broker.settlement import Settlement
from django_rtq.broker.wire import Wire
from django_rtq.conf import Config, get_config
from django_rtq.exceptions import BrokerError, BrokerUnavailable

ENQUEUE_AT_ONCE = 500  # jobs of one script call
PACKET = 8  # script calls of one round trip: Redis works on the first while the others are on their way
MAINTAIN_AT_ONCE = 100  # jobs of others, or lanes, that one call of a sweep touches


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """The jobs of one queue that a claim brought."""

    queue: str
    status: str  # ok, paused, unknown (sign on first), suspect (one that has crashed a worker comes next)
    now_ms: int  # the server's time of the claim
    ids: list[bytes]
    records: list[bytes]
    counts: dict[int, tuple[int, int]]  # place -> failures, crashes, where there are any


@dataclass(slots=True, kw_only=True)
class Fetched:
    """The answer to a settlement with a claim."""

    claimed: list[Claimed] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)  # settled, but no longer this worker's
    error: BrokerError | None = None  # something was refused; what could not be settled is still in the settlement


class Broker:
    """The verbs of a job's life. Any thread may use it; after a fork, make a new one."""

    def __init__(self, config: Config, *, role: str = "client") -> None:
        self.config = config
        self.recipe = read_recipe(config)
        self.keys = Keys(config.prefix)
        self.wire = Wire(self.recipe.command_pool(role=role))
        self._announced: set[str] = set()

    def close(self) -> None:
        """Close all connections. It may be used again."""
        self.wire.close()

    # -- by whoever has work to be done

    def enqueue(self, queue: str, jobs: Sequence[NewJob]) -> list[str]:
        """Take in jobs: "ok", or "exists" for a known id (G8). Raises BrokerUnavailable, BrokerFull."""
        return self._take_in(queue, "enqueue", jobs, ENQUEUE_AT_ONCE)

    def enqueue_unique(self, queue: str, jobs: Sequence[UniqueJob]) -> list[str]:
        """Take in jobs of which no second like them may live (G9): "ok", "exists", "duplicate <id>", "after <id>"."""
        return self._take_in(queue, "enqueue_unique", jobs, MAINTAIN_AT_ONCE)

    def _take_in(self, queue: str, script: str, jobs: Sequence[NewJob | UniqueJob], at_once: int) -> list[str]:
        if queue not in self._announced:
            self.announce([queue])
        head = SCRIPTS[script].head(self.keys.of(queue))
        if len(jobs) == 1:
            return [answer.decode() for answer in self.wire.one((*head, *jobs[0]), resend=True)]
        answers: list[str] = []
        for start in range(0, len(jobs), PACKET * at_once):
            packet = jobs[start : start + PACKET * at_once]
            parts = [packet[i : i + at_once] for i in range(0, len(packet), at_once)]
            commands = [(*head, *(value for job in part for value in job)) for part in parts]
            answers += [a.decode() for reply in self.wire.all(commands, resend=True) for a in reply]
        return answers

    def announce(self, queues: Iterable[str]) -> None:
        """Say that these queues exist, so that people see them."""
        names = list(queues)
        self.wire.one(("SADD", self.keys.queues, *names), resend=True)
        self._announced.update(names)

    # -- by workers

    def sign_on(self, queues: Iterable[str], worker: str) -> None:
        """Begin to take part under a name that was never used before (rule 5)."""
        self._on_each(queues, "sign_on", (self._lease_ms, worker))

    def sign_off(self, queues: Iterable[str], worker: str) -> bool:
        """Leave; False while jobs are written down for the worker."""
        return b"busy" not in self._on_each(queues, "sign_off", (worker,), worker=worker)

    def fetch(
        self,
        worker: str,
        settlements: Mapping[str, Settlement],
        queues: Sequence[str],
        *,
        wanted: int,
        idle: bool = True,
    ) -> Fetched:
        """Settle what is done and claim up to `wanted` jobs from the first queues that have any, in one round trip.

        What was settled is removed from `settlements`. Raises BrokerUnavailable when there was no answer: then
        jobs may have been settled, and jobs may have been claimed that the worker does not know of.
        """
        parts: list[tuple[str, str]] = []
        commands: list[Command] = []
        for queue, settlement in settlements.items():
            keys = self.keys.of(queue)
            for verb, command in settlement.commands(keys, worker, max_results=self.config.max_results):
                parts.append((queue, verb))
                commands.append(command)
        if wanted:
            commands.append(self.claim_command(worker, queues, wanted, idle=idle))
        replies = self.wire.run(commands)
        fetched = Fetched()
        answered = list(zip(parts, replies, strict=False))
        refused = {part for part, reply in answered if isinstance(reply, BrokerError)}
        for part, reply in answered:
            if isinstance(reply, BrokerError):
                fetched.error = reply
                continue
            fetched.stale += [job_id.decode() for job_id in reply]
            if part not in refused:  # else another call of the same verb has to be sent again
                getattr(settlements[part[0]], part[1]).clear()
        for queue, _ in parts:
            settlements[queue].run_ms = settlements[queue].wait_ms = 0
        if wanted:
            self.read_claim(fetched, queues, replies[-1])
        return fetched

    def claim(self, worker: str, queues: Sequence[str], wanted: int, *, idle: bool = True) -> list[Claimed]:
        """Give a worker the next jobs. Raises BrokerError."""
        fetched = self.fetch(worker, {}, queues, wanted=wanted, idle=idle)
        if fetched.error:
            raise fetched.error
        return fetched.claimed

    def settle(self, worker: str, queue: str, settlement: Settlement) -> list[str]:
        """Ack, retry, bury, release, expire. Returns the ids that were no longer this worker's (G4)."""
        fetched = self.fetch(worker, {queue: settlement}, (), wanted=0)
        if fetched.error:
            raise fetched.error
        return fetched.stale

    def running(self, worker: str, queues: Iterable[str]) -> dict[str, list[bytes]]:
        """What Redis has written down for a worker: after a lost reply it may be more than the worker knows of."""
        names = list(queues)
        replies = self.wire.all([("HKEYS", self.keys.of(name).running(worker)) for name in names], resend=True)
        return dict(zip(names, replies, strict=True))

    # -- by supervisors and schedulers

    def begin(self, queue: str, name: str, definition: str, now_ms: int) -> bool:
        """Count the slots of a schedule from now on. False: somebody has begun with this definition before."""
        return self._on_each([queue], "begin", (name, definition, now_ms)) == [b"begun"]

    def fire(self, queue: str, name: str, slot_ms: int, job: NewJob | UniqueJob, *, may_overlap: bool = True) -> str:
        """Start a periodic job for one slot of a schedule.

        Returns "fired", or why not: "already", "overlap" (the last job lives), "duplicate <id>" (that one holds its
        digest), "unknown" (it has not begun).
        """
        overlap = "allow" if may_overlap else "skip"
        unique = job[8:11] or ("", "", 0)
        of_job = (job.id, *job[1:4], job.expires, job.body, *unique)
        (reply,) = self._on_each([queue], "fire", (name, slot_ms, overlap, *of_job))
        return str(reply.decode())

    def schedules(self, queues: Sequence[str]) -> tuple[int, dict[str, dict[str, ScheduleState]]]:
        """The server's time in ms, and what is known of the schedules of each queue, by name."""
        commands: list[Command] = [("TIME",), *(("HGETALL", self.keys.of(queue).schedules) for queue in queues)]
        (seconds, micros), *replies = self.wire.all(commands, resend=True)
        states = dict(zip(queues, map(read_states, replies), strict=True))
        return int(seconds) * 1000 + int(micros) // 1000, states

    def drop_schedules(self, queue: str, names: Sequence[str]) -> None:
        """Forget schedules. One that is declared after all begins anew."""
        self.wire.one(("HDEL", self.keys.of(queue).schedules, *names), resend=True)

    def renew(self, queues: Sequence[str], workers: Sequence[str]) -> tuple[float | None, set[str]]:
        """Move the deadline of workers.

        Returns the seconds until the earliest lease of anybody ends (None: there is none), and the unknown workers.
        """
        replies = self._on_each(queues, "renew", (self._lease_ms, *workers))
        return _earliest(replies), {name.decode() for _, names in replies for name in names}

    def beat(
        self,
        queues: Sequence[str],
        notes: Mapping[str, Mapping[str, Argument]],
        audited: dict[str, int],
        *,
        promote: bool,
    ) -> tuple[float | None, dict[str, list[str]]]:
        """All that a supervisor does each few seconds, in one round trip.

        Renews its workers, writes notes on them for people, audits some lanes (`audited` says where to go on), and
        promotes what is due, in case the one who was told of it is dead. Returns the seconds until the earliest
        lease of anybody ends (None: there is none), and what was promoted.
        """
        of_all: dict[str, Sequence[Argument]] = {"renew": (self._lease_ms, *notes)}
        if promote:
            of_all["promote"] = (MAINTAIN_AT_ONCE,)
        commands = [SCRIPTS[name].call(self.keys.of(q), args) for name, args in of_all.items() for q in queues]
        commands += [SCRIPTS["audit"].call(self.keys.of(q), (audited[q], MAINTAIN_AT_ONCE)) for q in queues]
        commands += note_commands(self.keys, notes, 4 * self._lease_ms)
        commands.append(("SADD", self.keys.queues, *queues))
        replies = iter(self.wire.run(commands, resend=True))  # a full server refuses the notes, but no script
        renewed = [_sound(next(replies)) for _ in queues]
        promoted = {q: [job_id.decode() for job_id in _sound(next(replies))[1:]] for q in queues} if promote else {}
        audited.update({q: int(_sound(next(replies))) for q in queues})
        return _earliest(renewed), promoted

    def reclaim(self, queue: str, *, limit: int = MAINTAIN_AT_ONCE) -> tuple[float | None, list[tuple[str, str]]]:
        """Take back jobs of workers whose lease ran out.

        Returns the seconds until there may be more to do (None: no worker is left), and (id, "queued" or "dead") pairs.
        """
        (reply,) = self._on_each([queue], "reclaim", (self._lease_ms, limit))
        return _earliest([reply]), _pairs(reply[1:])

    def reclaim_child(self, queue: str, worker: str, guilty: Iterable[str]) -> list[tuple[str, str]]:
        """Take back the jobs of a worker that was seen to die; only the guilty ones count a crash (G5)."""
        (reply,) = self._on_each([queue], "reclaim_child", (worker, *guilty))
        return _pairs(reply)

    def promote(self, queue: str, *, limit: int = MAINTAIN_AT_ONCE) -> tuple[float | None, list[str]]:
        """Queue what is due. Returns the seconds until the next is (None: nothing is scheduled), and the ids."""
        seconds, promoted = self.promote_all([queue], limit=limit)
        return seconds, promoted[queue]

    def promote_all(
        self, queues: Sequence[str], *, limit: int = MAINTAIN_AT_ONCE
    ) -> tuple[float | None, dict[str, list[str]]]:
        """promote() for several queues in one round trip; the seconds are those until the next of any."""
        replies = self._on_each(queues, "promote", (limit,))
        ids = [[job_id.decode() for job_id in reply[1:]] for reply in replies]
        return _earliest(replies), dict(zip(queues, ids, strict=True))

    def trim(self, queue: str) -> int:
        """Forget some of what was kept long enough. Returns how much; call it again while that is not 0."""
        return self.trim_all([queue])[0]

    def trim_all(self, queues: Sequence[str]) -> list[int]:
        """trim() for several queues in one round trip."""
        config = self.config
        dead_ms = int(config.dead_days * 86_400_000)
        replies = self._on_each(queues, "trim", (config.max_dead, dead_ms, MAINTAIN_AT_ONCE))
        return [sum(reply) for reply in replies]

    def audit(self, queue: str, start: int = 0) -> int:
        """Put some lanes right that a torn log has bent. Returns where to go on; 0: all were seen."""
        (reply,) = self._on_each([queue], "audit", (start, MAINTAIN_AT_ONCE))
        return int(reply)

    # -- inside

    @property
    def _lease_ms(self) -> int:
        return int(self.config.lease_seconds * 1000)

    def _on_each(
        self, queues: Iterable[str], name: str, arguments: Sequence[Argument], *, worker: str = ""
    ) -> list[Any]:
        script = SCRIPTS[name]
        commands = [script.call(self.keys.of(queue), arguments, worker=worker) for queue in queues]
        return self.wire.all(commands, resend=True)

    def claim_command(self, worker: str, queues: Sequence[str], wanted: int, *, idle: bool = True) -> Command:
        """The command that claims, for a Waiter that sends it together with its wait."""
        keys = [self.keys.of(queue) for queue in queues]
        return SCRIPTS["claim"].call_many(keys, (worker, wanted, "1" if idle else "0"), worker=worker)

    @staticmethod
    def read_claim(fetched: Fetched, queues: Sequence[str], reply: Any) -> None:
        """Add the answer to a claim to what was fetched."""
        if isinstance(reply, BrokerError):
            fetched.error = reply
            return
        for queue, (status, now_ms, ids, records, counts) in zip(queues, reply, strict=False):
            fetched.claimed.append(
                Claimed(
                    queue=queue,
                    status=status.decode(),
                    now_ms=now_ms,
                    ids=ids,
                    records=records,
                    counts={counts[i]: (counts[i + 1], counts[i + 2]) for i in range(0, len(counts), 3)},
                )
            )


def _sound(reply: Any) -> Any:
    if isinstance(reply, BrokerError):
        raise reply
    return reply


def _earliest(replies: Iterable[Sequence[Any]]) -> float | None:
    """The least of the milliseconds that begin each reply, in seconds; -1 stands for never."""
    return min((reply[0] / 1000 for reply in replies if reply[0] >= 0), default=None)


def _pairs(flat: Sequence[bytes]) -> list[tuple[str, str]]:
    return [(flat[i].decode(), flat[i + 1].decode()) for i in range(0, len(flat), 2)]


@lru_cache(maxsize=1)
def get_broker() -> Broker:
    """The broker of this process, for whoever enqueues. Raises ConfigurationError."""
    return Broker(get_config())


# A fork may come while another thread holds the lock of the pool: the child makes a broker of its own.
os.register_at_fork(after_in_child=get_broker.cache_clear)


@receiver(setting_changed)
def forget_broker(*, setting: str, **kwargs: object) -> None:
    """Tests that override the settings get what they set."""
    if setting in ("RTQ", "CACHES", "DEBUG"):
        get_broker.cache_clear()


__all__ = ["Broker", "BrokerUnavailable", "Claimed", "Fetched", "NewJob", "UniqueJob", "get_broker"]

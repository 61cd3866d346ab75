"""The Broker: a method for each verb of a job's life that a program does.

Every method may be repeated when its answer got lost; see the header of each script for what happens then.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from django.core.signals import setting_changed
from django.dispatch import receiver

from django_rtq.broker.keys import Keys
from django_rtq.broker.maintenance import MAINTAIN_AT_ONCE, Maintenance, earliest
from django_rtq.broker.messages import CancelRequest, NewJob, UniqueJob, read_cancel_requests
from django_rtq.broker.redis.client import RedisClient
from django_rtq.broker.redis.server_info import refuse_mode
from django_rtq.broker.redis.settings import read_connection_settings
from django_rtq.broker.schedule_store import ScheduleStore
from django_rtq.broker.scripts import AT_ONCE, SCRIPTS, Argument, Command, read_all
from django_rtq.broker.settlement import Settlement
from django_rtq.broker.worker_info import note_commands
from django_rtq.conf import Config, get_config
from django_rtq.exceptions import BrokerError, BrokerUnavailable
from django_rtq.jobs.job import Job
from django_rtq.jobs.record import read_record

ENQUEUE_AT_ONCE = 500  # jobs of one script call
RECLAIM_AT_ONCE = 50  # jobs of one call: each is moved by itself, which takes longer than most
PACKET = 8  # script calls of one round trip: Redis works on the first while the others are on their way


class Claimed(NamedTuple):
    """The jobs of one queue that a claim brought."""

    queue: str
    #: ok; paused; unknown (sign on first); suspect (these have crashed a worker, or the next one has); more (it stopped
    #: at a great many cancelled jobs: ask again at once)
    status: str
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
    found: int = 0  # jobs that were claimed
    statuses: set[str] = field(default_factory=set)  # of the queues that were asked


class Broker(Maintenance):
    """The verbs of a job's life. Any thread may use it; after a fork, make a new one."""

    def __init__(self, config: Config, *, role: str = "client") -> None:
        self.config = config
        self.connection_settings = read_connection_settings(config)
        if role == "client":  # a request must not wait for as long as a worker may
            self.connection_settings = replace(
                self.connection_settings,
                socket_timeout=config.socket_timeout,
                connect_timeout=config.socket_connect_timeout,
            )
        else:
            read_all()  # an upgrade may replace the files while this process runs
        self.keys = Keys(config.prefix)
        self.redis = RedisClient(self.connection_settings.command_pool(role=role))
        self.plan = ScheduleStore(self.redis, self.keys)
        self._announced: set[str] = set()

    def close(self) -> None:
        """Close all connections. It may be used again."""
        self.redis.close()

    # -- by whoever has work to be done

    def enqueue(self, queue: str, jobs: Sequence[NewJob]) -> list[str]:
        """Take in jobs: "ok", or "exists" for a known id (G8). Raises BrokerUnavailable, BrokerFull."""
        verb = "enqueue" if len(jobs) == 1 else "enqueue_many"
        return self._take_in(queue, verb, jobs, AT_ONCE)

    def enqueue_unique(self, queue: str, jobs: Sequence[UniqueJob]) -> list[str]:
        """Take in jobs of which no second like them may live (G9): "ok", "exists", "duplicate <id>", "after <id>"."""
        return self._take_in(queue, "enqueue_unique", jobs, MAINTAIN_AT_ONCE)

    def _take_in(self, queue: str, script: str, jobs: Sequence[NewJob | UniqueJob], at_once: int) -> list[str]:
        if queue not in self._announced:
            self.announce([queue])
        verb, keys = SCRIPTS[script], self.keys.of(queue)
        if len(jobs) == 1:
            return [answer.decode() for answer in self.redis.execute_one(verb.packed_call(keys, jobs[0]), resend=True)]
        answers: list[str] = []
        for start in range(0, len(jobs), PACKET * at_once):
            packet = jobs[start : start + PACKET * at_once]
            parts = [packet[i : i + at_once] for i in range(0, len(packet), at_once)]
            commands = [verb.call(keys, chain.from_iterable(part)) for part in parts]
            answers += [a.decode() for reply in self.redis.execute(commands, resend=True) for a in reply]
        return answers

    def announce(self, queues: Iterable[str]) -> None:
        """Say that these queues exist, so that people see them. Raises ConfigurationError for a Redis Cluster."""
        names = list(queues)
        hello, added = self.redis.execute_each([("HELLO",), ("SADD", self.keys.queues, *names)], resend=True)
        refuse_mode(hello)
        _sound(added)
        self._announced.update(names)

    # -- by workers

    def sign_on(self, queues: Iterable[str], worker: str) -> None:
        """Begin to take part under a name that was never used before (rule 5)."""
        self._on_each(queues, "sign_on", (self.lease_ms, worker))

    def sign_off(self, queues: Iterable[str], worker: str) -> bool:
        """Leave; False while jobs are written down for the worker."""
        return b"busy" not in self._on_each(queues, "sign_off", (worker,), worker=worker)

    def fetch(
        self, worker: str, settlements: Mapping[str, Settlement], queues: Sequence[str], *, wanted: int, idle: int = 1
    ) -> Fetched:
        """Settle what is done and claim jobs from the first queues that have any, in one round trip.

        Up to `wanted` jobs, and AT_ONCE at the most. `idle` is the number of slots while no job runs in them, else 0:
        jobs that have crashed a worker run apart from others (D47). What was settled is removed from `settlements`.
        Raises BrokerUnavailable when there was no answer: then jobs may have been settled, and jobs may have been
        claimed that the worker does not know of.
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
        replies = self.redis.execute_each(commands)
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

    def claim(self, worker: str, queues: Sequence[str], wanted: int, *, idle: int = 1) -> list[Claimed]:
        """Give a worker the next jobs. Raises BrokerError."""
        fetched = self.fetch(worker, {}, queues, wanted=wanted, idle=idle)
        if fetched.error:
            raise fetched.error
        return fetched.claimed

    def settle(self, worker: str, queue: str, settlement: Settlement) -> list[str]:
        """Ack, retry, bury, release, expire, stop. Returns the ids that were no longer this worker's (G4)."""
        fetched = self.fetch(worker, {queue: settlement}, (), wanted=0)
        if fetched.error:
            raise fetched.error
        return fetched.stale

    def report_progress(self, worker: str, reports: Iterable[tuple[str, str, str]]) -> None:
        """Store the progress that jobs of a worker report: queue, id and JSON each. Jobs that it no longer holds are
        left alone (G4). Raises BrokerUnavailable. What a server refuses, because it is full, is not stored.
        """
        script = SCRIPTS["report_progress"]
        calls = [script.call(self.keys.of(queue), (job_id, line), worker=worker) for queue, job_id, line in reports]
        self.redis.execute_each(calls, resend=True)

    def running(self, worker: str, queues: Iterable[str]) -> dict[str, list[bytes]]:
        """What Redis has written down for a worker: after a lost reply it may be more than the worker knows of."""
        names = list(queues)
        replies = self.redis.execute([("HKEYS", self.keys.of(name).running(worker)) for name in names], resend=True)
        return dict(zip(names, replies, strict=True))

    def errors(self, queue: str, job_id: bytes) -> bytes:
        """The last failures of a job, one JSON a line."""
        return self.redis.execute_one(("HGET", self.keys.of(queue).errors, job_id), resend=True) or b""

    # -- by supervisors and schedulers

    def attempts(self, worker: str, queues: Sequence[str]) -> dict[str, dict[bytes, int]]:
        """What Redis has written down for a worker: by queue each job and the number of its run."""
        replies = self.redis.execute([("HGETALL", self.keys.of(name).running(worker)) for name in queues], resend=True)
        found = [zip(reply[::2], reply[1::2], strict=True) for reply in replies]
        return {
            name: {job_id: int(held.split(b" ")[0]) for job_id, held in pairs}
            for name, pairs in zip(queues, found, strict=True)
        }

    def find_running(self, worker: str, queues: Sequence[str], job_id: str) -> Job | None:
        """The job of that id that a worker holds; None if it holds none. Raises PayloadError or ValueError for a record
        that cannot be read."""
        for queue, attempts in self.attempts(worker, queues).items():
            if job_id.encode() in attempts:
                keys = self.keys.of(queue)
                asked: list[Command] = [("HGET", key, job_id) for key in (keys.jobs, keys.failures, keys.crashes)]
                record, failures, crashes = self.redis.execute(asked, resend=True)
                return read_record(job_id, queue, record or b"", failures=int(failures or 0), crashes=int(crashes or 0))
        return None

    def renew(self, queues: Sequence[str], workers: Sequence[str]) -> tuple[float | None, set[str]]:
        """Move the deadline of workers.

        Returns the seconds until the earliest lease of anybody ends (None: there is none), and the unknown workers.
        """
        replies = self._on_each(queues, "renew", (self.lease_ms, *workers))
        return earliest(replies), {name.decode() for _, names, _ in replies for name in names}

    def heartbeat(
        self,
        queues: Sequence[str],
        notes: Mapping[str, Mapping[str, Argument]],
        audited: dict[str, int],
        *,
        promote: bool,
    ) -> tuple[float | None, dict[str, list[str]], list[CancelRequest]]:
        """All that a supervisor does each few seconds, in one round trip.

        Renews its workers, writes notes on them for people, audits some lanes (`audited` says where to go on), looks
        for news of the plan, and promotes what is due, in case the one who was told of it is dead. Returns the seconds
        until the earliest lease of anybody ends (None: there is none), what was promoted, and which jobs of these
        workers are to stop.
        """
        commands = [SCRIPTS["renew"].call(self.keys.of(q), (self.lease_ms, *notes)) for q in queues]
        if promote:
            commands += [self.promote_command(q, MAINTAIN_AT_ONCE) for q in queues]
        commands += [SCRIPTS["repair_lanes"].call(self.keys.of(q), (audited[q], MAINTAIN_AT_ONCE)) for q in queues]
        commands += note_commands(self.keys, notes, 4 * self.lease_ms)
        commands += [("SADD", self.keys.queues, *queues), self.plan.ask_for_version]
        *answers, version = self.redis.execute_each(
            commands, resend=True
        )  # a full server refuses the notes, but no script
        replies = iter(answers)
        renewed = [_sound(next(replies)) for _ in queues]
        promoted = {q: [job_id.decode() for job_id in _sound(next(replies))[1:]] for q in queues} if promote else {}
        audited.update({q: int(_sound(next(replies))) for q in queues})
        self.plan.notice(_sound(version))
        return earliest(renewed), promoted, read_cancel_requests(renewed)

    def reclaim(self, queue: str, *, limit: int = RECLAIM_AT_ONCE) -> tuple[float | None, list[tuple[str, str]]]:
        """Take back jobs of workers whose lease ran out.

        Returns the seconds until there may be more to do (None: no worker is left), and (id, where to) pairs.
        """
        (reply,) = self._on_each([queue], "reclaim", (self.lease_ms, limit))
        return earliest([reply]), _pairs(reply[1:])

    def reclaim_child(self, queue: str, worker: str, guilty: Iterable[str]) -> list[tuple[str, str]]:
        """Take back the jobs of a worker that was seen to die; only the guilty ones count a crash (G5)."""
        taken: list[tuple[str, str]] = []
        arguments: tuple[Argument, ...] = (worker, AT_ONCE, *guilty)
        while True:
            ((left, *pairs),) = self._on_each([queue], "reclaim_child", arguments)
            taken += _pairs(pairs)
            if not left:
                return taken

    def audit(self, queue: str, start: int = 0) -> int:
        """Put some lanes and workers right that a torn log has bent. Returns where to go on; 0: all were seen."""
        (reply,) = self._on_each([queue], "repair_lanes", (start, MAINTAIN_AT_ONCE))
        return int(reply)

    # -- inside

    @property
    def lease_ms(self) -> int:
        """How long a worker may be silent."""
        return int(self.config.lease_seconds * 1000)

    def claim_command(self, worker: str, queues: Sequence[str], wanted: int, *, idle: int = 1) -> Command:
        """The command that claims, for a BlockingReader that sends it together with its wait."""
        keys = [self.keys.of(queue) for queue in queues]
        return SCRIPTS["claim"].call_many(keys, (worker, min(wanted, AT_ONCE), int(idle)), worker=worker)

    @staticmethod
    def read_claim(fetched: Fetched, queues: Sequence[str], reply: Any) -> None:
        """Add the answer to a claim to what was fetched."""
        if isinstance(reply, BrokerError):
            fetched.error = reply
            return
        for queue, (status, now_ms, ids, records, counts) in zip(queues, reply, strict=False):
            text = status.decode()
            tried = {counts[i]: (counts[i + 1], counts[i + 2]) for i in range(0, len(counts), 3)} if counts else {}
            fetched.claimed.append(Claimed(queue, text, now_ms, ids, records, tried))
            fetched.found += len(ids)
            fetched.statuses.add(text)


def _sound(reply: Any) -> Any:
    if isinstance(reply, BrokerError):
        raise reply
    return reply


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


__all__ = [
    "MAINTAIN_AT_ONCE",
    "Broker",
    "BrokerUnavailable",
    "Claimed",
    "Fetched",
    "NewJob",
    "UniqueJob",
    "get_broker",
]

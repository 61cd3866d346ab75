"""Workflows in Redis: stores them, starts the jobs of their steps, and tells them which members have ended.

A workflow has an id of 12 hexadecimal digits. Its jobs, the members, are numbered: the id of a job names the workflow
and the number, so nothing else is stored for one (D138). Whatever ends a member notes that in its queue
(`ended_members`); `advance_workflow` takes the notes, and says what starts. Who settles members sends it in the same
packet; what is left behind, as after a crash, is found by the next heartbeat.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django_rtq import signals
from django_rtq.broker.keys import Keys
from django_rtq.broker.redis.client import BlockingClient, RedisClient
from django_rtq.broker.redis.commands import Argument, Command, checked
from django_rtq.broker.scripts import AT_ONCE, SCRIPTS
from django_rtq.conf.config import Config
from django_rtq.exceptions import BrokerError

logger = logging.getLogger("django_rtq")

PARTS_IN_FLIGHT = 8  # calls of start_members in one packet
NOTES_AT_ONCE = 500  # of one queue that a heartbeat looks at
UNFINISHED_MS = 60_000  # without another part; then a workflow that is not whole is forgotten
STALLED_MS = 2_000  # after that, parts that nobody has started are started by a heartbeat
MEMBER = 0x38  # "8", the version of the UUIDs of members
_HEX = 16


class Part(NamedTuple):
    """A part of a step whose members are to be enqueued."""

    workflow: str
    name: str  # "step:place of its first member"
    queue: str


class Advance(NamedTuple):
    """What a call of advance_workflow has to say."""

    workflow: str
    name: str
    news: str  # "ended", "blocked", "cancel", "missing", or ""
    parts: list[Part]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWorkflow:
    """A workflow to store: fields, and parts with the calls of their members, as store_workflow.lua has them."""

    id: str
    key: str
    fields: Mapping[str, Argument]
    parts: Sequence[tuple[str, str]]


def new_workflow_id() -> str:
    """A new id: 48 random bits."""
    return secrets.token_hex(6)


def is_member(job_id: bytes) -> bool:
    """Whether a job belongs to a workflow."""
    return job_id[12:13] == b"8"


def keeps_result(job_id: bytes) -> bool:
    """Whether other steps take the result of this member."""
    return job_id[12:13] == b"8" and job_id[16:17] == b"9"


def workflow_of(job_id: str) -> str:
    """The id of the workflow of a member; "" for other jobs."""
    return job_id[13:16] + job_id[17:26] if len(job_id) == 32 and job_id[12] == "8" else ""


def member_id(workflow: str, started_ms: int, number: int, *, keeps: bool) -> str:
    """The id of a member, as start_members.lua makes it."""
    return f"{started_ms:012x}8{workflow[:3]}{'9' if keeps else '8'}{workflow[3:]}{number:06x}"


class WorkflowStore:
    """Changes and reads workflows in Redis. Any thread may use it."""

    def __init__(self, redis: RedisClient, keys: Keys, config: Config) -> None:
        self._redis, self._keys, self._config = redis, keys, config

    @property
    def _home(self) -> Any:
        return self._keys.of(self._config.default_queue)

    # -- making

    def store(
        self, flow: NewWorkflow, register_queues: Callable[[Iterable[str]], None] | None = None
    ) -> tuple[str, str, list[Part]]:
        """Store a workflow, and begin it. Returns "ok", its state and the parts to start; or "duplicate" and the id of
        the workflow with that key, or "taken". Raises BrokerError: then it may have begun."""
        if register_queues:
            register_queues({str(queue) for name, queue in flow.fields.items() if name.startswith("queue:")})
        script, token = SCRIPTS["store_workflow"], secrets.token_hex(8)
        fields: list[Argument] = [text for pair in flow.fields.items() for text in pair]
        calls = list(_packets(flow.parts))
        commands = []
        for number, parts in enumerate(calls):
            pairs = [] if number else fields
            is_last = "1" if number == len(calls) - 1 else ""
            arguments = (flow.id, token, is_last, flow.key, len(pairs), *pairs, *parts)
            commands.append(script.call(self._home, arguments))
        for start in range(0, len(commands), PARTS_IN_FLIGHT):
            replies = self._redis.execute(commands[start : start + PARTS_IN_FLIGHT], resend=True)
            for reply in replies:
                if reply[0] != b"ok":
                    return reply[0].decode(), reply[1].decode() if len(reply) > 1 else "", []
        return "ok", replies[-1][1].decode(), _parts(flow.id, replies[-1][2:])

    def start(self, parts: Iterable[Part]) -> None:
        """Enqueue the members of these parts, and of those that follow them. Raises BrokerError."""
        waiting = list(dict.fromkeys(parts))
        while waiting:
            now, waiting = waiting[:PARTS_IN_FLIGHT], waiting[PARTS_IN_FLIGHT:]
            flows = {part.workflow for part in now} - {part.workflow for part in waiting}
            commands = [self._start_command(part) for part in now]
            commands += [self.advance_command(flow, self._config.default_queue, ()) for flow in flows]
            replies = self._redis.execute(commands, resend=True)
            for flow, reply in zip(flows, replies[len(now) :], strict=True):
                waiting += read_advance(flow, reply).parts

    def _start_command(self, part: Part) -> Command:
        queues = [self._home, self._keys.of(part.queue)]
        return SCRIPTS["start_members"].call_many(queues, (part.workflow, part.name))

    # -- going on

    def advance_command(self, workflow: str, queue: str, job_ids: Sequence[Argument]) -> Command:
        """The call that tells a workflow which of these members of a queue have ended."""
        return SCRIPTS["advance_workflow"].call_many([self._home, self._keys.of(queue)], (workflow, *job_ids))

    def advance_commands(self, queue: str, job_ids: Iterable[bytes]) -> list[tuple[str, Command]]:
        """These calls for members of any workflows: the id of a workflow, and the command."""
        members: dict[str, list[bytes]] = {}
        for job_id in job_ids:
            if flow := workflow_of(job_id.decode()):
                members.setdefault(flow, []).append(job_id)
        return [
            (flow, self.advance_command(flow, queue, ids[start : start + AT_ONCE]))
            for flow, ids in members.items()
            for start in range(0, len(ids), AT_ONCE)
        ]

    def follow(self, advances: Sequence[Advance]) -> None:
        """Do what follows: tell receivers, start parts. Raises BrokerError: then the next heartbeat does it."""
        for advance in advances:
            if advance.news in ("ended", "blocked"):
                signal = signals.workflow_ended if advance.news == "ended" else signals.workflow_blocked
                signal.send_robust(WorkflowStore, workflow_id=advance.workflow, name=advance.name)
            elif advance.news == "cancel":
                self.cancel(advance.workflow)
        if parts := [part for advance in advances for part in advance.parts]:
            self.start(parts)

    # -- for heartbeats

    def traces_command(self, queues: Sequence[str]) -> Command:
        """The command that says whether sweep() has anything to do."""
        return ("EXISTS", self._home.unstarted, *(self._keys.of(queue).ended_members for queue in queues))

    def sweep(self, queues: Sequence[str]) -> None:
        """Take the notes that nobody has taken, start parts that nobody has started, and forget workflows that were not
        sent as a whole. A bounded number of each. Raises BrokerError."""
        scans: list[Command] = [
            ("HSCAN", self._keys.of(queue).ended_members, 0, "COUNT", NOTES_AT_ONCE) for queue in queues
        ]
        stalled: Command = ("ZRANGE", self._home.unstarted, 0, 99, "WITHSCORES")
        *scanned, unstarted, (seconds, micros) = self._redis.execute([*scans, stalled, ("TIME",)], resend=True)
        now_ms = int(seconds) * 1000 + int(micros) // 1000
        calls = [
            call
            for queue, (_, pairs) in zip(queues, scanned, strict=True)
            for call in self.advance_commands(queue, pairs[: 2 * NOTES_AT_ONCE : 2])
        ]
        for flow, at in zip(unstarted[::2], unstarted[1::2], strict=True):
            if float(at) < now_ms - UNFINISHED_MS:
                self.forget(flow.decode(), latest_ms=now_ms - UNFINISHED_MS)
            if float(at) < now_ms - STALLED_MS:
                calls.append((flow.decode(), self.advance_command(flow.decode(), self._config.default_queue, ())))
        if calls:
            replies = self._redis.execute([command for _, command in calls], resend=True)
            self.follow([read_advance(flow, reply) for (flow, _), reply in zip(calls, replies, strict=True)])

    def forget_old(self) -> None:
        """Forget workflows that ended long ago, or that are too many; a bounded number. Raises BrokerError."""
        config = self._config
        (seconds, _), number = self._redis.execute([("TIME",), ("ZCARD", self._home.workflows)], resend=True)
        if not number:
            return
        latest_ms = int(seconds) * 1000 - int(config.workflow_ttl * 1000)
        over = min(1000, number - MOST_WORKFLOWS)
        reads: list[Command] = [("ZRANGEBYSCORE", self._home.workflows, "-inf", latest_ms, "LIMIT", 0, 1000)]
        if over > 0:
            reads.append(("ZRANGE", self._home.workflows, 0, over - 1))
        old, *surplus = self._redis.execute(reads, resend=True)
        for flow in old:
            self.forget(flow.decode(), latest_ms=latest_ms)
        for flow in surplus[0] if surplus else ():
            self.forget(flow.decode(), latest_ms=int(seconds) * 1000)

    def forget(self, workflow: str, *, latest_ms: int) -> str:
        """Delete a workflow that is over: the answer of the script forget_workflow."""
        return self._ask("forget_workflow", workflow, latest_ms)

    # -- by hand

    def cancel(self, workflow: str) -> str:
        """End a workflow: "cancelled", "over" or "missing". Its live jobs are left to the caller."""
        answer = self._ask("cancel_workflow", workflow)
        if answer == "cancelled":
            signals.workflow_ended.send_robust(WorkflowStore, workflow_id=workflow, name="")
        return answer

    def _ask(self, script: str, *arguments: Argument) -> str:
        answer: bytes = self._redis.execute_one(SCRIPTS[script].call(self._home, arguments), resend=True)
        return answer.decode()

    # -- reading

    def fields_command(self, workflow: str) -> Command:
        """Reads all fields of a workflow."""
        return ("HGETALL", self._home.workflow + workflow.encode())

    def bitmap_command(self, workflow: str, step: int, how: str) -> Command:
        """Reads which members of a step have ended so."""
        return ("GET", self._home.members + f"{workflow}:{step}:{how}".encode())

    def outcomes(self, workflow: str, numbers: Sequence[int]) -> list[bytes | None]:
        """The kept outcomes of members, JSON. Raises BrokerError."""
        key = self._home.step_results + workflow.encode()
        outcomes: list[bytes | None] = self._redis.execute_one(("HMGET", key, *numbers), resend=True)
        return outcomes

    def signal_key(self, workflow: str) -> bytes:
        """A list that has an entry for a minute after the end of a workflow."""
        key: bytes = self._home.workflow_signal + workflow.encode()
        return key

    def wait(self, waits: BlockingClient, workflow: str, seconds: float) -> dict[str, str]:
        """Wait until a workflow is over or blocked, or so many seconds. Returns all its fields. Raises BrokerError."""
        signal = self.signal_key(workflow)
        state: Command = ("HGET", self._home.workflow + workflow.encode(), "state")
        # The token stays for others that wait.
        block: Command = ("BLMOVE", signal, signal, "LEFT", "LEFT", max(0.001, round(seconds, 3)))
        _, _, fields = checked(list(waits.execute_blocking(state, block, self.fields_command(workflow))))
        return _as_texts(fields)

    def recent(self, limit: int) -> list[str]:
        """The ids of the workflows in which something happened last."""
        ids = self._redis.execute_one(("ZREVRANGE", self._home.workflows, 0, limit - 1), resend=True)
        return [flow.decode() for flow in ids]

    def read_fields(self, workflows: Sequence[str]) -> list[dict[str, str]]:
        """All fields of these workflows; {} for one that is not there. Raises BrokerError."""
        replies = (
            self._redis.execute([self.fields_command(flow) for flow in workflows], resend=True) if workflows else []
        )
        return [_as_texts(reply) for reply in checked(replies)]

    def bitmaps(self, workflow: str, step: int, *hows: str) -> list[bytes]:
        """Which members of a step have ended in these ways: bitmaps, the first member is the highest bit."""
        commands = [self.bitmap_command(workflow, step, how) for how in hows]
        return [reply or b"" for reply in self._redis.execute(commands, resend=True)]


MOST_WORKFLOWS = 10_000  # that are kept
MOST_BYTES = 500_000  # of calls in one call of a script


def _packets(parts: Sequence[tuple[str, str]]) -> Iterator[list[str]]:
    """Parts and their calls, in turn, for each call of the script. One at least."""
    packet: list[str] = []
    size = 0
    for part, calls in parts:
        if packet and size + len(calls) > MOST_BYTES:
            yield packet
            packet, size = [], 0
        packet += (part, calls)
        size += len(calls)
    yield packet


def _as_texts(reply: Sequence[bytes]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in zip(reply[::2], reply[1::2], strict=True)}


def _parts(workflow: str, reply: Sequence[bytes]) -> list[Part]:
    return [Part(workflow, name.decode(), queue.decode()) for name, queue in zip(reply[::2], reply[1::2], strict=True)]


def read_advance(workflow: str, reply: Any) -> Advance:
    """The reply of advance_workflow; nothing for a BrokerError: then a heartbeat sends the call again."""
    if isinstance(reply, BrokerError):
        return Advance(workflow, "", "", [])
    news, *rest = reply
    return Advance(workflow, rest[0].decode() if rest else "", news.decode(), _parts(workflow, rest[1:]))

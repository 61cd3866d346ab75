"""Workflows in Redis: stores them, starts the jobs of their steps, and tells them which members have ended.

A workflow has an id of 12 hexadecimal digits. Its jobs, the members, are numbered: the id of a job names the workflow
and the number, so nothing else is stored for one (D138). `finish_members` settles members that have succeeded, notes
that in their workflow, and says what starts. Whatever else ends a member notes that in its queue (`ended_members`);
`advance_workflow` takes the notes. Who settles members sends it in the same packet; what is left behind, as after a
crash, is found by the next heartbeat.
"""

from __future__ import annotations

import json
import logging
import math
import random
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate, chain, groupby, pairwise
from typing import Any, NamedTuple

from django_rtq.core import signals
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.control import cancel_call, wake_supervisor_of
from django_rtq.core.broker.keys import read_queue_names
from django_rtq.core.broker.redis.commands import Argument, Command, Token, checked
from django_rtq.core.broker.scripts import AT_ONCE, SCRIPTS
from django_rtq.core.broker.settlement import WORKFLOW_PART
from django_rtq.core.jobs.job import is_member
from django_rtq.core.jobs.outcome import read_outcome
from django_rtq.exceptions import BrokerError, BrokerUnavailable, InvalidWorkflow, QueueFull
from django_rtq.workflows.steps.store import Holder

logger = logging.getLogger("django_rtq")

KEEPS = b"9"  # digit 16 of the id of a member whose result other steps take
PARTS_IN_FLIGHT = 8  # calls of start_members in one packet
NOTES_AT_ONCE = 500  # of one queue that a heartbeat takes in a round trip
MAX_ROUNDS = 10  # of these in one heartbeat
NAMES_AT_ONCE = 1000  # of workflows
STATES = ("running", "blocked", "succeeded", "failed", "cancelled")  # in the order of their places
CANCELLED_AT_ONCE = 100  # jobs in a packet
CANCELLED_PARTS = 20  # of the steps of a workflow in one go, of as many jobs as the two that follow say
CANCELLED_AT_DEATH = 500
CANCELLED_IN_HEARTBEAT = 2_000
UNFINISHED_MS = 60_000  # without another part; then a workflow that is not whole is forgotten
STALLED_MS = 500  # after nobody has started parts of a workflow for so long, a heartbeat starts them
FOLLOW_SECONDS = 0.5  # of starting parts by who has settled members; who settles others goes on
FORGOTTEN_AT_ONCE = 100
STATE_PLACE = 10**13  # of a score of `workflow_states`: the place of the state; the rest is since when, ms
QUIET_LEASES = 4  # in which nothing happened: then a running workflow is compared with its jobs
COMPARED_AT_ONCE = 20  # workflows
COMPARED_MEMBERS = 500  # of each, by chance
MOST_STUCK = 50  # or blocked, that are looked at each time, and shown
MOST_FULL = 1000

#: Workflows whose results are too many, as far as this process has heard.
full_workflows: set[str] = set()


def scores_of(state: str) -> tuple[int, str]:
    """The least score in `workflow_states` of a state, and that of the next. Raises ValueError."""
    if state not in STATES:
        raise ValueError(f"There is no state {state!r} of workflows. There are: {', '.join(STATES)}.")
    place = STATES.index(state)
    return place * STATE_PLACE, f"({(place + 1) * STATE_PLACE}"


class Part(NamedTuple):
    """A part of a step whose members are to be enqueued."""

    workflow: str
    name: str  # "step:place of its first member"
    queue: str


class Advance(NamedTuple):
    """What a call of advance_workflow has to say."""

    workflow: str
    name: str
    news: str  # "ended", "blocked", "cancel", "full", "missing", or ""
    parts: list[Part]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWorkflow:
    """A workflow to store: fields, and parts with the calls of their members, as store_workflow.lua has them."""

    id: str
    key: str
    fields: Mapping[str, Argument]
    parts: Sequence[tuple[str, str]]
    rooms: Sequence[tuple[str, str, int]] = ()  # queue, client (ANY_CLIENT), and how many members begin there
    token: str = ""  # of its maker; "": a new one

    @property
    def queues(self) -> set[str]:
        """The queues of its steps."""
        return {str(queue) for name, queue in self.fields.items() if name.startswith("queue:")}

    def as_text(self) -> str:
        """What read() reads."""
        return json.dumps([self.id, self.key, self.fields, self.parts, self.rooms, self.token])

    @classmethod
    def read(cls, text: str) -> NewWorkflow:
        """Read what as_text() wrote. Raises ValueError."""
        try:
            flow, key, fields, parts, rooms, token = json.loads(text)
        except TypeError as error:
            raise ValueError("The text has not the fields of a workflow.") from error
        return cls(id=flow, key=key, fields=fields, parts=parts, rooms=rooms, token=token)


ANY_CLIENT = "\n"


def workflow_of(job_id: str) -> str:
    """The id of the workflow of a member; "" for other jobs."""
    return job_id[13:16] + job_id[17:26] if is_member(job_id) else ""


def member_id(workflow: str, started_ms: int, number: int, *, keeps: bool) -> str:
    """The id of a member, as start_members.lua makes it."""
    return f"{started_ms:012x}8{workflow[:3]}{'9' if keeps else '8'}{workflow[3:]}{number:06x}"


class WorkflowStore:
    """Changes and reads workflows in Redis. Any thread may use it."""

    def __init__(self, broker: Broker) -> None:
        self._redis, self._keys, self._config = broker.redis, broker.keys, broker.config
        self._compared = 0  # how many of the running ones compare() has passed
        self._unforgettable: set[bytes] = set()  # members of `workflow_states` whose workflows are broken

    @property
    def _home(self) -> Any:
        return self._keys.of(self._config.default_queue)

    # -- making

    def store(self, flow: NewWorkflow) -> tuple[str, str, list[Part]]:
        """Store a workflow, and begin it. Returns "ok", its state and the parts to start; or "duplicate" and the id of
        the workflow with that key; or "taken". Raises BrokerError: then it may have begun; and QueueFull."""
        script, token = SCRIPTS["store_workflow"], flow.token or secrets.token_hex(8)
        fields: list[Argument] = [text for pair in flow.fields.items() for text in pair]
        queues = list(dict.fromkeys(queue for queue, _, _ in flow.rooms))
        rooms: list[Argument] = []
        for queue, client, members in flow.rooms:
            rooms += (queues.index(queue) + 2, client, members)
        targets = [self._home, *map(self._keys.of, queues)]
        *most, rest = (fields[start : start + MOST_TEXTS] for start in range(0, len(fields), MOST_TEXTS))
        packet, *packets = _packets(flow.parts)
        calls = [*((pairs, []) for pairs in most), (rest, packet), *(([], packet) for packet in packets)]
        commands = []
        for number, (pairs, parts) in enumerate(calls):
            is_last = number == len(calls) - 1
            room = rooms if is_last or not number else []
            arguments = (flow.id, token, "1" if is_last else "", flow.key, len(room), len(pairs), *room, *pairs, *parts)
            commands.append(script.call_many(targets, arguments))
        # The first one alone: if it is refused, no other may leave anything.
        for start in range(1 - PARTS_IN_FLIGHT, len(commands), PARTS_IN_FLIGHT):
            replies = self._redis.execute(commands[max(0, start) : start + PARTS_IN_FLIGHT], resend=True)
            for word, *told in replies:
                if word.startswith(b"full"):
                    (_, scope, waiting, most), (place, client) = word.decode().split(" "), told
                    full_client = client.decode() if scope == "client" else None
                    raise QueueFull(queues[int(place) - 2], full_client, int(waiting), int(most), [])
                if word != b"ok":
                    return word.decode(), told[0].decode() if told else "", []
        state, *starting = told
        return "ok", state.decode(), _parts(flow.id, starting)

    def make(self, flow: NewWorkflow) -> tuple[str, str]:
        """store() and start(). Returns "ok" and its state, "duplicate" and the id of the other one, or "taken"."""
        answer, other, parts = self.store(flow)
        if answer == "ok" and other == "succeeded":  # it has no jobs
            signals.workflow_ended.send_robust(WorkflowStore, workflow_id=flow.id, name=str(flow.fields["name"]))
        with suppress(BrokerError):  # it is stored: a worker starts the rest with a heartbeat
            self.start(parts)
        return answer, other

    def add(
        self, holder: Holder, shape: str, texts: Sequence[Argument], parts: Sequence[tuple[str, str]]
    ) -> tuple[str, str]:
        """Add steps to the workflow of a running job, and start them. Arguments and answer: see add_members.lua.

        Raises BrokerError.
        """
        run, queues = (holder.job_id, holder.worker, holder.claimed_ms), [self._home, self._keys.of(holder.queue)]
        flow, packets, rest = workflow_of(holder.job_id), list(_packets(parts)), []
        for number, packet in enumerate(packets):
            first, is_last = [] if number else texts, "1" if number == len(packets) - 1 else ""
            call = SCRIPTS["add_members"].call_many(queues, (flow, *run, shape, is_last, len(first), *first, *packet))
            answer, *rest = self._redis.execute_one(call, resend=True)
            if answer == b"added":  # by this call, whose reply was lost
                self._advance([(flow, self.advance_command(flow, self._config.default_queue, ()))])
            if answer != b"ok":
                return answer.decode(), rest[0].decode() if rest else ""
        self.start(_parts(flow, rest))
        return "ok", ""

    def start(self, parts: Iterable[Part], *, until: float = math.inf) -> bool:
        """Enqueue the members of these parts, and of those that follow them, until then (time.monotonic()). Returns
        whether some are left, which heartbeats start. Raises BrokerUnavailable."""
        waiting = list(dict.fromkeys(parts))
        while waiting:
            now, waiting = waiting[:PARTS_IN_FLIGHT], waiting[PARTS_IN_FLIGHT:]
            flows = list({part.workflow for part in now} - {part.workflow for part in waiting})
            commands = [self._start_command(part) for part in now]
            commands += [self.advance_command(flow, self._config.default_queue, ()) for flow in flows]
            replies = self._redis.execute_each(commands, resend=True)
            refused = {part.workflow for part, reply in zip(now, replies, strict=False) if _is_refused(part[0], reply)}
            for flow, reply in zip(flows, replies[len(now) :], strict=True):
                waiting += [part for part in read_advance(flow, reply).parts if flow not in refused]
            if signals.job_enqueued.receivers:
                started = [part for part, added in zip(now, replies, strict=False) if isinstance(added, int) and added]
                self._tell_started(started)
            if waiting and time.monotonic() > until:
                return True
        return False

    def _tell_started(self, parts: Sequence[Part]) -> None:
        """Tell receivers of the jobs of these parts, as delay() does."""
        for part in parts:
            step = part.name.partition(":")[0]
            names = [f"at:{part.name}"]
            names += [f"{what}:{step}" for what in ("task", "queue", "first", "size", "parts", "keep")]
            read: Command = ("HMGET", self._home.workflow + part.workflow.encode(), *names)
            with suppress(BrokerError):  # then nobody can be told
                values = self._redis.execute_one(read, resend=True)
                fields = {name: text.decode() for name, text in zip(names, values, strict=True) if text is not None}
                for started in started_parts(part.workflow, fields):
                    ids = [job_id for _, job_id in started.ids()]
                    signals.send_enqueued(WorkflowStore, part.queue, fields[f"task:{step}"], ids)

    def _start_command(self, part: Part) -> Command:
        queues = [self._home, self._keys.of(part.queue)]
        return SCRIPTS["start_members"].call_many(queues, (part.workflow, part.name))

    # -- going on

    def advance_command(self, workflow: str, queue: str, job_ids: Sequence[Argument]) -> Command:
        """The call that tells a workflow which of these members of a queue have ended."""
        return SCRIPTS["advance_workflow"].call_many([self._home, self._keys.of(queue)], (workflow, *job_ids))

    def advance_commands(
        self, queue: str, job_ids: Iterable[bytes], *, drops_others: bool = False
    ) -> list[tuple[str, Command]]:
        """These calls for members of any workflows: the id of a workflow, and the command. `drops_others`: of "", too,
        which drops what is noted of jobs that are no members."""
        members: dict[str, list[bytes]] = {}
        # No work in Python for each id: a busy worker settles hundreds of members in one call.
        for _, same in groupby(sorted(job_ids, key=WORKFLOW_PART), WORKFLOW_PART):
            ids = list(same)
            if (flow := workflow_of(ids[0].decode())) or drops_others:
                members.setdefault(flow, []).extend(ids)
        return [
            (flow, self.advance_command(flow, queue, ids[start : start + AT_ONCE]))
            for flow, ids in members.items()
            for start in range(0, len(ids), AT_ONCE)
        ]

    def follow(self, advances: Sequence[Advance], *, until: float | None = None) -> bool:
        """Do what follows: tell receivers, start parts, until then (time.monotonic()) or for half a second. Returns
        whether parts are left. Raises BrokerUnavailable: then the next heartbeat does it."""
        for advance in advances:
            if advance.news in ("ended", "blocked"):
                signal = signals.workflow_ended if advance.news == "ended" else signals.workflow_blocked
                signal.send_robust(WorkflowStore, workflow_id=advance.workflow, name=advance.name)
            elif advance.news == "cancel":
                with apart(advance.workflow):
                    if self.cancel(advance.workflow) == "cancelled":
                        self.cancel_members(advance.workflow, most_jobs=CANCELLED_AT_DEATH)  # heartbeats do the others
            elif advance.news == "full":
                if len(full_workflows) == MOST_FULL:
                    full_workflows.clear()
                full_workflows.add(advance.workflow)
        parts = [part for advance in advances for part in advance.parts]
        return bool(parts) and self.start(parts, until=until or time.monotonic() + FOLLOW_SECONDS)

    def tell_settled(
        self, noted: Mapping[str, Sequence[bytes]], acks: Sequence[int], commands: list[Command]
    ) -> Callable[[list[Any]], Callable[[], bool]]:
        """Add the calls for members that are noted in queues. The commands at the places `acks` are finish_members.

        Returns what takes all replies, and returns what lets workflows go on: () -> whether jobs were enqueued.
        """
        first = len(commands)
        told = [call for queue, ids in noted.items() for call in self.advance_commands(queue, ids)]
        commands += [command for _, command in told]

        def read(replies: list[Any]) -> Callable[[], bool]:
            advances = [read_advance(flow, reply) for (flow, _), reply in zip(told, replies[first:], strict=False)]
            for place in acks:
                if not isinstance(replies[place], BrokerError):
                    replies[place], *news = replies[place]  # stale ids, and of workflows what is new
                    pairs = zip(news[::2], news[1::2], strict=True)
                    advances += [read_advance(flow.decode(), new) for flow, new in pairs]
            return partial(self._follow_settled, advances)

        return read

    def _follow_settled(self, advances: Sequence[Advance]) -> bool:
        """follow(). Returns whether jobs were enqueued."""
        try:
            self.follow(advances)
        except BrokerError as error:  # the jobs are settled; the next heartbeat does the rest
            logger.warning("what follows in workflows starts with the next heartbeat: %s", error)
            return False
        return any(advance.parts for advance in advances)

    # -- for heartbeats

    def sweep(self, queues: Sequence[str], *, until: float = math.inf) -> bool:
        """Take the notes that nobody has taken, go on with workflows where whoever began it has died, and forget those
        that were not sent as a whole. A bounded number of each, until then (time.monotonic()), one at least. Returns
        whether parts are left to start, or jobs to cancel. A workflow that is broken stops no other. Raises
        BrokerUnavailable."""
        stalled: Command = ("ZRANGE", self._home.unstarted, 0, 99, "WITHSCORES")
        *notes, unstarted, now_ms = self._redis.execute(
            [*self._notes_commands(queues), stalled, ("TIME",)], resend=True
        )
        self._take_notes(queues, notes, until)
        now_ms = int(now_ms[0]) * 1000 + int(now_ms[1]) // 1000
        ages_ms = {flow.decode(): now_ms - float(at) for flow, at in zip(unstarted[::2], unstarted[1::2], strict=True)}
        flows = [flow for flow, age_ms in ages_ms.items() if age_ms > STALLED_MS]
        reads: list[Command] = [("HGET", self._home.workflow + flow.encode(), "state") for flow in flows]
        has_more = False
        for flow, state in zip(flows, self._redis.execute_each(reads, resend=True), strict=True):
            with apart(flow):
                if state not in (None, b"making"):
                    has_more |= self._go_on(flow, state, now_ms, until)
                elif ages_ms[flow] > UNFINISHED_MS:
                    self.forget(flow, latest_ms=now_ms - UNFINISHED_MS)
            if time.monotonic() > until:
                return True
        return has_more

    def _go_on(self, flow: str, state: Any, now_ms: int, until: float) -> bool:
        """Returns whether it has more parts to start, or jobs to cancel. Raises BrokerError."""
        has_more = state == b"cancelled" and self.cancel_members(flow, most_jobs=CANCELLED_IN_HEARTBEAT)
        if state != b"cancelled":  # others come first now, and no other heartbeat has to join in
            self._redis.execute_one(("ZADD", self._home.unstarted, "XX", now_ms, flow), resend=True)
        checked([state])
        return self._advance([(flow, self.advance_command(flow, self._config.default_queue, ()))], until) or has_more

    def compare(self, *, until: float = math.inf) -> None:
        """Compare some running workflows, in which nothing has happened for some leases, with their jobs, until then
        (time.monotonic()). Of members that have ended unheard it is noted how. A workflow is stuck, which is noted and
        logged, if nobody knows how a member has ended. Raises BrokerUnavailable."""
        home = self._home
        page = ("LIMIT", self._compared, COMPARED_AT_ONCE)
        running, stuck, (seconds, _) = self._redis.execute(
            [
                ("ZRANGEBYSCORE", home.workflow_states, 0, f"({STATE_PLACE}", *page),
                ("ZRANGE", home.stuck_workflows, 0, MOST_STUCK - 1),
                ("TIME",),
            ],
            resend=True,
        )
        self._compared = self._compared + len(running) if len(running) == COMPARED_AT_ONCE else 0
        flows = {member: member.partition(b" ")[0].decode() for member in (*stuck, *running)}
        if not flows:
            return
        quiet_ms = int(seconds) * 1000 - QUIET_LEASES * self._config.lease_seconds * 1000
        times = self._redis.execute_one(("ZMSCORE", home.workflows, *flows.values()), resend=True)
        for (member, flow), at in zip(flows.items(), times, strict=True):
            if member in stuck or float(at or 0) < quiet_ms:
                with apart(flow):
                    self._compare(member, flow)
            if time.monotonic() > until:
                return

    def _compare(self, member: bytes, flow: str) -> None:
        """Raises BrokerError."""
        (fields,) = self.read_fields([flow])
        stuck, is_running = self._home.stuck_workflows, fields.get("state") == "running"
        if not (is_running and self._lost_members(flow, fields)):
            self._redis.execute_one(("ZREM", stuck, member), resend=True)
            return
        since_ms = self._redis.execute_one(("ZSCORE", self._home.workflows, flow), resend=True)
        if self._redis.execute_one(("ZADD", stuck, "NX", since_ms or 0, member), resend=True):
            logger.error(
                "workflow %s (%s) is stuck: nobody knows how some of its jobs have ended. Cancel it, make it again.",
                flow, fields["name"],
            )  # fmt: skip

    def _lost_members(self, flow: str, fields: Mapping[str, str]) -> bool:
        """Note how members have ended of which the workflow has not heard. Returns whether nobody knows it of some."""
        parts = [part for part in started_parts(flow, fields) if not _is_over(part.step, fields)]
        random.shuffle(parts)
        members = 0
        for part in parts:
            open_ids = dict(self._open_ids(part))
            lost: list[str] = [*open_ids.values()]
            for queue in dict.fromkeys([part.queue, *self._queue_names()]) if lost else ():
                lost = self._lost_in(queue, lost, part) if lost else []
            if lost and set(lost) & {job_id for _, job_id in self._open_ids(part)}:  # else they ended meanwhile
                return True
            members += len(open_ids)
            if members > COMPARED_MEMBERS:
                return False
        if parts:
            return False
        # No job is open: parts have to start, or else it ends now.
        has_parts = self._redis.execute_one(("EXISTS", self._home.starting_parts + flow.encode()), resend=True)
        self._advance([(flow, self.advance_command(flow, self._config.default_queue, ()))])
        (fields,) = self.read_fields([flow])
        return not has_parts and fields.get("state") == "running"

    def _open_ids(self, part: StartedPart) -> Iterator[tuple[int, str]]:
        ended = self.bitmaps(part.workflow, part.step, "done", "dead", "gone")
        over = {place for bits in ended for place in set_bits(bits)}
        return ((place, job_id) for place, job_id in part.ids() if place not in over)

    def _lost_in(self, queue: str, job_ids: Sequence[str], part: StartedPart) -> list[str]:
        """Note how these members have ended, as far as this queue knows. Returns the others, but for its live jobs."""
        keys = self._keys.of(queue)
        reads: list[Command] = [("HEXISTS", keys.jobs, job_id) for job_id in job_ids]
        reads += [("HMGET", keys.ended_members, *job_ids), ("HMGET", keys.results, *job_ids)]
        *live, noted, outcomes = self._redis.execute(reads, resend=True)
        lost: list[str] = []
        told: list[tuple[str, bytes]] = []
        for place, job_id in enumerate(job_ids):
            if live[place] or noted[place]:
                continue
            how = _how_it_ended(outcomes[place] or b"", keeps=part.keeps)
            if how:
                told.append((job_id, how))
            else:
                lost.append(job_id)
        if told:
            self._redis.execute([("HSETNX", keys.ended_members, *note) for note in told], resend=True)
            self._advance(self.advance_commands(queue, [job_id.encode() for job_id, _ in told]))
            logger.warning("workflow %s had not heard how jobs ended: %d", part.workflow, len(told))
        return lost

    def _queue_names(self) -> list[str]:
        return read_queue_names(self._redis.execute_one(("SMEMBERS", self._keys.queues), resend=True))

    def tell(self, queue: str, job_ids: Iterable[str]) -> None:
        """Let workflows hear what somebody did with these jobs of a queue. Without Redis the next heartbeat does it."""
        if calls := self.advance_commands(queue, [job_id.encode() for job_id in job_ids]):
            with suppress(BrokerError):
                self._advance(calls)

    def _notes_commands(self, queues: Iterable[str]) -> list[Command]:
        return [("HRANDFIELD", self._keys.of(queue).ended_members, NOTES_AT_ONCE) for queue in queues]

    def _take_notes(self, queues: Sequence[str], notes: Sequence[Sequence[bytes]], until: float) -> None:
        for _ in range(MAX_ROUNDS):
            notes = [ids or () for ids in notes]  # fakeredis has None where there are none
            notes_of = zip(queues, notes, strict=True)
            calls = [self.advance_commands(queue, ids, drops_others=True) for queue, ids in notes_of]
            self._advance([*chain.from_iterable(calls)], until)
            if max(map(len, notes), default=0) < NOTES_AT_ONCE or time.monotonic() > until:
                return
            notes = self._redis.execute(self._notes_commands(queues), resend=True)

    def _advance(self, calls: Sequence[tuple[str, Command]], until: float | None = None) -> bool:
        replies = self._redis.execute_each([command for _, command in calls], resend=True)
        told = [(flow, reply) for (flow, _), reply in zip(calls, replies, strict=True) if not _is_refused(flow, reply)]
        return self.follow([read_advance(flow, reply) for flow, reply in told], until=until)

    def forget_old(self) -> bool:
        """Forget a hundred of the workflows that ended more than WORKFLOW_TTL ago, or that are too many: those that
        ended first. Returns whether none is left. Raises BrokerUnavailable."""
        key, most = self._home.workflow_states, FORGOTTEN_AT_ONCE + len(self._unforgettable)
        bounds = [scores_of(state) for state in STATES[2:]]  # in which a workflow is over
        reads: list[Command] = [("ZRANGEBYSCORE", key, *each, "WITHSCORES", "LIMIT", 0, most) for each in bounds]
        reads += [("ZCOUNT", key, *each) for each in bounds]
        (seconds, _), *replies = self._redis.execute([("TIME",), *reads], resend=True)
        pairs = [*chain.from_iterable(replies[: len(bounds)])]
        ends = {member: int(float(score)) % STATE_PLACE for member, score in zip(pairs[::2], pairs[1::2], strict=True)}
        oldest = sorted(ends.keys() - self._unforgettable, key=ends.__getitem__)
        latest_ms = int(seconds) * 1000 - int(self._config.workflow_ttl * 1000)
        surplus = sum(replies[len(bounds) :]) - MOST_WORKFLOWS
        due = [m for place, m in enumerate(oldest) if ends[m] <= latest_ms or place < surplus][:FORGOTTEN_AT_ONCE]
        flows = [member.decode(errors="replace").partition(" ")[0] for member in due]
        script = SCRIPTS["forget_workflow"]
        calls = [script.call(self._home, (flow, ends[m], m)) for flow, m in zip(flows, due, strict=True)]
        for flow, member, reply in zip(flows, due, self._redis.execute_each(calls, resend=True), strict=True):
            if _is_refused(flow, reply) or reply == b"open":
                self._unforgettable.add(member)
        return len(due) < FORGOTTEN_AT_ONCE

    def forget(self, workflow: str, *, latest_ms: int) -> str:
        """Delete a workflow that is over: the answer of the script forget_workflow."""
        return self._ask("forget_workflow", workflow, latest_ms, "")

    # -- by hand

    def cancel(self, workflow: str) -> str:
        """End a workflow: "cancelled", "over" or "missing". Its live jobs are left to cancel_members()."""
        call = SCRIPTS["cancel_workflow"].call(self._home, (workflow, ""))
        read_name: Command = ("HGET", self._home.workflow + workflow.encode(), "name")
        answer, name = checked(self._redis.execute([call, read_name], resend=True))
        if answer == b"cancelled":
            signals.workflow_ended.send_robust(WorkflowStore, workflow_id=workflow, name=name.decode())
        return str(answer.decode())

    def cancel_members(self, workflow: str, *, most_jobs: int | None = None) -> bool:
        """Cancel the waiting jobs of a cancelled workflow, and ask running ones to stop: about so many. Returns whether
        there are more: who calls it again goes on. Raises BrokerError."""
        (fields,) = self.read_fields([workflow])
        if "cancelling" not in fields:
            return False
        first, on_death = int(fields["cancelling"]), int(fields.get("on_death", -1))  # whose job goes on
        parts = [part for part in started_parts(workflow, fields) if part.first >= first and part.step != on_death]
        some = parts
        if most_jobs is not None:  # the first that have so many jobs together, one at least
            sizes = accumulate(part.size for part in parts[:CANCELLED_PARTS])
            some = parts[: max(1, sum(size <= most_jobs for size in sizes))]
        for part in some:
            self._cancel_jobs(part.queue, [job_id for _, job_id in self._open_ids(part)])
            self._ask("cancel_workflow", workflow, part.first + 1)
        if some != parts:
            return True
        self._ask("cancel_workflow", workflow, "all")
        return False

    def _cancel_jobs(self, queue: str, job_ids: Sequence[str]) -> None:
        """Cancel members in a queue, and those that somebody has requeued elsewhere, where they are."""
        gone = self._cancel_in(queue, job_ids)
        if gone:
            for other in self._queue_names():
                gone = self._cancel_in(other, gone) if other != queue and gone else gone

    def _cancel_in(self, queue: str, job_ids: Sequence[str]) -> list[str]:
        """Returns the ids of jobs that are not there, or over."""
        keys, gone, workers = self._keys.of(queue), [], set()
        for start in range(0, len(job_ids), CANCELLED_AT_ONCE):
            ids = job_ids[start : start + CANCELLED_AT_ONCE]
            calls = [cancel_call(keys, self._config, job_id, "ask") for job_id in ids]
            replies = checked(self._redis.execute(calls, resend=True))
            for job_id, (word, worker) in zip(ids, replies, strict=True):
                if word == b"asked":
                    workers.add(worker.decode())
                elif word == b"cancelled":
                    signals.job_cancelled.send_robust(WorkflowStore, job_id=job_id, queue=queue)
                elif word in (b"missing", b"finished"):
                    gone.append(job_id)
            self.tell(queue, ids)
        for worker in workers:
            self._redis.run(wake_supervisor_of(self._keys, worker))  # it need not wait for its next heartbeat
        return gone

    def _ask(self, script: str, *arguments: Argument) -> str:
        answer: bytes = self._redis.execute_one(SCRIPTS[script].call(self._home, arguments), resend=True)
        return answer.decode()

    # -- reading

    def outcomes(self, workflow: str, numbers: Sequence[int]) -> list[bytes | None]:
        """The kept outcomes of members, JSON. Raises BrokerError."""
        workflow, _, adder = workflow.partition("+")
        if adder:  # they count from the first of those that a job has added
            added = self._redis.execute_one(
                ("HGET", self._home.workflow + workflow.encode(), f"added:{adder}"), resend=True
            )
            numbers = [int((added or b"0").split()[0]) + number for number in numbers]
        key = self._home.step_results + workflow.encode()
        outcomes: list[bytes | None] = self._redis.execute_one(("HMGET", key, *numbers), resend=True)
        return outcomes

    def token(self, workflow: str) -> Token:
        """What comes when a workflow is over or blocked: a list has an entry for a minute then."""
        signal = self._home.workflow_signal + workflow.encode()
        return Token(signal, self.advance_command(workflow, self._config.default_queue, ()))

    def recent(self, limit: int, *, start: int = 0, state: str = "") -> list[str]:
        """The ids of the workflows in which something happened last; of those in a state, if one is named."""
        if not state:
            ids = self._redis.execute_one(("ZREVRANGE", self._home.workflows, start, start + limit - 1), resend=True)
            return [flow.decode() for flow in ids]
        low, high = scores_of(state)
        command = ("ZREVRANGEBYSCORE", self._home.workflow_states, high, low, "LIMIT", start, limit)
        return [each.decode().partition(" ")[0] for each in self._redis.execute_one(command, resend=True)]

    def count(self, state: str = "") -> int:
        """How many workflows there are; in a state, if one is named."""
        of_state: Command = ("ZCOUNT", self._home.workflow_states, *scores_of(state)) if state else ()
        return int(self._redis.execute_one(of_state or ("ZCARD", self._home.workflows), resend=True))

    def having(self, field: str, value: str, limit: int) -> list[str]:
        """The ids of the workflows with this name, or client, of so many in which something happened last. Raises
        BrokerError."""
        matching = []
        ids = self.recent(limit)
        for start in range(0, len(ids), NAMES_AT_ONCE):
            part = ids[start : start + NAMES_AT_ONCE]
            reads: list[Command] = [("HGET", self._home.workflow + flow.encode(), field) for flow in part]
            found = self._redis.execute(reads, resend=True)
            matching += [flow for flow, each in zip(part, found, strict=True) if each == value.encode()]
        return matching

    def read_fields(self, workflows: Sequence[str]) -> list[dict[str, str]]:
        """All fields of these workflows; {} for one that is not there, or broken. Raises BrokerUnavailable."""
        reads: list[Command] = [("HGETALL", self._home.workflow + flow.encode()) for flow in workflows]
        replies = self._redis.execute_each(reads, resend=True)
        checked([reply for reply in replies if isinstance(reply, BrokerUnavailable)])
        return [{} if isinstance(reply, BrokerError) else _as_texts(reply) for reply in replies]

    def bitmaps(self, workflow: str, step: int, *hows: str) -> list[bytes]:
        """Which members of a step have ended in these ways: bitmaps, the first member is the highest bit."""
        reads: list[Command] = [("GET", self._home.members + f"{workflow}:{step}:{how}".encode()) for how in hows]
        return [reply or b"" for reply in self._redis.execute(reads, resend=True)]


class StartedPart(NamedTuple):
    """A part of a step whose members are jobs."""

    workflow: str
    step: int
    queue: str
    place: int  # of its first member in the step
    first: int  # its number
    size: int
    started_ms: int
    keeps: bool

    def id_of(self, place: int) -> str:
        """The id of the member at this place of the step."""
        return member_id(self.workflow, self.started_ms, self.first + place - self.place, keeps=self.keeps)

    def ids(self) -> Iterator[tuple[int, str]]:
        """The place and the id of each member."""
        for place in range(self.place, self.place + self.size):
            yield place, self.id_of(place)


def started_parts(workflow: str, fields: Mapping[str, str]) -> list[StartedPart]:
    """The parts of all steps that have started, in the order of their members."""
    parts = []
    ends: dict[str, dict[int, int]] = {}  # of the parts of a step, by their places
    for name, started_ms in fields.items():
        if name.startswith("at:"):
            step, text = name.split(":")[1:]
            if step not in ends:
                places = [*map(int, fields[f"parts:{step}"].split()), int(fields[f"size:{step}"])]
                ends[step] = dict(pairwise(places))
            place, queue, keeps = int(text), fields[f"queue:{step}"], fields.get(f"keep:{step}") == "1"
            number, size = int(fields[f"first:{step}"]) + place, ends[step][place] - place
            parts.append(StartedPart(workflow, int(step), queue, place, number, size, int(started_ms), keeps))
    return sorted(parts, key=lambda part: part.first)


def _is_over(step: int, fields: Mapping[str, str]) -> bool:
    return sum(map(int, fields[f"ends:{step}"].split())) >= int(fields[f"size:{step}"])


def _how_it_ended(outcome: bytes, *, keeps: bool) -> bytes:
    """What is noted of a member with this outcome; b"" if it does not say it, or has no result, which others take."""
    values = read_outcome(outcome)[2]
    if values.get("state") == "succeeded":
        text = outcome.split(b" ", 2)[2]
        return (b"done " + text if "result" in values else b"") if keeps else b"done"
    return b"gone" if values.get("state") in ("cancelled", "expired") else b""


def set_bits(bits: bytes) -> Iterator[int]:
    """The places of the members that a bitmap names."""
    for index, byte in enumerate(bits):
        if byte:
            for bit in range(8):
                if byte & (0x80 >> bit):
                    yield 8 * index + bit


MOST_WORKFLOWS = 10_000  # that are kept
MOST_BYTES = 500_000  # of calls in one call of a script
MOST_TEXTS = 2000  # of a workflow in one call, fields and values, or parts and calls: it takes less than 5 ms


def _packets(parts: Sequence[tuple[str, str]]) -> Iterator[list[str]]:
    """Parts and their calls, in turn, for each call of the script. One at least."""
    packet: list[str] = []
    size = 0
    for part, calls in parts:
        if packet and (size + len(calls) > MOST_BYTES or len(packet) == MOST_TEXTS):
            yield packet
            packet, size = [], 0
        packet += (part, calls)
        size += len(calls)
    yield packet


def _as_texts(reply: Sequence[bytes]) -> dict[str, str]:
    texts = [text.decode(errors="replace") for text in reply]
    return dict(zip(texts[::2], texts[1::2], strict=True))


def _parts(workflow: str, reply: Sequence[bytes]) -> list[Part]:
    pairs = zip(reply[::2], reply[1::2], strict=True)
    return [Part(workflow, name.decode(), queue.decode()) for name, queue in pairs if queue]  # else it is broken


@lru_cache(MOST_FULL)  # once in this process
def _log_broken(workflow: str) -> None:
    logger.exception("workflow %s is broken; others go on", workflow)


@contextmanager
def apart(workflow: str) -> Iterator[None]:
    """What is wrong with a workflow stops no other one: it is logged."""
    try:
        yield
    except BrokerUnavailable:
        raise
    except Exception:  # noqa: BLE001 - whatever somebody has written into Redis
        _log_broken(workflow)


def _is_refused(workflow: str, reply: Any) -> bool:
    if is_refused := isinstance(reply, BrokerError):
        with apart(workflow):
            checked([reply])
    return is_refused


def read_advance(workflow: str, reply: Any) -> Advance:
    """The reply of advance_workflow; nothing for a BrokerError: then a heartbeat sends the call again."""
    if isinstance(reply, BrokerError):
        return Advance(workflow, "", "", [])
    news, *rest = reply
    return Advance(workflow, rest[0].decode() if rest else "", news.decode(), _parts(workflow, rest[1:]))


# -- what the core calls, beside for_core.py: see django_rtq/extensions.py


def tell_cancelled(broker: Broker, queue: str, job_id: str) -> None:
    """Let its workflow hear that this job was cancelled."""
    broker.store_of(WorkflowStore).tell(queue, [job_id])


def make_stored(broker: Broker, name: str, text: str) -> None:
    """Make the workflow of a row of the outbox, unless it was made. Raises BrokerError, ValueError and QueueFull."""
    flow = NewWorkflow.read(text)
    broker.register_queues(flow.queues)
    answer, _ = broker.store_of(WorkflowStore).make(flow)
    if answer == "taken":
        raise InvalidWorkflow(name, "has an id that another workflow has, by chance.")

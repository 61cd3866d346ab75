"""Carries the jobs and outcomes of a closed shard to the open ones, and finds them there by their old ids.

1. `pack_job` reads what there is of a job
2. `receive_job` stores it in the other shard, on hold
3. `hand_over` removes it, if it is unchanged, with a note where it went
4. `admit_job` lets it go on there; or forgets it, if it has stayed

Each may be sent again. With the note it belongs to the other shard: what is on hold there when all this ends early is
admitted if there is a note, and forgotten if there is none. A name of the call, stored in both shards, keeps two calls
apart: of an older one nothing is accepted any more (D150).
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django_rtq import signals
from django_rtq.broker.broker import Broker
from django_rtq.broker.brokers import get_broker
from django_rtq.broker.redis.commands import Command
from django_rtq.broker.scripts import SCRIPTS
from django_rtq.broker.sharded import open_shards, shard_for_job
from django_rtq.broker.task_backends import place_of, place_of_job, shard_numbers, shard_place
from django_rtq.exceptions import BrokerError, BrokerRefused, JobNotFound, WrongState
from django_rtq.inspector.actions import LATEST, PLAINLY, Actions, Answers, How, Verb
from django_rtq.inspector.all_shards import ask_shards
from django_rtq.inspector.inspector import Inspector, get_inspector
from django_rtq.inspector.queues import QueueReader
from django_rtq.inspector.selection import WAITING, Selection
from django_rtq.inspector.sweep import Sweep, Sweeper
from django_rtq.jobs.job import is_member, shard_in
from django_rtq.jobs.record import read_head

AT_ONCE = 25  # jobs of one round trip, each with all that is known of it
_HEAD = 400  # bytes of a record that have its client and its task

#: Why jobs stay, by the answers about them. The first word of an answer counts.
REASONS = {
    "running": "are running: call this again when they have ended",
    "after": "wait for the end of a job with the same unique key: call this again when it has ended",
    "changed": "were changed meanwhile: call this again",
    "member": "belong to workflows, which stay in their shard",
    "internal": "are parts of actions on this shard: let a worker run them here",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What was carried, and what was not."""

    jobs: int = 0
    outcomes: int = 0
    left: Counter[str] = field(default_factory=Counter)  # key of REASONS -> number of jobs; "running" as it is now

    @property
    def is_complete(self) -> bool:
        """Whether the shard has no jobs and outcomes any more."""
        return not self.left.total()


class Carrier:
    """Carries what a closed shard has to the open ones. For one thread. All methods raise BrokerError."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._source = get_broker(shard_place(number))
        self._open = open_shards()
        self._targets = {target: get_broker(shard_place(target)) for target in self._open}
        self._call = secrets.token_hex(8)

    # -- look

    def count(self) -> tuple[int, int]:
        """How many jobs and outcomes the shard has."""
        keys = [self._source.keys.of(queue) for queue in QueueReader(self._source).names()]
        commands: list[Command] = [("HLEN", key) for each in keys for key in (each.jobs, each.results)]
        numbers = self._source.redis.execute(commands, resend=True) if commands else []
        return sum(numbers[::2]), sum(numbers[1::2])

    def pauses(self) -> list[str]:
        """What is paused in the shard and not in all open ones, in words: there its jobs would run."""
        found = self._paused(self._source)
        others = [self._paused(broker) for broker in self._targets.values()]
        return sorted(what for what in found if any(what not in other for other in others))

    def _paused(self, broker: Broker) -> set[str]:
        queues = QueueReader(broker).names()
        keys = [broker.keys.of(queue) for queue in queues]
        commands: list[Command] = [("HGETALL", each.paused) for each in keys]
        commands += [("ZRANGE", each.paused_clients, 0, -1) for each in keys]
        replies = broker.redis.execute(commands, resend=True) if commands else []
        found = set()
        for queue, pauses, clients in zip(queues, replies[: len(keys)], replies[len(keys) :], strict=True):
            for name, entry in zip(pauses[::2], pauses[1::2], strict=True):
                if name == b"queue":
                    found.add(f"queue {queue}")
                elif b" " in entry:  # else it was resumed
                    found.add(f"task {name.decode().partition(':')[2]} in queue {queue}")
            found |= {f"client {client.decode()} in queue {queue}" for client in clients}
        return found

    # -- act

    def run(self, show: Callable[[int], object] = lambda number: None) -> Carried:
        """Carry all that can be carried. `show` is called with the number so far."""
        self._begin()
        jobs, outcomes = 0, 0
        while True:
            left, before = Counter[str](), jobs + outcomes
            for answers in self._steps():
                done = _count_done(answers)
                jobs += done
                left += _reasons(answers)
                show(jobs + outcomes)
            for answers in self._outcome_steps():
                outcomes += _count_done(answers)
                left += _reasons(answers)
                show(jobs + outcomes)
            if jobs + outcomes == before:
                break
        left["running"] += max(0, sum(self.count()) - left.total())
        if not +left:
            self._end()
        return Carried(jobs=jobs, outcomes=outcomes, left=+left)

    def _begin(self) -> None:
        """Let nothing of an earlier call happen any more, and end what it has begun."""
        queues = QueueReader(self._source).names()
        own: list[Command] = [("HSET", self._source.keys.of(queue).carried, "", self._call) for queue in queues]
        if own:
            self._source.redis.execute(own, resend=True)
        for broker in self._targets.values():
            theirs: list[Command] = [
                ("HSET", broker.keys.of(queue).arrivals, self._mark, self._call) for queue in queues
            ]
            if theirs:
                broker.redis.execute(theirs, resend=True)
        for number, broker in self._targets.items():
            for queue in queues:
                self._recover(queue, number, broker)

    @property
    def _mark(self) -> str:
        return f"from {self.number}"

    def _recover(self, queue: str, number: int, broker: Broker) -> None:
        """Admit what an earlier call has handed over, and forget what it has left on hold."""
        entries = broker.redis.execute_one(("HGETALL", broker.keys.of(queue).arrivals), resend=True)
        ids = [
            job_id for job_id, shard in zip(entries[::2], entries[1::2], strict=True) if shard == b"%d" % self.number
        ]
        for start in range(0, len(ids), AT_ONCE):
            part = ids[start : start + AT_ONCE]
            notes = self._source.redis.execute_one(("HMGET", self._source.keys.of(queue).carried, *part), resend=True)
            noted = {job_id.decode(): note == b"%d" % number for job_id, note in zip(part, notes, strict=True)}
            self._admit(queue, number, noted)

    def _end(self) -> None:
        """Nothing is left: the marks of this call are not needed any more."""
        for broker in self._targets.values():
            commands: list[Command] = [
                ("HDEL", broker.keys.of(queue).arrivals, self._mark) for queue in QueueReader(self._source).names()
            ]
            if commands:
                broker.redis.execute(commands, resend=True)

    def _steps(self) -> Iterator[Answers]:
        """The jobs of all lists, in their order."""
        sweeper = Sweeper(self._source, _CarryActions(self._source, self), Inspector)
        selection = Selection(states=(*WAITING, "dead"), until_ms=LATEST)
        for step in sweeper.steps(Sweep(verb="carry", selection=selection)):
            yield step.answers

    def _outcome_steps(self) -> Iterator[Answers]:
        for queue in QueueReader(self._source).names():
            cursor: Any = 0
            while True:
                scan: Command = ("HSCAN", self._source.keys.of(queue).results, cursor, "COUNT", 100)
                cursor, entries = self._source.redis.execute_one(scan, resend=True)
                ids = list(dict.fromkeys(job_id.decode() for job_id in entries[::2]))
                for start in range(0, len(ids), AT_ONCE):
                    yield self.carry(queue, ids[start : start + AT_ONCE])
                if cursor in (0, b"0"):
                    break

    def carry(self, queue: str, job_ids: Sequence[str]) -> Answers:
        """Carry these jobs. Returns what became of each: "carried <shard>", or why it stays."""
        calls = [SCRIPTS["pack_job"].call(self._source.keys.of(queue), (job_id,)) for job_id in job_ids]
        answers: Answers = {}
        parts: dict[int, dict[str, list[Any]]] = {}
        for job_id, packed in zip(job_ids, self._source.redis.execute(calls, resend=True), strict=True):
            if not packed[0] or (reason := _why_stays(job_id, packed[1])):
                answers[job_id] = packed[1].decode() if not packed[0] else reason
            else:
                target = self._target(queue, job_id, packed[1])
                parts.setdefault(target, {})[job_id] = packed
        for number, jobs in parts.items():
            answers |= self._carry_to(number, queue, jobs)
        return answers

    def _target(self, queue: str, job_id: str, texts: Sequence[bytes]) -> int:
        """Where it would go if it was enqueued now."""
        if len(texts) == 3:  # an outcome: it is asked for by its id
            return shard_for_job(queue, "", "", job_id, self._open)
        header, _ = read_head(texts[2][:_HEAD])
        digest = texts[7].partition(b" ")[2].partition(b" ")[2].partition(b" ")[0].decode()
        return shard_for_job(queue, header.client if header else "", digest, job_id, self._open)

    def _carry_to(self, number: int, queue: str, jobs: dict[str, list[Any]]) -> Answers:
        there, keys = self._targets[number], self._source.keys.of(queue)
        self._ask(there, [self._receive(there, queue, job_id, packed) for job_id, packed in jobs.items()])
        words = self._ask(
            self._source,
            [SCRIPTS["hand_over"].call(keys, (job_id, self._call, number, jobs[job_id][0])) for job_id in jobs],
        )
        answers = dict(zip(jobs, words, strict=True))
        self._admit(queue, number, {job_id: word == "handed" for job_id, word in answers.items()})
        done = [job_id for job_id, word in answers.items() if word == "handed"]
        if done:
            signals.job_carried.send_robust(Carrier, job_ids=done, queue=queue, shard=number)
        return {job_id: f"carried {number}" if word == "handed" else word for job_id, word in answers.items()}

    def _receive(self, there: Broker, queue: str, job_id: str, packed: Sequence[Any]) -> Command:
        _, texts, steps, lines, log_ms = packed
        arguments = (job_id, self.number, self._call, log_ms, len(texts), len(steps), *texts, *steps, *lines)
        return SCRIPTS["receive_job"].call(there.keys.of(queue), arguments)

    def _admit(self, queue: str, number: int, handed_over: dict[str, bool]) -> None:
        there = self._targets[number]
        keys = there.keys.of(queue)
        calls = [
            SCRIPTS["admit_job"].call(keys, (job_id, self.number, "" if is_ours else self._call))
            for job_id, is_ours in handed_over.items()
        ]
        self._ask(there, calls)

    def _ask(self, broker: Broker, calls: list[Command]) -> list[str]:
        """The answers to calls. Raises BrokerRefused if another drain of this shard has begun."""
        words = [word.decode() for word in broker.redis.execute(calls, resend=True)]
        if "outdated" in words:
            raise BrokerRefused(f"Another drain of shard {self.number} has begun, which goes on with this.")
        return words


class _CarryActions(Actions):
    """What a sweep does with the jobs that it finds: they are carried."""

    def __init__(self, broker: Broker, carrier: Carrier) -> None:
        super().__init__(broker, Inspector)
        self._carrier = carrier

    def act(self, verb: Verb, queue: str, job_ids: Sequence[str], how: How = PLAINLY) -> Answers:
        answers: Answers = {}
        for start in range(0, len(job_ids), AT_ONCE):
            answers |= self._carrier.carry(queue, job_ids[start : start + AT_ONCE])
        return answers


def _why_stays(job_id: str, texts: Sequence[bytes]) -> str:
    """Why a job has to stay in its shard; "": it has not."""
    if is_member(job_id):
        return "member"
    is_live = len(texts) > 3
    return "internal" if is_live and read_head(texts[2][:_HEAD])[1].startswith("django_rtq.internal_tasks.") else ""


def _count_done(answers: Answers) -> int:
    return sum(answer.startswith("carried") for answer in answers.values())


def _reasons(answers: Answers) -> Counter[str]:
    words = (answer.partition(" ")[0] for answer in answers.values())
    return Counter(word for word in words if word in REASONS)


# -- by their old ids


def current_place(backend: str, job_id: str) -> str:
    """Where a job is now, for people. That its shard is open, or not used, is seen without a question."""
    place = place_of_job(backend, job_id)
    if place_of(backend) or not shard_numbers() or is_in_open_shard(job_id):
        return place
    found = place_of_carried(backend, job_id, is_brief=True)
    return place if found is None else found


def is_in_open_shard(job_id: str) -> bool:
    """Whether the shard that the id names gets new jobs: then nobody has drained it."""
    return shard_in(job_id) in open_shards()


def place_of_carried(backend: str, job_id: str, queue: str | None = None, *, is_brief: bool = False) -> str | None:
    """Where a job is that its own shard does not have. None: nobody knows of another place.

    Its shard has a note where it went. If that is switched off, or taken out of the settings, all others are asked.
    `is_brief`: also if it does not answer within the time that a page waits for it.
    """
    numbers = shard_numbers()
    if place_of(backend) or not numbers:
        return None
    number, asked = shard_in(job_id), list[int]()
    while number in numbers and number not in asked:
        asked.append(number)
        try:
            note = _note_briefly(number, job_id) if is_brief else _note(get_broker(shard_place(number)), job_id, queue)
        except BrokerError:
            break
        if not note:
            return shard_place(number) if len(asked) > 1 else None
        number = int(note)
    return next(
        (place for number in numbers if number not in asked and _has(place := shard_place(number), job_id)), None
    )


def _note_briefly(number: int, job_id: str) -> bytes:
    read = partial(_note, get_broker(shard_place(number)), job_id, None)
    return ask_shards(lambda _inspector, _number: read(), [number]).checked()[number]


def _note(broker: Broker, job_id: str, queue: str | None) -> bytes:
    wanted = dict.fromkeys([*([queue] if queue else []), *QueueReader(broker).names()])
    commands: list[Command] = [("HGET", broker.keys.of(name).carried, job_id) for name in wanted]
    notes = broker.redis.execute(commands, resend=True) if commands else []
    return next((bytes(note) for note in notes if note), b"")


def _has(place: str, job_id: str) -> bool:
    try:
        get_inspector(place).find(job_id)
    except (JobNotFound, BrokerError, WrongState):
        return False
    return True

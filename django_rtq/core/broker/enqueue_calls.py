"""Sends many jobs: those of one call of enqueue(), or of several calls in one round trip.

What an enqueue costs Redis: D69.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any, NamedTuple

from django_rtq.core.broker.keys import Keys, QueueKeys
from django_rtq.core.broker.messages import PLAIN_FIELDS, EnqueueCall, NewJob, Unreplicated
from django_rtq.core.broker.redis.commands import Command, Steps, checked
from django_rtq.core.broker.scripts import AT_ONCE, MAINTAIN_AT_ONCE, SCRIPTS
from django_rtq.core.jobs.job import new_job_ids, shard_in, with_shard
from django_rtq.exceptions import BrokerError

logger = logging.getLogger("django_rtq")

JOBS_IN_FLIGHT = 4000  # of one round trip
CALLS_IN_FLIGHT = 8  # script calls of one round trip: Redis runs the first while the others are on their way
PATIENCE_SECONDS = 1.0  # or half of the time of a command, if that is less
IMPATIENCE_MS = 1  # 0 would be for ever


class _Part(NamedTuple):
    """What one call of the script sends."""

    command: Command
    owners: Sequence[int]  # of each job the number of its call


def enqueue_calls(
    keys: Keys, calls: Sequence[EnqueueCall], replicas: Replicas | None
) -> Steps[list[list[str] | BrokerError]]:
    """The answers to each call, or the error with which Redis refused any of its jobs. See Broker.enqueue_calls()."""
    answers: list[list[str] | BrokerError] = [[] for _ in calls]
    for trip in _trips(_parts(keys, calls)):
        commands = [part.command for part in trip]
        if replicas:
            *replies, waited = yield [*commands, replicas.wait_again()]
            replicas.note(waited)
        else:
            replies = yield commands
        for part, reply in zip(trip, replies, strict=True):
            for number, owner in enumerate(part.owners):
                answer = answers[owner]
                if isinstance(reply, BrokerError):
                    answers[owner] = reply
                elif not isinstance(answer, BrokerError):
                    answer.append(reply[number].decode())
    return answers


def _parts(keys: Keys, calls: Sequence[EnqueueCall]) -> Iterator[_Part]:
    """The calls of the script: few for each queue, with its jobs in the order of the calls."""
    queues: dict[str, list[tuple[int, NewJob]]] = {}
    for number, (queue, jobs, *_) in enumerate(calls):
        queues.setdefault(queue, []).extend((number, job) for job in jobs)
    for queue, owned in queues.items():
        # Calls for all or none go alone: more jobs than a script takes are refused by the caller.
        for together, group in groupby(owned, lambda each: each[0] if calls[each[0]].all_or_none else None):
            owners, jobs_of_group = zip(*group, strict=True)
            at_once = _at_once(jobs_of_group)
            for start in range(0, len(owners), at_once):
                part = jobs_of_group[start : start + at_once]
                command = _command(keys.of(queue), part, together is not None)
                yield _Part(command, owners[start : start + at_once])


def _trips(parts: Iterator[_Part]) -> Iterator[list[_Part]]:
    trip: list[_Part] = []
    jobs = 0
    for part in parts:
        if jobs + len(part.owners) > JOBS_IN_FLIGHT:
            yield trip
            trip, jobs = [], 0
        trip.append(part)
        jobs += len(part.owners)
    if trip:
        yield trip


def enqueue_many(keys: QueueKeys, jobs: list[NewJob], all_or_none: bool, replicas: Replicas | None) -> Steps[list[str]]:
    """Call the script for many jobs. Returns an answer for each job.

    They are Unreplicated if replicas did not have all of them in time. Raises BrokerError.
    """
    at_once = _at_once(jobs)
    if all_or_none and len(jobs) > at_once:
        raise ValueError(f"delay_many(all_or_none=True) takes at most {at_once} jobs of such a task, not {len(jobs)}.")
    answers: list[str] = []
    problem = ""
    in_flight = most_with_ids(jobs)
    for start in range(0, len(jobs), in_flight):
        batch = jobs[start : start + in_flight]
        if len(jobs) > in_flight:
            # Ids say since when jobs wait: the first ones may be too old by now.
            shard = shard_in(batch[0].id)  # that of all
            ids = [with_shard(job_id, shard) for job_id in new_job_ids(len(batch))]
            batch = [NewJob(job_id, *job[1:]) for job_id, job in zip(ids, batch, strict=True)]
            jobs[start : start + in_flight] = batch
        commands = [_command(keys, batch[i : i + at_once], all_or_none) for i in range(0, len(batch), at_once)]
        if replicas:
            *replies, waited = yield [*commands, replicas.wait(is_patient=not problem)]
            problem = replicas.problem(waited)
        else:
            replies = yield commands
        for reply in checked(replies):
            answers += [word.decode() for word in reply]
    return Unreplicated(answers, problem) if problem else answers


def most_with_ids(jobs: Iterable[NewJob]) -> int:
    """How many of these jobs one round trip of enqueue_many() takes. No more keep the ids that they have."""
    return CALLS_IN_FLIGHT * _at_once(jobs)


def _at_once(jobs: Iterable[NewJob]) -> int:
    """How many of these jobs one call of the script takes."""
    return MAINTAIN_AT_ONCE if any(job.digest for job in jobs) else AT_ONCE


def _command(keys: QueueKeys, jobs: Sequence[NewJob], all_or_none: bool) -> Command:
    size = len(NewJob._fields) if any(job.digest for job in jobs) else PLAIN_FIELDS
    arguments = chain(("1" if all_or_none else "", size), chain.from_iterable(job[:size] for job in jobs))
    return SCRIPTS["enqueue_many"].call(keys, arguments)


class Replicas:
    """RTQ["WAIT_REPLICAS"]: waits until so many replicas have what was stored. Any thread may use it.

    WAIT is in the packet of the scripts: it waits for what was written over its own connection.
    """

    def __init__(self, wanted: int, *, command_seconds: float) -> None:
        self._wanted = wanted
        self._patience_ms = max(IMPATIENCE_MS, int(min(PATIENCE_SECONDS, command_seconds / 2) * 1000))
        self._are_missing = False  # as a caller that does not raise found last

    def wait(self, *, is_patient: bool = True) -> Command:
        """The command that waits for them; the last of a packet."""
        return ("WAIT", self._wanted, self._patience_ms if is_patient else IMPATIENCE_MS)

    def wait_again(self) -> Command:
        """wait() for those who go on in any case: not for replicas that were missing a moment ago."""
        return self.wait(is_patient=not self._are_missing)

    def problem(self, reply: Any) -> str:
        """What the reply to it says is wrong; "": nothing."""
        if isinstance(reply, BrokerError):
            return f"Redis did not wait for replicas: {reply}"
        return "" if reply >= self._wanted else f"{reply} of {self._wanted} replicas had it in time"

    def note(self, reply: Any) -> None:
        """Log when replicas begin to be missing, for those who go on in any case."""
        problem = self.problem(reply)
        if problem and not self._are_missing:
            logger.warning("what was stored could get lost with the master of Redis: %s", problem)
        self._are_missing = bool(problem)

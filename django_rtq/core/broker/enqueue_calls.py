"""Sends many jobs: those of one call of enqueue() or enqueue_unique(), or of several calls in one round trip.

What an enqueue costs Redis: D69.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from django_rtq.core.broker.keys import Keys, QueueKeys
from django_rtq.core.broker.maintenance import MAINTAIN_AT_ONCE
from django_rtq.core.broker.messages import EnqueueCall, NewJob, UniqueJob, Unreplicated
from django_rtq.core.broker.redis.commands import Command, Steps, checked
from django_rtq.core.broker.scripts import AT_ONCE, SCRIPTS
from django_rtq.core.jobs.job import new_job_ids, shard_in, with_shard
from django_rtq.exceptions import BrokerError

if TYPE_CHECKING:
    from django_rtq.core.broker.replicas import Replicas

JOBS_IN_FLIGHT = 4000  # of one round trip
CALLS_IN_FLIGHT = 8  # script calls of one round trip: Redis runs the first while the others are on their way

AnyJob: TypeAlias = NewJob | UniqueJob
SentJob = TypeVar("SentJob", NewJob, UniqueJob)


class _Part(NamedTuple):
    """What one call of a script sends."""

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
    """The calls of scripts: few for each queue, with its jobs in the order of the calls."""
    queues: dict[str, list[tuple[int, AnyJob]]] = {}
    for number, (queue, jobs, *_) in enumerate(calls):
        queues.setdefault(queue, []).extend((number, job) for job in jobs)
    for queue, owned in queues.items():
        # Calls for all or none go alone: more jobs than a script takes are refused by the caller.
        for (is_unique, together), group in groupby(owned, lambda each: _kind(calls, *each)):
            same = list(group)
            script = SCRIPTS["enqueue_unique" if is_unique else "enqueue_many"]
            at_once = MAINTAIN_AT_ONCE if is_unique else AT_ONCE
            for start in range(0, len(same), at_once):
                owners, jobs_of_part = zip(*same[start : start + at_once], strict=True)
                arguments = chain((_together(together is not None),), chain.from_iterable(jobs_of_part))
                yield _Part(script.call(keys.of(queue), arguments), owners)


def _kind(calls: Sequence[EnqueueCall], number: int, job: AnyJob) -> tuple[bool, int | None]:
    """Which jobs may share a call of a script."""
    return isinstance(job, UniqueJob), number if calls[number].all_or_none else None


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


def enqueue_many(
    keys: QueueKeys, name: str, jobs: list[SentJob], at_once: int, all_or_none: bool, replicas: Replicas | None
) -> Steps[list[str]]:
    """Call a script for many jobs, `at_once` in a call. Returns an answer for each job.

    They are Unreplicated if replicas did not have all of them in time. Raises BrokerError.
    """
    script = SCRIPTS[name]
    if all_or_none and len(jobs) > at_once:
        raise ValueError(f"delay_many(all_or_none=True) takes at most {at_once} jobs of such a task, not {len(jobs)}.")
    answers: list[str] = []
    problem = ""
    in_flight = CALLS_IN_FLIGHT * at_once
    for start in range(0, len(jobs), in_flight):
        batch = jobs[start : start + in_flight]
        if len(jobs) > in_flight:
            # Ids say since when jobs wait: the first ones may be too old by now.
            shard = shard_in(batch[0].id)  # that of all
            ids = [with_shard(job_id, shard) for job_id in new_job_ids(len(batch))]
            batch = [type(job)(job_id, *job[1:]) for job_id, job in zip(ids, batch, strict=True)]
            jobs[start : start + in_flight] = batch
        parts = [batch[i : i + at_once] for i in range(0, len(batch), at_once)]
        first = (_together(all_or_none),)
        commands: list[Command] = [script.call(keys, chain(first, chain.from_iterable(part))) for part in parts]
        if replicas:
            *replies, waited = yield [*commands, replicas.wait(is_patient=not problem)]
            problem = replicas.problem(waited)
        else:
            replies = yield commands
        for reply in checked(replies):
            answers += [word.decode() for word in reply]
    return Unreplicated(answers, problem) if problem else answers


def _together(all_or_none: bool) -> str:
    """The first argument of these scripts."""
    return "1" if all_or_none else ""

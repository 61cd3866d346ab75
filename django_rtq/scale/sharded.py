"""The broker of producers of a project with RTQ["SHARDS"], which finds the shard of each job.

The packets to all of them are sent before a reply is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.messages import EnqueueCall, NewJob, Unreplicated
from django_rtq.core.broker.redis.client import RedisClient
from django_rtq.core.broker.redis.commands import Command, Steps, raised
from django_rtq.core.broker.task_backends import shard_place
from django_rtq.core.jobs.job import shard_in
from django_rtq.exceptions import BrokerError

T = TypeVar("T")


class AllShardsBroker(Broker):
    """The broker of producers: that of shard 0, which sends jobs to the shards that their ids name.

    A shard that does not answer raises after the others have got their jobs.
    """

    def by_shard(self, jobs: Sequence[NewJob]) -> list[_Part]:
        """The broker of each shard that gets some of the jobs, their positions, and these jobs."""
        positions: dict[int, list[int]] = {}
        for position, job in enumerate(jobs):
            positions.setdefault(shard_in(job.id), []).append(position)
        return [(self._broker_of(number), at, [jobs[each] for each in at]) for number, at in positions.items()]

    def _broker_of(self, number: int) -> Broker:
        return get_broker(shard_place(number)) if number else self

    def enqueue(self, queue: str, jobs: list[NewJob], *, all_or_none: bool = False) -> list[str]:
        """Enqueue jobs in their shards."""
        if len(jobs) == 1:
            return Broker.enqueue(self._broker_of(shard_in(jobs[0].id)), queue, jobs, all_or_none=all_or_none)
        parts = self.by_shard(jobs)
        steps = [(broker.redis, broker._enqueue(queue, part, all_or_none)) for broker, _, part in parts]
        return _merged(jobs, parts, run_together(steps))

    async def aenqueue(self, queue: str, jobs: list[NewJob], *, all_or_none: bool = False) -> list[str]:
        """enqueue() for coroutines."""
        parts = self.by_shard(jobs)
        sent = (Broker.aenqueue(broker, queue, part, all_or_none=all_or_none) for broker, _, part in parts)
        return _merged(jobs, parts, await asyncio.gather(*sent, return_exceptions=True))

    def enqueue_calls(self, calls: Sequence[EnqueueCall]) -> list[list[str] | BrokerError]:
        """Enqueue the jobs of several calls, in one round trip to each shard, all at once."""
        answers: list[list[str] | BrokerError] = [[""] * len(call.jobs) for call in calls]
        parts: dict[Broker, list[tuple[int, list[int], EnqueueCall]]] = {}
        for number, call in enumerate(calls):
            for broker, positions, jobs in self.by_shard(call.jobs):
                parts.setdefault(broker, []).append((number, positions, call._replace(jobs=jobs)))
        sent = [
            (broker.redis, broker._enqueue_calls([call for _, _, call in of_broker]))
            for broker, of_broker in parts.items()
        ]
        for of_broker, end in zip(parts.values(), run_together(sent), strict=True):
            replies = [end] * len(of_broker) if isinstance(end, BrokerError) else end
            for (number, positions, _), reply in zip(of_broker, replies, strict=True):
                answer = answers[number]
                if isinstance(reply, BrokerError):
                    answers[number] = reply
                elif not isinstance(answer, BrokerError):
                    for position, word in zip(positions, reply, strict=True):
                        answer[position] = word
        return answers


_Part = tuple[Broker, list[int], list[NewJob]]


def _merged(jobs: list[NewJob], parts: Iterable[_Part], ends: Iterable[Any]) -> list[str]:
    """An answer for each job. The jobs of the parts are noted, too: they may have new ids. Raises the first error."""
    answers, problem, error = [""] * len(jobs), "", None
    for (_, positions, part), end in zip(parts, ends, strict=True):
        for position, job in zip(positions, part, strict=True):
            jobs[position] = job  # also without an answer: Redis may have it
        if isinstance(end, BrokerError):
            error = error or end
            continue
        words = raised(end)
        problem = words.problem if isinstance(words, Unreplicated) else problem
        for position, answer in zip(positions, words, strict=True):
            answers[position] = answer
    if error is not None:
        raise error
    return Unreplicated(answers, problem) if problem else answers


def run_together(operations: Sequence[tuple[RedisClient, Steps[T]]]) -> list[T | BrokerError]:
    """Run operations on several servers: in each round all packets are sent before a reply is read.

    Returns what each of them returns, or its BrokerError.
    """
    ends: dict[int, T | BrokerError] = {}
    replies: dict[int, list[Any]] = {}
    while len(ends) < len(operations):
        sent: dict[int, tuple[RedisClient, Sequence[Command], Any]] = {}
        try:
            for number, (client, steps) in enumerate(operations):
                if number not in ends:
                    try:
                        commands = steps.send(replies[number]) if number in replies else next(steps)
                        sent[number] = client, commands, client.begin(commands)
                    except StopIteration as end:
                        ends[number] = end.value
                    except BrokerError as error:
                        ends[number] = error
            for number in list(sent):
                client, commands, connection = sent.pop(number)
                try:
                    replies[number] = client.execute_each(commands, resend=True, sent=connection)
                except BrokerError as error:
                    ends[number] = error
        finally:
            for client, _, connection in sent.values():  # nobody asks for the replies
                if connection is not None:
                    client.connections.drop(connection)
    return [ends[number] for number in range(len(operations))]

"""Where jobs of a project with RTQ["SHARDS"] go, and the broker of producers, which finds the shard of each job (D146).

A shard holds all queues, for a part of the clients: what one script does with queues, turns and limits stays one
script. An id names the shard of its job for ever, so nothing is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.enqueue_calls import AnyJob
from django_rtq.core.broker.messages import EnqueueCall, NewJob, UniqueJob, Unreplicated
from django_rtq.core.broker.redis.client import run_together
from django_rtq.core.broker.redis.commands import Steps, raised
from django_rtq.core.broker.task_backends import place_of, shard_numbers, shard_of, shard_pinned_in, shard_place
from django_rtq.core.conf.config import Config, get_config
from django_rtq.core.jobs.job import new_job_id, shard_in, with_shard
from django_rtq.exceptions import BrokerError

NewId = Callable[..., str]  # of the client of a job, and the digest of a unique one

# -- where jobs go


def new_ids(backend: str, queue: str) -> NewId | None:
    """What makes ids that name the shards of jobs. None: no shards, or the backend has a Redis of its own."""
    pinned = shard_pinned_in(backend) if backend else None
    if pinned is None and not has_shards(backend):
        return None
    return _new_ids(queue, pinned)


@lru_cache(maxsize=1000)
def _new_ids(queue: str, pinned: int | None) -> NewId:
    """all_shards() forgets it with the settings."""
    numbers = all_shards()

    def new_id(client: str, digest: str = "") -> str:
        shard = shard_of_client(queue, client) if pinned is None else pinned
        if shard is not None:
            return new_job_id(shard)
        job_id = new_job_id()
        return with_shard(job_id, _shard_without_client(digest, job_id, numbers))

    return new_id


def has_shards(backend: str) -> bool:
    """Whether jobs of this backend go to shards: the backend has no Redis of its own."""
    return bool(all_shards()) and not (backend and place_of(backend))


def new_workflow_home(client: str, key: str) -> int:
    """The shard of a new workflow: of its client, else of its key, else any."""
    numbers = all_shards()
    return shard_for(f"client {client}" if client else f"workflow {key or new_job_id()}", numbers) if numbers else 0


def check_together(jobs: Sequence[AnyJob]) -> None:
    """Raises ValueError if jobs that are to be stored together are in several shards."""
    if len(shards := {shard_in(job.id) for job in jobs}) > 1:
        raise ValueError(
            f"delay_many(all_or_none=True) cannot store these jobs together: they belong to {len(shards)} shards, "
            "which no script reaches at once. Call it once for each client: a client is in one shard."
        )


def all_shards() -> tuple[int, ...]:
    """The numbers of the shards."""
    config = get_config()
    if _all.config is not config:
        _all.config, _all.numbers = config, tuple(shard_numbers())
        _new_ids.cache_clear()
        shard_of_client.cache_clear()
    return _all.numbers


class _All:
    """What all_shards() has found, and for which settings."""

    config: Config | None = None
    numbers: tuple[int, ...] = ()


_all = _All()


def shard_for_job(queue: str, client: str, digest: str, job_id: str, numbers: tuple[int, ...]) -> int:
    """The shard of the queue, if it is in one; else of the client; without one of the digest of a unique job, or of
    the id."""
    shard = shard_of_client(queue, client)
    return _shard_without_client(digest, job_id, numbers) if shard is None else shard


def _shard_without_client(digest: str, job_id: str, numbers: tuple[int, ...]) -> int:
    if digest:
        return shard_for(f"digest {digest}", numbers)
    return numbers[int(job_id[-8:], 16) % len(numbers)]


@lru_cache(maxsize=20_000)
def shard_of_client(queue: str, client: str) -> int | None:
    """Of the queue, if it is in one, else of the client; None without a client. all_shards() forgets it with the
    settings."""
    numbers = all_shards()
    pinned = shard_of_queue(queue, numbers)
    return shard_for(f"client {client}", numbers) if pinned is None and client else pinned


def shard_of_queue(queue: str, numbers: tuple[int, ...]) -> int | None:
    """The shard of a queue that is in one as a whole ("shards": 1); None: its clients are spread."""
    options = get_config().queues.get(queue)
    return shard_for(f"queue {queue}", numbers) if options and options.get("shards") else None


def is_elsewhere(queue: str, place: str) -> bool:
    """Whether a queue as a whole is in another shard than this place."""
    numbers = all_shards()
    pinned = None if not numbers or shard_of(place) is None else shard_of_queue(queue, numbers)
    return pinned is not None and pinned != shard_of(place)


def shard_for(name: str, numbers: tuple[int, ...]) -> int:
    """The shard of a name by rendezvous hashing: it changes for one name in n when shard n is added.

    Never change it: it would misplace jobs.
    """
    return max(numbers, key=lambda number: blake2b(f"{number} {name}".encode(), digest_size=8).digest())


class AllShardsBroker(Broker):
    """The broker of producers: that of shard 0, which sends jobs to the shards that their ids name.

    A shard that does not answer raises after the others have got their jobs.
    """

    def __init__(
        self, config: Config, *, find: Callable[[str], Broker], role: str = "client", backend: str = ""
    ) -> None:
        super().__init__(config, role=role, backend=backend)
        self._find = find  # the broker of another place

    def by_shard(self, jobs: Sequence[AnyJob]) -> list[tuple[Broker, list[int]]]:
        """The broker of each shard that gets some of the jobs, and their positions."""
        positions: dict[int, list[int]] = {}
        for position, job in enumerate(jobs):
            positions.setdefault(shard_in(job.id), []).append(position)
        return [(self._broker_of(number), of_shard) for number, of_shard in positions.items()]

    def _broker_of(self, number: int) -> Broker:
        return self._find(shard_place(number)) if number else self

    def enqueue(self, queue: str, jobs: list[NewJob], *, all_or_none: bool = False) -> list[str]:
        """Enqueue jobs in their shards."""
        if len(jobs) == 1:
            number = shard_in(jobs[0].id)
            broker = self._find(shard_place(number)) if number else self
            return Broker.enqueue(broker, queue, jobs, all_or_none=all_or_none)
        return self._each(queue, jobs, lambda broker, part: broker._enqueue(queue, part, all_or_none))

    def enqueue_unique(self, queue: str, jobs: list[UniqueJob], *, all_or_none: bool = False) -> list[str]:
        """Enqueue unique jobs in their shards."""
        return self._each(queue, jobs, lambda broker, part: broker._enqueue_unique(queue, part, all_or_none))

    def _each(self, queue: str, jobs: list[Any], steps: Callable[[Broker, list[Any]], Steps[list[str]]]) -> list[str]:
        """All packets are sent before a reply is read."""
        merged = _Merged(jobs)
        parts = [(broker, at, merged.take(at)) for broker, at in self.by_shard(jobs)]
        ends = run_together([(broker.redis, steps(broker, part)) for broker, _, part in parts])
        for (_, positions, part), words in zip(parts, ends, strict=True):
            with merged.errors:
                merged.put(positions, part, raised(words))
        return merged.answers()

    async def aenqueue(self, queue: str, jobs: list[NewJob], *, all_or_none: bool = False) -> list[str]:
        """enqueue() for coroutines."""
        return await self._aeach(
            jobs, lambda broker, part: Broker.aenqueue(broker, queue, part, all_or_none=all_or_none)
        )

    async def aenqueue_unique(self, queue: str, jobs: list[UniqueJob], *, all_or_none: bool = False) -> list[str]:
        """enqueue_unique() for coroutines."""
        return await self._aeach(
            jobs, lambda broker, part: Broker.aenqueue_unique(broker, queue, part, all_or_none=all_or_none)
        )

    async def _aeach(
        self, jobs: list[Any], send: Callable[[Broker, list[Any]], Coroutine[Any, Any, list[str]]]
    ) -> list[str]:
        import asyncio  # workers do not come here

        merged = _Merged(jobs)
        parts = [(broker, at, merged.take(at)) for broker, at in self.by_shard(jobs)]
        ends = await asyncio.gather(*(send(broker, part) for broker, _, part in parts), return_exceptions=True)
        for (_, positions, part), words in zip(parts, ends, strict=True):
            with merged.errors:
                merged.put(positions, part, raised(words))
        return merged.answers()

    def enqueue_calls(self, calls: Sequence[EnqueueCall]) -> list[list[str] | BrokerError]:
        """Enqueue the jobs of several calls, in one round trip to each shard, all at once."""
        answers: list[list[str] | BrokerError] = [[""] * len(call.jobs) for call in calls]
        parts: dict[Broker, list[tuple[int, list[int]]]] = {}
        for number, call in enumerate(calls):
            for broker, positions in self.by_shard(call.jobs):
                parts.setdefault(broker, []).append((number, positions))
        sent = [
            (broker.redis, broker._enqueue_calls([_part_of(calls[number], at) for number, at in of_broker]))
            for broker, of_broker in parts.items()
        ]
        for of_broker, end in zip(parts.values(), run_together(sent), strict=True):
            replies = [end] * len(of_broker) if isinstance(end, BrokerError) else end
            for (number, positions), reply in zip(of_broker, replies, strict=True):
                answer = answers[number]
                if isinstance(reply, BrokerError):
                    answers[number] = reply
                elif not isinstance(answer, BrokerError):
                    for position, word in zip(positions, reply, strict=True):
                        answer[position] = word
        return answers


def _part_of(call: EnqueueCall, positions: Sequence[int]) -> EnqueueCall:
    return call._replace(jobs=[call.jobs[position] for position in positions])


class _Merged:
    """The answers about jobs that were sent in parts."""

    def __init__(self, jobs: list[Any]) -> None:
        self._jobs = jobs
        self._answers = [""] * len(jobs)
        self._problem = ""  # of replicas
        self.errors = _FirstError()

    def take(self, positions: Sequence[int]) -> list[Any]:
        return [self._jobs[position] for position in positions]

    def put(self, positions: Sequence[int], part: Sequence[Any], answers: Sequence[str]) -> None:
        """Note the answers, and the jobs: they may have new ids."""
        if isinstance(answers, Unreplicated):
            self._problem = answers.problem
        for position, job, answer in zip(positions, part, answers, strict=True):
            self._jobs[position], self._answers[position] = job, answer

    def answers(self) -> list[str]:
        """An answer for each job. Raises the first error."""
        if self.errors.first is not None:
            raise self.errors.first
        return Unreplicated(self._answers, self._problem) if self._problem else self._answers


class _FirstError:
    """Blocks whose BrokerErrors wait until all are done."""

    first: BrokerError | None = None

    def __enter__(self) -> None:
        """Nothing."""

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if not isinstance(error, BrokerError):
            return False
        self.first = self.first or error
        return True

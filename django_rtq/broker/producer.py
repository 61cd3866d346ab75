"""The part of the Broker that enqueues jobs, for threads and for coroutines. What an enqueue costs Redis: D69."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from django_rtq import signals
from django_rtq.broker.enqueue_calls import AnyJob, EnqueueCall, enqueue_calls, script_mode
from django_rtq.broker.keys import Keys, QueueKeys
from django_rtq.broker.limits import LimitStore
from django_rtq.broker.maintenance import MAINTAIN_AT_ONCE
from django_rtq.broker.messages import NewJob, UniqueJob, as_unique
from django_rtq.broker.redis.client import RedisClient
from django_rtq.broker.redis.commands import Command, Steps, checked
from django_rtq.broker.redis.connections import (
    ConnectionSettings,
    check_server_mode,
    check_server_version,
    is_too_old_for,
    version_in,
)
from django_rtq.broker.scripts import AT_ONCE, SCRIPTS
from django_rtq.broker.stored_format import check_format, format_commands
from django_rtq.conf.config import Config
from django_rtq.exceptions import BrokerError
from django_rtq.jobs.job import made_ms, new_job_ids
from django_rtq.jobs.outcome import DROPPED
from django_rtq.jobs.record import write_record
from django_rtq.threads import shared_property

if TYPE_CHECKING:
    from django_rtq.broker.redis.async_client import AsyncRedisClient

Job = TypeVar("Job", NewJob, UniqueJob)

LARGE_CHARACTERS = 4000  # bodies that Lua does not join with their headers
CALLS_IN_FLIGHT = 8  # script calls of one round trip: Redis runs the first while the others are on their way


class Producer:
    """Enqueues jobs. Any thread and any event loop may use it.

    What it enqueues may cancel older jobs (on_full="drop_oldest"): then it sends job_dropped.
    """

    def __init__(self, redis: RedisClient, connection_settings: ConnectionSettings, keys: Keys, config: Config) -> None:
        self.config = config
        self.redis = redis
        self.connection_settings = connection_settings
        self.keys = keys
        self.limits = LimitStore(redis, keys, config)
        self._registered_queues: set[str] = set()
        self._plain_queues: set[str] = set()  # those of them that were not seen to have max_waiting
        #: How scripts drop jobs of a full queue, as they take it; "": they do not. No method: the broker has objects
        #: that keep it, and without a cycle its connections are closed with it.
        self._drop_modes: dict[str, str] = {}  # of queues
        self.drop_mode: Callable[[str], str] = partial(_drop_mode, config, self._drop_modes)

    @shared_property
    def async_redis(self) -> AsyncRedisClient:
        """For coroutines."""
        from django_rtq.broker.redis.async_client import AsyncRedisClient  # only processes that use it need it

        return AsyncRedisClient(self.connection_settings.command_pool(role="async"))

    def enqueue(self, queue: str, jobs: list[NewJob], *, all_or_none: bool = False) -> list[str]:
        """Enqueue jobs: "ok", "exists" for a known id (G8), or "full ..." for one that does not fit (max_waiting).

        More jobs than one round trip takes get new ids in the list, right before they are sent. `all_or_none`: store no
        job if one does not fit; at most AT_ONCE. Raises BrokerUnavailable, BrokerFull.
        """
        if len(jobs) == 1 and not jobs[0].due and queue in self._plain_queues:
            answer: bytes = self.redis.execute_one(_enqueue_command(self.keys.of(queue), jobs[0]), resend=True)
            if answer != b"limited":
                return [answer.decode()]
        words = self.redis.run(self._enqueue(queue, jobs, all_or_none))
        return words if len(words) == len(jobs) else self._tell_dropped(queue, jobs, words)

    async def aenqueue(self, queue: str, jobs: list[NewJob], *, all_or_none: bool = False) -> list[str]:
        """enqueue() for coroutines."""
        return await self._atell_dropped(
            queue, jobs, await self.async_redis.run(self._enqueue(queue, jobs, all_or_none))
        )

    def enqueue_unique(self, queue: str, jobs: list[UniqueJob], *, all_or_none: bool = False) -> list[str]:
        """enqueue() of jobs that have no duplicate alive (G9): also "duplicate <id>", "after <id>"."""
        return self._tell_dropped(queue, jobs, self.redis.run(self._enqueue_unique(queue, jobs, all_or_none)))

    async def aenqueue_unique(self, queue: str, jobs: list[UniqueJob], *, all_or_none: bool = False) -> list[str]:
        """enqueue_unique() for coroutines."""
        return await self._atell_dropped(
            queue, jobs, await self.async_redis.run(self._enqueue_unique(queue, jobs, all_or_none))
        )

    def enqueue_calls(self, calls: Sequence[EnqueueCall]) -> list[list[str] | BrokerError]:
        """Enqueue the jobs of several calls in one round trip. For each call its answers, or a BrokerError."""
        self.register_queues({call.queue for call in calls} - self._registered_queues)
        dropped: dict[str, list[str]] = {}
        answers = enqueue_calls(self.redis, self.keys, calls, self.drop_mode, dropped)
        for queue, job_ids in dropped.items():
            signals.job_dropped.send_robust(Producer, job_ids=job_ids, queue=queue)
        return answers

    def _enqueue(self, queue: str, jobs: list[NewJob], all_or_none: bool) -> Steps[list[str]]:
        yield from self._register_queue(queue)
        if len(jobs) == 1 and not jobs[0].due and queue in self._plain_queues:
            (answer,) = checked((yield [_enqueue_command(self.keys.of(queue), jobs[0])]))
            if answer != b"limited":
                return [answer.decode()]
            self._plain_queues.discard(queue)
        if self.drop_mode(queue):
            return (yield from self._enqueue_unique(queue, jobs, all_or_none))
        return (
            yield from _enqueue_many(self.keys.of(queue), "enqueue_many", jobs, AT_ONCE, "1" if all_or_none else "")
        )

    def _enqueue_unique(self, queue: str, jobs: list[Job], all_or_none: bool) -> Steps[list[str]]:
        yield from self._register_queue(queue)
        mode = script_mode(all_or_none, self.drop_mode(queue))
        return (yield from _enqueue_many(self.keys.of(queue), "enqueue_unique", jobs, MAINTAIN_AT_ONCE, mode))

    def _tell_dropped(self, queue: str, jobs: Sequence[AnyJob], words: Sequence[str]) -> list[str]:
        """Send the signal of dropped jobs, and return the answers: one for each job."""
        if dropped := words[len(jobs) :]:
            signals.job_dropped.send_robust(Producer, job_ids=dropped, queue=queue)
        return list(words[: len(jobs)])

    async def _atell_dropped(self, queue: str, jobs: Sequence[AnyJob], words: Sequence[str]) -> list[str]:
        if dropped := words[len(jobs) :]:
            await signals.job_dropped.asend_robust(Producer, job_ids=dropped, queue=queue)
        return list(words[: len(jobs)])

    def _register_queue(self, queue: str) -> Steps[None]:
        if queue not in self._registered_queues:
            yield from self._register_queues([queue])

    def register_queues(self, queues: Iterable[str]) -> None:
        """Begin to use queues: add them to the list that the admin shows, and store the limits of the settings.

        Raises ConfigurationError for a server that cannot be used, and FormatMismatch.
        """
        if names := list(queues):
            self.redis.run(self._register_queues(names))

    def _register_queues(self, names: Sequence[str]) -> Steps[None]:
        for name in names:
            self.keys.of(name)  # raises InvalidTask: a name that is in the list stays there
        limits = [command for name in names if (command := self.limits.settings_command(name))]
        added: Command = ("SADD", self.keys.queues, *names)
        hello, _, stored_format, *replies = yield [("HELLO",), *format_commands(self.keys), added, *limits]
        check_server_mode(hello)
        if is_too_old_for(hello):
            (info,) = yield [("INFO", "server")]
            check_server_version(version_in(info))
        check_format(stored_format, self.keys)
        checked(replies)
        self._registered_queues.update(names)
        self._plain_queues.update(names)


def _drop_mode(config: Config, known: dict[str, str], queue: str) -> str:
    mode = known.get(queue)
    if mode is None:
        is_on = config.queue(queue).on_full == "drop_oldest"
        mode = known[queue] = f"{config.max_results} {config.cancelled_ttl_ms} {DROPPED}" if is_on else ""
    return mode


def _enqueue_command(keys: QueueKeys, job: NewJob) -> Command:
    """The command that enqueues a job that is not delayed."""
    job_id, priority, max_crashes, client, _, expires, at_front, body = job
    arguments: tuple[str | int, ...] = (job_id, priority, max_crashes, client, expires, at_front, body)
    if len(body) > LARGE_CHARACTERS and not expires:
        record = write_record(priority, max_crashes, made_ms(job_id), client, body)
        arguments = (job_id, priority, "", client, "", at_front, record)
    return SCRIPTS["enqueue"].packed_call(keys, arguments)


def _enqueue_many(keys: QueueKeys, name: str, jobs: list[Job], at_once: int, mode: str) -> Steps[list[str]]:
    """Call a script for many jobs, `at_once` in a call. Returns an answer for each job, then the ids of dropped jobs.

    Raises BrokerError.
    """
    script = SCRIPTS[name]
    if mode.startswith("1") and len(jobs) > at_once:
        raise ValueError(f"delay_many(all_or_none=True) takes at most {at_once} jobs of such a task, not {len(jobs)}.")
    answers: list[str] = []
    dropped: list[str] = []
    in_flight = CALLS_IN_FLIGHT * at_once
    for start in range(0, len(jobs), in_flight):
        batch = jobs[start : start + in_flight]
        if len(jobs) > in_flight:
            # Ids say since when jobs wait: the first ones may be too old by now.
            ids = new_job_ids(len(batch))
            batch = [type(job)(job_id, *job[1:]) for job_id, job in zip(ids, batch, strict=True)]
            jobs[start : start + in_flight] = batch
        sent = batch if name == "enqueue_many" else list(map(as_unique, batch))
        parts = [sent[i : i + at_once] for i in range(0, len(sent), at_once)]
        replies = yield [script.call(keys, chain((mode,), chain.from_iterable(part))) for part in parts]
        for part, reply in zip(parts, checked(replies), strict=True):
            words = [word.decode() for word in reply]
            answers += words[: len(part)]
            dropped += words[len(part) :]
    return answers + dropped

"""The Broker: what every program needs of a Redis, and what enqueues jobs.

Every method may be repeated when its reply was lost. The header of each script says what happens then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from django_rtq.core.broker.enqueue_calls import Replicas, enqueue_calls, enqueue_many
from django_rtq.core.broker.keys import Keys, QueueKeys, read_queue_names
from django_rtq.core.broker.messages import EnqueueCall, NewJob
from django_rtq.core.broker.redis.client import BlockingClient, RedisClient
from django_rtq.core.broker.redis.commands import Command, Steps, checked
from django_rtq.core.broker.redis.settings import read_connection_settings
from django_rtq.core.broker.scripts import SCRIPTS, read_all
from django_rtq.core.broker.server_info import check_server, format_commands
from django_rtq.core.broker.task_backends import in_settings
from django_rtq.core.conf.config import Config, check_redis_is_allowed
from django_rtq.core.extension import required
from django_rtq.core.jobs.job import made_ms, write_record
from django_rtq.exceptions import BrokerError

if TYPE_CHECKING:
    from django_rtq.core.broker.redis.async_client import AsyncRedisClient
    from django_rtq.core.broker.schedule_store import ScheduleStore

S = TypeVar("S")

LARGE_CHARACTERS = 4000  # bodies that Lua does not join with their headers
JOBS_OF_LIMITED = 1000  # of a queue with max_waiting; then the plain script is asked whether it still has that
MAX_WAIT_SECONDS = 30.0  # of one blocking command of a caller that waits; then it asks again: the token may be lost


class shared_property(cached_property[S]):
    """A `cached_property` of which all threads get the same value, also those that ask for it first at the same time.

    Since Python 3.12 `cached_property` gives each of them a value of its own, and keeps the last. The function may be
    called several times; all values but the first that is stored are dropped. So it must not open anything.
    """

    if not TYPE_CHECKING:

        def __get__(self, instance, owner=None):
            return self if instance is None else vars(instance).setdefault(self.attrname, self.func(instance))


class Broker:
    """A Redis with jobs: for producers. Workers and schedulers have a WorkerBroker.

    Any thread may use it; coroutines use the methods whose names begin with `a`. A process that was forked needs a new
    one.
    """

    backend = ""  # in TASKS, with this Redis; "": that of RTQ["REDIS"]

    def __init__(self, config: Config, *, role: str = "client", backend: str = "") -> None:
        self.backend = backend
        config = check_redis_is_allowed(config)
        self.connection_settings = replace(
            read_connection_settings(config), in_settings=partial(in_settings, backend=backend)
        )
        if role == "client":  # a web request must not wait for as long as a worker may
            self.connection_settings = replace(
                self.connection_settings,
                socket_timeout=config.socket_timeout,
                connect_timeout=config.socket_connect_timeout,
            )
        else:
            read_all()  # an upgrade may replace the files while this process runs
        self.config = config
        self.redis = RedisClient(self.connection_settings.command_pool(role=role))
        self.keys = Keys(config.prefix, in_cluster=getattr(self.connection_settings.service, "is_cluster", False))
        #: Registered ones, with how many jobs enqueue_many takes, for max_waiting, before the plain script is tried.
        self._registered_queues: dict[str, int] = {}
        self._replicas: Replicas | None = None
        if config.wait_replicas:
            self._replicas = Replicas(config.wait_replicas, command_seconds=self.connection_settings.socket_timeout)

    @shared_property
    def schedules(self) -> ScheduleStore:
        """What Redis stores of schedules."""
        from django_rtq.core.broker.schedule_store import ScheduleStore  # producers need none

        return ScheduleStore(self.redis, self.keys)

    @shared_property
    def limits(self) -> Any:
        """The LimitStore."""
        return required("limits")(self.redis, self.keys, self.config)

    @shared_property
    def async_redis(self) -> AsyncRedisClient:
        """For coroutines."""
        from django_rtq.core.broker.redis.async_client import BLOCK_SECONDS, AsyncRedisClient  # few processes use it

        settings = self.connection_settings
        waits = settings.blocking_pool(role="wait", block_seconds=BLOCK_SECONDS)
        return AsyncRedisClient(settings.command_pool(role="async"), waits)

    @shared_property
    def waits(self) -> BlockingClient:
        """For callers that wait for the end of a job."""
        return BlockingClient(self.connection_settings.blocking_pool(role="wait", block_seconds=MAX_WAIT_SECONDS))

    def store_of(self, kind: Callable[[Broker], S]) -> S:
        """What an app stores in this Redis."""
        return kind(self)

    def close(self) -> None:
        """Close all connections. The broker may be used again. Coroutines that wait for a reply get it."""
        self.redis.close()
        for name in ("waits", "async_redis"):
            if name in vars(self):
                getattr(self, name).close()

    def enqueue(self, queue: str, jobs: list[NewJob], *, all_or_none: bool = False) -> list[str]:
        """Enqueue jobs: "ok", "exists" for a known id (G8), or "full ..." for one that does not fit (max_waiting).

        Unique ones (G9): also "duplicate <id>" of one that is alive, "after <id>". More jobs than one round trip takes
        get new ids in the list, right before they are sent. `all_or_none`: store no job if one does not fit; at most
        AT_ONCE, of unique ones MAINTAIN_AT_ONCE. Raises BrokerUnavailable, BrokerFull.
        """
        if self._is_plain(queue, jobs):  # a step would cost delay() 5 % more
            answer: bytes = self.redis.execute_one(_enqueue_command(self.keys.of(queue), jobs[0]), resend=True)
            if answer != b"limited":
                return [answer.decode()]
            self._registered_queues[queue] = JOBS_OF_LIMITED
        return self.redis.run(self._enqueue(queue, jobs, all_or_none))

    async def aenqueue(self, queue: str, jobs: list[NewJob], *, all_or_none: bool = False) -> list[str]:
        """enqueue() for coroutines."""
        return await self.async_redis.run(self._enqueue(queue, jobs, all_or_none))

    def enqueue_calls(self, calls: Sequence[EnqueueCall]) -> list[list[str] | BrokerError]:
        """Enqueue the jobs of several calls in one round trip. For each call its answers, or a BrokerError."""
        return self.redis.run(self._enqueue_calls(calls))

    def _enqueue_calls(self, calls: Sequence[EnqueueCall]) -> Steps[list[list[str] | BrokerError]]:
        if names := list({call.queue for call in calls} - self._registered_queues.keys()):
            yield from self._register_queues(names)
        return (yield from enqueue_calls(self.keys, calls, self._replicas))

    def _enqueue(self, queue: str, jobs: list[NewJob], all_or_none: bool) -> Steps[list[str]]:
        if queue not in self._registered_queues:
            yield from self._register_queues([queue])
        if self._is_plain(queue, jobs):
            (answer,) = checked((yield [_enqueue_command(self.keys.of(queue), jobs[0])]))
            if answer != b"limited":
                return [answer.decode()]
            self._registered_queues[queue] = JOBS_OF_LIMITED
        self._registered_queues[queue] = max(0, self._registered_queues[queue] - len(jobs))
        return (yield from enqueue_many(self.keys.of(queue), jobs, all_or_none, self._replicas))

    def _is_plain(self, queue: str, jobs: Sequence[NewJob]) -> bool:
        """Whether the plain script, which knows no max_waiting, may take them."""
        if len(jobs) != 1 or jobs[0].due or jobs[0].digest or self._replicas:
            return False
        return self._registered_queues.get(queue) == 0

    def register_queues(self, queues: Iterable[str]) -> None:
        """Begin to use queues: add them to the list that the admin shows, and store the limits of the settings.

        Raises ConfigurationError for a server that cannot be used, and FormatMismatch.
        """
        if names := list(queues):
            self.redis.run(self._register_queues(names))

    def _register_queues(self, names: Sequence[str]) -> Steps[None]:
        for name in names:
            self.keys.of(name)  # raises InvalidTask: a name that is in the list stays there
        limits = [self.limits.settings_command(name) for name in names if self.config.queue(name).has_limits]
        added: Command = ("SADD", self.keys.queues, *names)
        limited = [("EXISTS", self.keys.of(name).waiting_limits) for name in names]
        hello, _, stored_format, *replies = yield [("HELLO",), *format_commands(self.keys), added, *limits, *limited]
        yield from check_server(hello, stored_format, self.keys, self.redis.in_settings)
        for name, is_limited in zip(names, checked(replies)[-len(names) :], strict=True):
            self._registered_queues[name] = JOBS_OF_LIMITED if is_limited else 0

    def queue_names(self) -> list[str]:
        """The names of all queues, sorted."""
        return read_queue_names(self.redis.execute_one(("SMEMBERS", self.keys.queues), resend=True))

    def errors(self, queue: str, job_id: bytes) -> bytes:
        """The last failures of a job, one JSON per line."""
        return self.redis.execute_one(("HGET", self.keys.of(queue).errors, job_id), resend=True) or b""


def _enqueue_command(keys: QueueKeys, job: NewJob) -> Command:
    """The command that enqueues a job that is neither delayed nor unique."""
    job_id, priority, max_crashes, client, _, expires, at_front, body, *_ = job
    arguments: tuple[str | int, ...] = (job_id, priority, max_crashes, client, expires, at_front, body)
    if len(body) > LARGE_CHARACTERS and not expires:
        record = write_record(priority, max_crashes, made_ms(job_id), client, body)
        arguments = (job_id, priority, "", client, "", at_front, record)
    return SCRIPTS["enqueue"].call(keys, arguments)

"""The Broker: a method for each change of a job that a program makes.

Every method may be repeated when its reply was lost. The header of each script says what happens then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from django_rtq.core.broker.enqueue_calls import enqueue_calls, enqueue_many
from django_rtq.core.broker.keys import Keys, QueueKeys
from django_rtq.core.broker.messages import (
    ClaimResult,
    EnqueueCall,
    HeartbeatResult,
    NewJob,
    earliest_seconds,
    promoted_ids,
    read_cancel_requests,
)
from django_rtq.core.broker.redis.client import BlockingClient, RedisClient, clock_ms
from django_rtq.core.broker.redis.commands import Argument, Command, Packet, Steps, checked
from django_rtq.core.broker.redis.connections import check_server_mode, check_server_version, is_too_old_for, version_in
from django_rtq.core.broker.redis.settings import read_connection_settings
from django_rtq.core.broker.scripts import AT_ONCE, MAINTAIN_AT_ONCE, SCRIPTS, read_all
from django_rtq.core.broker.settlement import Settlement, settlement_calls, take_acks
from django_rtq.core.broker.stored_format import check_format, format_commands, note_loss
from django_rtq.core.broker.task_backends import in_settings
from django_rtq.core.broker.worker_info import WorkerInfo, forget_info_commands, recent_workers, worker_info_commands
from django_rtq.core.conf.config import Config, check_redis_is_allowed
from django_rtq.core.extension import parts, required
from django_rtq.core.jobs.job import PARK_SECONDS, Job, made_ms
from django_rtq.core.jobs.record import Header, HeldEntry, read_head, read_record, write_record
from django_rtq.core.shared_property import shared_property
from django_rtq.exceptions import BrokerError, BrokerFull

if TYPE_CHECKING:
    from django_rtq.core.broker.maintenance import Maintenance
    from django_rtq.core.broker.redis.async_client import AsyncRedisClient
    from django_rtq.core.broker.redis.token_waits import TokenWaits
    from django_rtq.core.broker.replicas import Replicas
    from django_rtq.core.broker.schedule_store import ScheduleStore

S = TypeVar("S")

RECLAIM_AT_ONCE = 25  # jobs of one call: each is moved by itself, which takes longer than most
RENEWED_AT_ONCE = 100  # queues in which one call renews leases
TENDED_IN_A_LEASE = 15  # how often a queue is tended at most, however many supervisors there are
LARGE_CHARACTERS = 4000  # bodies that Lua does not join with their headers
NOTHING: Mapping[str, Sequence[Command]] = {}
MAX_WAIT_SECONDS = 30.0  # of one blocking command of a caller that waits; then it asks again: the token may be lost


class Broker:
    """Changes jobs in Redis, on behalf of producers, workers and schedulers.

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
        self.keys = Keys(config.prefix, in_cluster=self.connection_settings.is_in_cluster)
        self._registered_queues: set[str] = set()
        self._plain_queues: set[str] = set()  # those of them that were not seen to have max_waiting
        self._replicas: Replicas | None = None
        if config.wait_replicas:
            from django_rtq.core.broker.replicas import Replicas

            self._replicas = Replicas(config.wait_replicas, command_seconds=self.connection_settings.socket_timeout)
        self._data_id = ""  # of the data in Redis, as the last heartbeat found it

    @shared_property
    def schedules(self) -> ScheduleStore:
        """What Redis stores of schedules."""
        from django_rtq.core.broker.schedule_store import ScheduleStore  # producers need none

        return ScheduleStore(self.redis, self.keys)

    @shared_property
    def maintenance(self) -> Maintenance:
        """What is due because time has passed."""
        from django_rtq.core.broker.maintenance import Maintenance

        return Maintenance(self.redis, self.keys, self.config, self.schedules)

    @shared_property
    def limits(self) -> Any:
        """The LimitStore."""
        return required("limits")(self.redis, self.keys, self.config)

    @shared_property
    def async_redis(self) -> AsyncRedisClient:
        """For coroutines."""
        from django_rtq.core.broker.redis.async_client import AsyncRedisClient  # only processes that use it need it

        return AsyncRedisClient(self.connection_settings.command_pool(role="async"))

    @shared_property
    def waits(self) -> BlockingClient:
        """For callers that wait for the end of a job."""
        return BlockingClient(self.connection_settings.blocking_pool(role="wait", block_seconds=MAX_WAIT_SECONDS))

    @shared_property
    def token_waits(self) -> TokenWaits:
        """For coroutines that wait for the end of a job."""
        from django_rtq.core.broker.redis.token_waits import BLOCK_SECONDS, TokenWaits

        pool = self.connection_settings.blocking_pool(role="wait", block_seconds=BLOCK_SECONDS)
        return TokenWaits(pool, self.async_redis)

    def store_of(self, kind: Callable[[Broker], S]) -> S:
        """What an app stores in this Redis."""
        return kind(self)

    def close(self) -> None:
        """Close all connections. The broker may be used again. Coroutines that wait for a reply get it."""
        self.redis.close()
        for name in ("waits", "async_redis", "token_waits"):
            if name in vars(self):
                getattr(self, name).close()

    @property
    def lease_ms(self) -> int:
        """How long a worker may be silent."""
        return int(self.config.lease_seconds * 1000)

    # -- for producers

    def enqueue(self, queue: str, jobs: list[NewJob], *, all_or_none: bool = False) -> list[str]:
        """Enqueue jobs: "ok", "exists" for a known id (G8), or "full ..." for one that does not fit (max_waiting).

        Unique ones (G9): also "duplicate <id>" of one that is alive, "after <id>". More jobs than one round trip takes
        get new ids in the list, right before they are sent. `all_or_none`: store no job if one does not fit; at most
        AT_ONCE, of unique ones MAINTAIN_AT_ONCE. Raises BrokerUnavailable, BrokerFull.
        """
        if len(jobs) == 1 and queue in self._plain_queues and not (jobs[0].due or jobs[0].digest):
            answer: bytes = self.redis.execute_one(_enqueue_command(self.keys.of(queue), jobs[0]), resend=True)
            if answer != b"limited":
                return [answer.decode()]
        return self.redis.run(self._enqueue(queue, jobs, all_or_none))

    async def aenqueue(self, queue: str, jobs: list[NewJob], *, all_or_none: bool = False) -> list[str]:
        """enqueue() for coroutines."""
        return await self.async_redis.run(self._enqueue(queue, jobs, all_or_none))

    def enqueue_calls(self, calls: Sequence[EnqueueCall]) -> list[list[str] | BrokerError]:
        """Enqueue the jobs of several calls in one round trip. For each call its answers, or a BrokerError."""
        return self.redis.run(self._enqueue_calls(calls))

    def _enqueue_calls(self, calls: Sequence[EnqueueCall]) -> Steps[list[list[str] | BrokerError]]:
        if names := list({call.queue for call in calls} - self._registered_queues):
            yield from self._register_queues(names)
        return (yield from enqueue_calls(self.keys, calls, self._replicas))

    def _enqueue(self, queue: str, jobs: list[NewJob], all_or_none: bool) -> Steps[list[str]]:
        yield from self._register_queue(queue)
        if len(jobs) == 1 and queue in self._plain_queues and not (jobs[0].due or jobs[0].digest):
            (answer,) = checked((yield [_enqueue_command(self.keys.of(queue), jobs[0])]))
            if answer != b"limited":
                return [answer.decode()]
            self._plain_queues.discard(queue)
        return (yield from enqueue_many(self.keys.of(queue), jobs, all_or_none, self._replicas))

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
        limits = [self.limits.settings_command(name) for name in names if self.config.queue(name).has_limits]
        added: Command = ("SADD", self.keys.queues, *names)
        hello, _, stored_format, *replies = yield [("HELLO",), *format_commands(self.keys), added, *limits]
        check_server_mode(hello, self.redis.in_settings, in_cluster=self.keys.in_cluster)
        if is_too_old_for(hello):
            (info,) = yield [("INFO", "server")]
            check_server_version(version_in(info), self.redis.in_settings)
        check_format(stored_format, self.keys)
        checked(replies)
        self._registered_queues.update(names)
        if self._replicas is None:
            self._plain_queues.update(names)

    # -- for workers

    def sign_on(self, queues: Iterable[str], worker: str, info: WorkerInfo | None = None) -> None:
        """Register a worker, under a name that was never used before (rule 5). Raises FormatMismatch.

        `info`: what the next heartbeat of its supervisor would store; people need it at once.
        """
        packet = Packet()
        packet.add("format", *format_commands(self.keys))
        # A full server refuses the info, but no script. It is there when the worker is.
        packet.add("info", *worker_info_commands(self.keys, {worker: info} if info else {}))
        packet.add("calls", *[SCRIPTS["sign_on"].call(self.keys.of(q), (self.lease_ms, worker)) for q in queues])
        replies = packet.replies(self.redis.execute_each(packet.commands, resend=True))
        check_format(replies["format"][-1], self.keys)
        checked(replies["calls"])

    def sign_off(self, queues: Iterable[str], worker: str) -> bool:
        """Unregister a worker. False: it still holds jobs, and stays registered for these queues."""
        # Before: a worker that stays writes its info with the next heartbeat.
        calls = [SCRIPTS["sign_off"].call(self.keys.of(queue), (worker,), worker=worker) for queue in queues]
        return b"busy" not in self.redis.execute([*forget_info_commands(self.keys, worker), *calls], resend=True)[2:]

    def claim(
        self,
        worker: str,
        queues: Sequence[str],
        wanted: int,
        *,
        idle: int = 1,
        settlements: Mapping[str, Settlement] | None = None,
        aside: Collection[tuple[str, str]] = (),
    ) -> ClaimResult:
        """Claim jobs from the first queues that have any, and settle finished jobs, in one round trip (D73).

        Claims up to `wanted` jobs, AT_ONCE at most; 0: only settles. `idle` is the number of slots if no job runs in
        any of them, else 0: jobs that have crashed a worker run alone (D47). No jobs of the clients in `aside` are
        claimed, given as (queue, client). What was settled is removed from `settlements`. Raises BrokerUnavailable
        when there was no reply: then jobs may have been settled, and jobs may have been claimed that the worker does
        not know of.
        """
        settlements, result = settlements or {}, ClaimResult()
        acked = take_acks(settlements) if wanted else {}
        while True:
            calls = settlement_calls(settlements, self.keys, worker, self.config, but=acked)
            commands = [command for _, command in calls]
            joining = parts("settling") if calls else ()
            reads = [read for join in joining if (read := join(self, settlements, calls, commands))]
            if wanted:
                commands.append(self.claim_command(worker, queues, wanted, idle=idle, acked=acked, aside=aside))
            if self._replicas and (calls or acked):
                *replies, waited = self.redis.execute_each([*commands, self._replicas.wait_again()])
                self._replicas.note(waited)
            else:
                replies = self.redis.execute_each(commands)
            follows = [read(replies) for read in reads]
            result.add_settled([(whose, reply) for (whose, _), reply in zip(calls, replies, strict=False)])
            if not acked or not isinstance(replies[-1], BrokerError):
                break
            acked = {}  # A queue that refuses its outcomes must not hold up the others: settle each by itself.
        for queue in acked:
            settlements[queue].ack.clear()
        if wanted:
            result.add_claim(queues, replies[-1])
        if any([follow() for follow in follows]):
            result.statuses.add("more")
        return result

    def settle(self, worker: str, queue: str, settlement: Settlement) -> list[str]:
        """Send what became of jobs. Returns the ids that the worker no longer held (G4)."""
        result = self.claim(worker, (), 0, settlements={queue: settlement})
        if result.error:
            raise result.error
        return result.stale

    def claim_command(
        self,
        worker: str,
        queues: Sequence[str],
        wanted: int,
        *,
        idle: int = 1,
        acked: Mapping[str, Sequence[Argument]] | None = None,
        aside: Collection[tuple[str, str]] = (),
    ) -> Command:
        """The command that claims, for a BlockingReader that sends it together with its blocking read.

        `acked`: queue -> finished jobs to settle before, AT_ONCE at most, as in Settlement.ack.
        """
        names, finished = list(queues), []
        clients = [word for queue, name in aside if queue in names for word in (names.index(queue) + 1, name)]
        for queue, entries in (acked or {}).items():
            if queue not in names:
                names.append(queue)
            finished += [names.index(queue) + 1, len(entries), *entries]
        wanted, most = min(wanted, AT_ONCE), self.config.max_results
        arguments = (worker, wanted, int(idle), len(queues), most, len(clients) // 2, *clients, *finished)
        return SCRIPTS["claim"].call_many([self.keys.of(name) for name in names], arguments)

    def return_work_signal(self, queue: str) -> None:
        """Wake another worker of this queue, because this one took the signal and does other work first."""
        self.redis.execute_one(("ZADD", self.keys.of(queue).work_signal, 0, "work"), resend=True)

    def report_progress(self, worker: str, reports: Iterable[tuple[str, str, str]]) -> None:
        """Store the progress of running jobs: queue, id and JSON each.

        Skips jobs that the worker no longer holds (G4), and what a full server refuses. Raises BrokerUnavailable.
        """
        script = SCRIPTS["report_progress"]
        calls = [script.call(self.keys.of(queue), (job_id, line), worker=worker) for queue, job_id, line in reports]
        self.redis.execute_each(calls, resend=True)

    def running(self, worker: str, queues: Collection[str]) -> dict[str, list[bytes]]:
        """The ids of jobs that Redis says a worker holds. After a lost reply these may be more than it knows of."""
        commands = [("HKEYS", self.keys.of(name).running(worker)) for name in queues]
        return dict(zip(queues, self.redis.execute(commands, resend=True), strict=True))

    def errors(self, queue: str, job_id: bytes) -> bytes:
        """The last failures of a job, one JSON per line."""
        return self.redis.execute_one(("HGET", self.keys.of(queue).errors, job_id), resend=True) or b""

    def note_unknown_task(self, queue: str, job_id: bytes, task: str, worker: str) -> bytes:
        """Note that this worker claimed a job whose task it does not know. Returns the last failures of the job."""
        arguments = (job_id, task, worker, round(PARK_SECONDS * 1000))
        command = SCRIPTS["note_unknown_task"].call(self.keys.of(queue), arguments)
        failures: bytes = self.redis.execute_one(command, resend=True)
        return failures

    # -- for supervisors

    def other_projects(self, project: str) -> list[str]:
        """The projects, other than this one, of up to 200 workers that were alive during the last four lease times."""
        names = self.redis.execute_one(recent_workers(self.keys, 4 * self.config.lease_seconds), resend=True)
        commands = [("HGET", self.keys.worker(name.decode()), "project") for name in names[:200]]
        projects = {reply.decode() for reply in self.redis.execute(commands, resend=True) if reply} if names else set()
        return sorted(projects - {project}) if project else []

    def attempts(self, worker: str, queues: Sequence[str]) -> dict[str, dict[bytes, int]]:
        """The jobs that Redis says a worker holds: by queue, id -> attempt."""
        commands = [("HGETALL", self.keys.of(name).running(worker)) for name in queues]
        replies = self.redis.execute(commands, resend=True)
        held_by_queue = [zip(reply[::2], reply[1::2], strict=True) for reply in replies]
        return {
            name: {job_id: HeldEntry.read(held).attempt for job_id, held in pairs}
            for name, pairs in zip(queues, held_by_queue, strict=True)
        }

    def without_worker(self, queues: Sequence[str]) -> list[str]:
        """Those of the queues that no living worker serves."""
        latest = [("ZRANGE", self.keys.of(queue).workers, -1, -1, "WITHSCORES") for queue in queues]
        time, *leases = self.redis.execute([("TIME",), *latest], resend=True)
        now_ms = clock_ms(time)
        return [queue for queue, lease in zip(queues, leases, strict=True) if not (lease and float(lease[1]) >= now_ms)]

    def find_running(self, worker: str, queues: Sequence[str], job_id: str) -> Job | None:
        """The job of that id, if the worker holds it. Raises PayloadError or ValueError for an unreadable record."""
        for queue, attempts in self.attempts(worker, queues).items():
            if job_id.encode() in attempts:
                keys = self.keys.of(queue)
                reads: list[Command] = [("HGET", key, job_id) for key in (keys.jobs, keys.failures, keys.crashes)]
                record, failures, crashes = self.redis.execute(reads, resend=True)
                return read_record(job_id, queue, record or b"", failures=int(failures or 0), crashes=int(crashes or 0))
        return None

    def heads(self, queue: str, job_ids: Sequence[bytes]) -> list[tuple[Header | None, str]]:
        """Header and task name of each of these jobs; None and "" for what cannot be read."""
        records = self.redis.execute_one(("HMGET", self.keys.of(queue).jobs, *job_ids), resend=True)
        return [read_head(record or b"") for record in records]

    def heartbeat(
        self,
        queues: Sequence[str],
        workers: Mapping[str, WorkerInfo],
        *,
        promote: bool,
        reads: Mapping[str, Sequence[Command]] = NOTHING,
    ) -> HeartbeatResult:
        """What a supervisor does every few seconds before anything else, in one round trip.

        It renews the leases of its workers, stores what the admin shows of them, reads the version of the stored
        schedules, notices when Redis has lost its data, sends what chores of apps have to know (`reads`), and says what
        there is to do, such as the queues that nobody has tended lately: see tend(). Raises FormatMismatch.
        """
        # First: a caller that cancels a running job asks the script, then reads here which supervisor to wake. If the
        # info came after the renewal, a cancellation between the two would be seen only at the next heartbeat.
        packet = Packet()
        packet.add("info", *self.maintenance.info_commands(workers))
        packet.add("renew", *self.renew_commands(queues, list(workers), tends="tended" if promote else "checked"))
        packet.add("queues", ("SADD", self.keys.queues, *queues))
        packet.add("schedules", self.schedules.version_command)
        packet.add("format", *format_commands(self.keys))
        for chore, commands in reads.items():
            packet.add(chore, *commands)
        # A full server refuses the info, but no script.
        replies = packet.replies(self.redis.execute_each(packet.commands, resend=True))
        self._watch_data(check_format(replies["format"][-1], self.keys))
        renewed = [entry for reply in checked(replies["renew"]) for entry in reply]
        (version,) = replies["schedules"]
        if not isinstance(version, BrokerError):  # the scheduler says so if it is
            self.schedules.set_version(version)
        return HeartbeatResult(
            seconds=earliest_seconds(renewed),
            expired=[queue for queue, (left, *_) in zip(queues, renewed, strict=True) if left == 0],
            cancel_requests=read_cancel_requests(renewed),
            unknown={name.decode() for _, names, *_ in renewed for name in names},
            due=[queue for queue, (*_, has_due, _) in zip(queues, renewed, strict=True) if has_due],
            repairs={queue: start for queue, (*_, start) in zip(queues, renewed, strict=True) if start >= 0},
            replies={chore: replies[chore] for chore in reads},
        )

    def tend(self, beat: HeartbeatResult) -> tuple[dict[str, list[str]], dict[str, int], list[BrokerError]]:
        """Promote due jobs, in case the scheduler that was woken for them is dead, repair some lanes, and count jobs
        in no place (D160), in the queues of this heartbeat. Returns, by queue, what was promoted, and how many jobs are
        in no place (-1: unknown); and what was refused. Raises BrokerUnavailable."""
        commands = [self.maintenance.promote_command(queue) for queue in beat.due]
        commands += [self.maintenance.repair_command(queue, start) for queue, start in beat.repairs.items()]
        replies, promoted, lost, refused = self.redis.execute_each(commands, resend=True), {}, {}, []
        for place, (queue, reply) in enumerate(zip((*beat.due, *beat.repairs), replies, strict=True)):
            if isinstance(reply, BrokerError):
                refused.append(reply)
            elif place < len(beat.due):
                promoted[queue] = promoted_ids(reply)
            elif reply[1]:
                lost[queue] = reply[1]
        return promoted, lost, refused

    def _watch_data(self, data_id: str) -> None:
        """Note when Redis has lost its data since the last heartbeat."""
        if data_id and self._data_id and data_id != self._data_id:
            with suppress(BrokerFull):
                note_loss(self.redis, self.keys, data_id)
        self._data_id = data_id or self._data_id

    def renew_commands(self, queues: Sequence[str], workers: Sequence[str], *, tends: str = "") -> list[Command]:
        """The calls of the script that renews the leases of workers, for many queues each; it replies with an entry for
        each queue. `tends`: see there."""
        keys = [self.keys.of(queue) for queue in queues]
        arguments: tuple[Argument, ...] = (self.lease_ms, tends, self.lease_ms // TENDED_IN_A_LEASE, *workers)
        starts = range(0, len(keys), RENEWED_AT_ONCE)
        return [SCRIPTS["renew"].call_many(keys[start : start + RENEWED_AT_ONCE], arguments) for start in starts]

    def reclaim(self, queue: str, *, limit: int = RECLAIM_AT_ONCE) -> tuple[float | None, list[tuple[str, str]]]:
        """Reclaim jobs of workers whose leases have expired.

        Returns the seconds until there may be more to reclaim (None: no worker is left), and (id, new place) pairs.
        """
        (reply,) = self._call_on_each([queue], "reclaim", (self.lease_ms, limit))
        return earliest_seconds([reply]), _pairs(reply[1:])

    def repair_jobs(self, queue: str) -> list[tuple[str, str]]:
        """Look at some records, and queue the jobs that are in no place. Returns (id, new place) pairs."""
        (reply,) = self._call_on_each([queue], "repair_jobs", (MAINTAIN_AT_ONCE,))
        return _pairs(reply)

    def reclaim_child(self, queue: str, worker: str, guilty: Iterable[str]) -> list[tuple[str, str]]:
        """Reclaim the jobs of a process that has crashed. Only the guilty ones count a crash (G5)."""
        taken: list[tuple[str, str]] = []
        arguments: tuple[Argument, ...] = (worker, AT_ONCE, *guilty)
        while True:
            call = SCRIPTS["reclaim_child"].call(self.keys.of(queue), arguments)
            (left, *pairs), *_ = self.redis.execute([call, *forget_info_commands(self.keys, worker)], resend=True)
            taken += _pairs(pairs)
            if not left:
                return taken

    def _call_on_each(
        self, queues: Iterable[str], name: str, arguments: Sequence[Argument], *, worker: str = ""
    ) -> list[Any]:
        script = SCRIPTS[name]
        commands = [script.call(self.keys.of(queue), arguments, worker=worker) for queue in queues]
        return self.redis.execute(commands, resend=True)


def _enqueue_command(keys: QueueKeys, job: NewJob) -> Command:
    """The command that enqueues a job that is neither delayed nor unique."""
    job_id, priority, max_crashes, client, _, expires, at_front, body, *_ = job
    arguments: tuple[str | int, ...] = (job_id, priority, max_crashes, client, expires, at_front, body)
    if len(body) > LARGE_CHARACTERS and not expires:
        record = write_record(priority, max_crashes, made_ms(job_id), client, body)
        arguments = (job_id, priority, "", client, "", at_front, record)
    return SCRIPTS["enqueue"].packed_call(keys, arguments)


def _pairs(flat: Sequence[bytes]) -> list[tuple[str, str]]:
    return [(flat[i].decode(), flat[i + 1].decode()) for i in range(0, len(flat), 2)]

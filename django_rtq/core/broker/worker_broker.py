"""The broker of workers, supervisors and schedulers: a method for each change of a job that they make.

Every method may be repeated when its reply was lost. The header of each script says what happens then.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.keys import QUEUE_KEYS, Keys
from django_rtq.core.broker.redis.client import clock_ms
from django_rtq.core.broker.redis.commands import Argument, Command, Packet, checked
from django_rtq.core.broker.scripts import AT_ONCE, MAINTAIN_AT_ONCE, SCRIPTS
from django_rtq.core.broker.server_info import check_format, format_commands, note_loss
from django_rtq.core.broker.settlement import Settlement, settlement_calls, take_acks
from django_rtq.core.extension import parts
from django_rtq.core.jobs.job import PARK_SECONDS
from django_rtq.core.jobs.record import HeldEntry, read_head
from django_rtq.exceptions import BrokerError, BrokerFull, BrokerUnavailable, FormatMismatch

RECLAIM_AT_ONCE = 25  # jobs of one call: each is moved by itself, which takes longer than most
RENEWED_AT_ONCE = 100  # queues in which one call renews leases
TENDED_IN_A_LEASE = 15  # how often a queue is tended at most, however many supervisors there are
NOTHING: Mapping[str, Sequence[Command]] = {}

#: What supervisors store about a worker, for the admin and rtq.
WorkerInfo = Mapping[str, Argument]
_FORGOTTEN_MS = 60_000  # after the end of a worker
UNUSED_MS = 86_400_000  # after so long without a worker, a queue that is empty and not declared is forgotten
_KEPT_MS = 3_600_000  # after the last update; of a worker that was lost, people want to know where it ran


# -- what Redis replies, with fields in the order of the scripts' replies


class Claimed(NamedTuple):
    """The jobs that a claim returned from one queue."""

    queue: str
    #: ok; unknown (sign on first); suspect (these have crashed a worker, or the next one has); more (it stopped after
    #: many cancelled jobs: claim again at once)
    status: str
    now_ms: int  # the server's time of the claim
    ids: list[bytes]
    records: list[bytes]
    counts: dict[int, tuple[int, int]]  # index in ids -> failures, crashes; only where there are any
    has_limits: bool = False  # a job counts for them from the claim on
    has_times: bool = False  # clients take turns by time: note_times has to say how long these jobs ran


@dataclass(slots=True, kw_only=True)
class ClaimResult:
    """The reply to WorkerBroker.claim(): claimed jobs, and which settled jobs were stale."""

    claimed: list[Claimed] = field(default_factory=list)  # queues that had jobs, or a status other than "ok"
    stale: list[str] = field(default_factory=list)  # settled, but no longer held by this worker
    error: BrokerError | None = None  # a command was refused; what was not settled is still in the settlements
    found: int = 0  # number of claimed jobs
    statuses: set[str] = field(default_factory=set)  # of these queues; "more" also if settled jobs let others start

    def add_settled(self, replies: Sequence[tuple[tuple[Settlement, Sequence[Any]], Any]]) -> None:
        """Add the reply to each call of a settlement, given as ((settlement, what was sent), reply). Removes what was
        settled."""
        for (settlement, sent), reply in replies:
            if not sent:
                continue  # logs: a full server refuses them, and that must not hold up outcomes
            if isinstance(reply, BrokerError):
                self.error = reply
            else:
                self.stale += [job_id.decode(errors="replace") for job_id in reply]
                settlement.remove(sent)

    def add_claim(self, queues: Sequence[str], reply: Any) -> None:
        """Add the reply of the script `claim`, or the error with which it was refused."""
        if isinstance(reply, BrokerError):
            self.error = reply
            return
        place = 1 + reply[0]
        self.stale += [job_id.decode() for job_id in reply[1:place]]
        while place < len(reply):
            number, status, now_ms, jobs, counts = reply[place : place + 5]
            start, end = place + 5, place + 5 + 2 * jobs
            place = end + counts
            tried = {reply[i]: (reply[i + 1], reply[i + 2]) for i in range(end, place, 3)} if counts else {}
            text, _, limits = status.decode().partition(" ")
            queue, ids, records = queues[number - 1], reply[start:end:2], reply[start + 1 : end : 2]
            self.claimed.append(Claimed(queue, text, now_ms, ids, records, tried, bool(limits), limits == "timed"))
            self.found += jobs
            self.statuses.add(text)


#: Of running jobs: worker and job id -> "ask" the job to stop, or "terminate" its process.
CancelRequests = Mapping[tuple[str, str], str]


class Renewed(NamedTuple):
    """What the script `renew` replies about a queue."""

    lease_ms: int  # until the earliest lease of any worker ends; -1: there is none, or it does not tend the queue
    unknown: list[bytes]  # workers whose leases have expired: they were not renewed, and their jobs are others' now
    asked: list[bytes]  # of each job of the caller's workers that was asked to stop: worker, id, how
    has_due: int  # 1: promote has something to do
    next_lane: int  # where repair_lanes has to go on; -1: not now


def read_renewed(replies: Iterable[Any]) -> list[Renewed]:
    """What calls of the script `renew` reply about each of their queues."""
    return [Renewed(*entry) for reply in replies for entry in reply]


def read_cancel_requests(renewed: Iterable[Renewed]) -> CancelRequests:
    """The cancel requests in replies of the script `renew`."""
    flat = [word.decode() for of_queue in renewed for word in of_queue.asked]
    return {(flat[i], flat[i + 1]): flat[i + 2] for i in range(0, len(flat), 3)}


def earliest_seconds(replies: Iterable[Sequence[Any]]) -> float | None:
    """The least of the milliseconds that begin each reply, in seconds. -1 stands for never."""
    return min((reply[0] / 1000 for reply in replies if reply[0] >= 0), default=None)


def promoted_ids(reply: Sequence[Any]) -> list[str]:
    """The ids in a reply of the script `promote`."""
    return [job_id.decode() for job_id in reply[1:]]


# -- what workers ask


class WorkerBroker(Broker):
    """Changes jobs in Redis on behalf of workers."""

    _data_id = ""  # of the data in Redis, as the last heartbeat found it

    @property
    def lease_ms(self) -> int:
        """How long a worker may be silent."""
        return int(self.config.lease_seconds * 1000)

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

    def note_unknown_task(self, queue: str, job_id: bytes, task: str, worker: str) -> bytes:
        """Note that this worker claimed a job whose task it does not know. Returns the last failures of the job."""
        arguments = (job_id, task, worker, round(PARK_SECONDS * 1000))
        command = SCRIPTS["note_unknown_task"].call(self.keys.of(queue), arguments)
        failures: bytes = self.redis.execute_one(command, resend=True)
        return failures

    # -- for supervisors

    def read_commands(
        self, supervisor: str, queues: Sequence[str], workers: Sequence[str]
    ) -> tuple[str, CancelRequests]:
        """The last command and by whom, as send_command() has stored it, "" if there is none; and the cancel requests
        for jobs of these workers. Renews their leases, too."""
        read: Command = ("GET", self.keys.control(supervisor))
        text, *replies = self.redis.execute([read, *self.renew_commands(queues, workers)], resend=True)
        return (text or b"").decode(errors="replace"), read_cancel_requests(read_renewed(replies))

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

    def find_running(self, worker: str, queues: Sequence[str], job_id: str) -> Claimed | None:
        """The job of that id, as the worker has claimed it, if it holds it."""
        for queue in queues:
            keys = self.keys.of(queue)
            places = (keys.running(worker), keys.jobs, keys.failures, keys.crashes)
            held, record, *counts = self.redis.execute([("HGET", key, job_id) for key in places], resend=True)
            if held is not None:
                failures, crashes = (int(count or 0) for count in counts)
                claimed_ms, ids = HeldEntry.read(held).claimed_ms or 0, [job_id.encode()]
                return Claimed(queue, "ok", claimed_ms, ids, [record or b""], {0: (failures, crashes)})
        return None

    def heads(self, queue: str, job_ids: Sequence[Argument]) -> list[tuple[str | None, str]]:
        """Client and task name of each of these jobs; None and "" for what cannot be read."""
        records = self.redis.execute_one(("HMGET", self.keys.of(queue).jobs, *job_ids), resend=True)
        return [read_head(record or b"") for record in records]

    def heartbeat(
        self,
        queues: Sequence[str],
        workers: Mapping[str, WorkerInfo],
        *,
        promote: bool,
        reads: Mapping[str, Sequence[Command]] = NOTHING,
    ) -> tuple[dict[str, Renewed], dict[str, list[Any]]]:
        """What a supervisor does every few seconds before anything else, in one round trip.

        It renews the leases of its workers, stores what the admin shows of them, reads the version of the stored
        schedules, notices when Redis has lost its data, sends what chores of apps have to know (`reads`), and says what
        there is to do in each of the queues: see tend(). Returns that, and replies to `reads`. Raises FormatMismatch.
        """
        # First: a caller that cancels a running job asks the script, then reads here which supervisor to wake. If the
        # info came after the renewal, a cancellation between the two would be seen only at the next heartbeat.
        packet = Packet()
        packet.add("info", *worker_info_commands(self.keys, workers))
        if self.config.version and workers and "note_version" in SCRIPTS:
            arguments = (self.config.version, 4 * self.lease_ms)
            packet.add("info", SCRIPTS["note_version"].call(self.keys.of(self.config.default_queue), arguments))
        packet.add("renew", *self.renew_commands(queues, list(workers), tends="tended" if promote else "checked"))
        packet.add("queues", ("SADD", self.keys.queues, *queues))
        packet.add("schedules", self.schedules.version_command)
        packet.add("format", *format_commands(self.keys))
        for chore, commands in reads.items():
            packet.add(chore, *commands)
        # A full server refuses the info, but no script.
        replies = packet.replies(self.redis.execute_each(packet.commands, resend=True))
        data_id = check_format(replies["format"][-1], self.keys)
        if data_id and self._data_id and data_id != self._data_id:  # Redis has lost its data since the last heartbeat
            with suppress(BrokerFull):
                note_loss(self.redis, self.keys, data_id)
        self._data_id = data_id or self._data_id
        renewed = dict(zip(queues, read_renewed(checked(replies["renew"])), strict=True))
        (version,) = replies["schedules"]
        if not isinstance(version, BrokerError):  # the scheduler says so if it is
            self.schedules.set_version(version)
        return renewed, {chore: replies[chore] for chore in reads}

    def tend(self, renewed: Mapping[str, Renewed]) -> tuple[dict[str, list[str]], dict[str, int], list[BrokerError]]:
        """Promote due jobs, in case the scheduler that was woken for them is dead, repair some lanes, and count jobs
        in no place (D160), as a heartbeat has found it. Returns, by queue, what was promoted, and how many jobs are
        in no place (-1: unknown); and what was refused. Raises BrokerUnavailable."""
        due = [queue for queue, of_queue in renewed.items() if of_queue.has_due]
        repairs = {queue: of_queue.next_lane for queue, of_queue in renewed.items() if of_queue.next_lane >= 0}
        commands = [self.promote_command(queue) for queue in due]
        commands += [self.repair_command(queue, start) for queue, start in repairs.items()]
        replies, promoted, lost, refused = self.redis.execute_each(commands, resend=True), {}, {}, []
        for place, (queue, reply) in enumerate(zip((*due, *repairs), replies, strict=True)):
            if isinstance(reply, BrokerError):
                refused.append(reply)
            elif place < len(due):
                promoted[queue] = promoted_ids(reply)
            elif in_no_place := reply[1]:
                lost[queue] = in_no_place
        return promoted, lost, refused

    def check_types(self, queues: Iterable[str]) -> None:
        """Raises FormatMismatch if keys of these queues hold something else than this version stores there."""
        plain = [key for key in QUEUE_KEYS.values() if not key.per and key.kind != "none"]
        names = [(self.keys.of(queue).tag + key.name.encode(), key.kind) for queue in queues for key in plain]
        types = self.redis.execute([("TYPE", name) for name, _ in names], resend=True)
        for (name, kind), found in zip(names, types, strict=True):
            if found.decode() not in ("none", kind):
                raise FormatMismatch(
                    f"Redis holds a {found.decode()} in the key {name.decode()}, where this version of "
                    f"django_rtq stores a {kind}: another version or program has written it. Let that version finish "
                    f'its jobs, delete the keys of the queue, or set another RTQ["PREFIX"].'
                )

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
        notes: list[Argument] = []
        if self.config.version:  # that of a dead worker is in a key of no queue, which the script cannot read
            silent = self.redis.execute_one(("ZRANGE", self.keys.of(queue).workers, 0, 9), resend=True)
            reads = [("HGET", self.keys.worker(worker.decode()), "project_version") for worker in silent]
            versions = zip(silent, self.redis.execute(reads, resend=True), strict=True)
            notes = [word for pair in versions if pair[1] for word in pair]
        command = SCRIPTS["reclaim"].call(self.keys.of(queue), (self.lease_ms, limit, *notes))
        reply = self.redis.execute_one(command, resend=True)
        return earliest_seconds([reply]), _pairs(reply[1:])

    def repair_jobs(self, queue: str) -> list[tuple[str, str]]:
        """Look at some records, and queue the jobs that are in no place. Returns (id, new place) pairs."""
        command = SCRIPTS["repair_jobs"].call(self.keys.of(queue), (MAINTAIN_AT_ONCE,))
        return _pairs(self.redis.execute_one(command, resend=True))

    def reclaim_child(self, queue: str, worker: str, guilty: Iterable[str]) -> list[tuple[str, str]]:
        """Reclaim the jobs of a process that has crashed. Only the guilty ones count a crash (G5)."""
        taken: list[tuple[str, str]] = []
        arguments: tuple[Argument, ...] = (worker, AT_ONCE, self.config.version or "", *guilty)
        while True:
            call = SCRIPTS["reclaim_child"].call(self.keys.of(queue), arguments)
            (left, *pairs), *_ = self.redis.execute([call, *forget_info_commands(self.keys, worker)], resend=True)
            taken += _pairs(pairs)
            if not left:
                return taken

    # -- what is due because time has passed

    def maintain(
        self, queues: Sequence[str], *, promote_calls: int = 1
    ) -> tuple[float | None, dict[str, list[str]], bool]:
        """Promote due jobs, trim what has expired, and read the version of the stored schedules, in one round trip.

        It calls the script `promote` `promote_calls` times for each queue, because one call promotes a limited number.
        Returns the seconds until the next job of any queue is due (None: nothing is scheduled), the ids of promoted
        jobs by queue, and whether no expired or surplus results and dead letters are left.
        """
        packet = Packet()
        packet.add("promote", *(self.promote_command(queue) for queue in queues for _ in range(promote_calls)))
        packet.add("trim", *map(self.trim_command, queues))
        packet.add("schedules", self.schedules.version_command)
        packet.add("time", ("TIME",))
        replies = packet.replies(self.redis.execute(packet.commands, resend=True))
        ((_, micros),) = replies["time"]
        self.schedules.set_version(replies["schedules"][0])
        promoted: dict[str, list[str]] = {queue: [] for queue in queues}
        for place, reply in enumerate(replies["promote"]):
            promoted[queues[place // promote_calls]] += promoted_ids(reply)
        is_trimmed = not any(has_more for _, _, has_more in replies["trim"])
        seconds = earliest_seconds(replies["promote"][promote_calls - 1 :: promote_calls])
        if seconds:  # scripts count whole milliseconds, and the current one has begun
            seconds = max(0.0001, seconds - int(micros) % 1000 / 1e6)
        return seconds, promoted, is_trimmed

    def promote(self, queues: Sequence[str]) -> tuple[dict[str, list[str]], bool]:
        """Queue jobs that are due, in one round trip.

        Returns their ids by queue, and whether there may be work: also jobs that a pause of their task had held.
        """
        replies = self.redis.execute([self.promote_command(queue) for queue in queues], resend=True)
        promoted = dict(zip(queues, map(promoted_ids, replies), strict=True))
        return promoted, any(promoted.values()) or earliest_seconds(replies) == 0

    def promote_command(self, queue: str, limit: int = MAINTAIN_AT_ONCE) -> Command:
        """The call of the script `promote`, with the queue's `delayed_first` setting."""
        delayed_first = "1" if self.config.queue(queue).delayed_first else ""
        return SCRIPTS["promote"].call(self.keys.of(queue), (limit, delayed_first))

    def trim_command(self, queue: str) -> Command:
        """The call of the script `trim`, with the limits of the settings."""
        arguments = (self.config.max_dead_letters, self.config.dead_letter_ms, MAINTAIN_AT_ONCE)
        return SCRIPTS["trim"].call(self.keys.of(queue), arguments)

    def forget(self, queue: str, *, idle_ms: int = 0, discard_outcomes: bool = False, is_dry_run: bool = False) -> str:
        """Remove a queue without jobs and workers from the list of queues: the answer of the script `forget`.

        The next enqueue, or a worker, adds it to the list again. A dry run deletes only what has expired.
        """
        flags = ("1" if discard_outcomes else "", "1" if is_dry_run else "")
        forget = SCRIPTS["forget"].call(self.keys.of(queue), (idle_ms, *flags))
        answer, has_more = self.redis.execute_one(forget, resend=True), True
        # Without a worker nobody trims the queue: what is left of finished jobs may have expired long ago.
        while answer == b"more" or (answer in (b"recent", b"outcomes") and has_more):
            (_, _, has_more), answer = self.redis.execute([self.trim_command(queue), forget], resend=True)
        return str(answer.decode())

    def forget_unused(self, declared: Collection[str]) -> list[str]:
        """Forget the queues that are not declared, and had no worker for a day. Returns their names."""
        unknown = sorted(set(self.queue_names()).difference(declared))
        return [name for name in unknown if self.forget(name, idle_ms=UNUSED_MS) == "forgotten"]

    def rewrite_log_after_restart(self) -> str:
        """Let Redis rewrite its append-only file if it was restarted since a scheduler last looked.

        Redis 7.0 leaves the beginning of a script in a file that ended within it, and executes that at its next start.
        Returns "unknown" if Redis does not tell (INFO is forbidden), "none" without such a file, "same" if it runs on,
        "first" if nobody had looked, "rewritten", or "refused".
        """
        clock = self.keys.of(self.config.default_queue).clock
        server, persistence, known_run_id = self.redis.execute_each(
            [("INFO", "server"), ("INFO", "persistence"), ("HGET", clock, "run_id")], resend=True
        )
        checked([reply for reply in (server, persistence, known_run_id) if isinstance(reply, BrokerUnavailable)])
        run_id = re.search(rb"^run_id:(\S+)", server, re.MULTILINE) if isinstance(server, bytes) else None
        if run_id is None or not isinstance(persistence, bytes):
            return "unknown"
        if b"aof_enabled:1" not in persistence:
            return "none"
        if known_run_id == run_id[1]:
            return "same"
        rewrite: list[Command] = [("BGREWRITEAOF",)] if known_run_id else []
        *replies, _ = self.redis.execute_each([*rewrite, ("HSET", clock, "run_id", run_id[1])], resend=True)
        for reply in replies:
            if isinstance(reply, BrokerError) and "in progress" not in str(reply):
                return "refused"
        return "rewritten" if known_run_id else "first"

    def repair_command(self, queue: str, cursor: int) -> Command:
        """The call of the script that repairs some lanes and workers after a torn append-only file.

        It replies with the next cursor, 0 when all lanes were checked, and how many jobs are in no place. They are
        counted once in a lease.
        """
        arguments = (cursor, MAINTAIN_AT_ONCE, self.lease_ms)
        return SCRIPTS["repair_lanes"].call(self.keys.of(queue), arguments)


def for_workers(broker: Broker) -> WorkerBroker:
    """The same broker as one of workers: they share connections, and all else."""
    _ = broker.redis  # raises in a test that has none
    own = object.__new__(WorkerBroker)
    own.__dict__ = broker.__dict__
    return own


def _pairs(flat: Sequence[bytes]) -> list[tuple[str, str]]:
    return [(flat[i].decode(), flat[i + 1].decode()) for i in range(0, len(flat), 2)]


def worker_info_commands(keys: Keys, workers: Mapping[str, WorkerInfo]) -> Iterator[Command]:
    """Store the info of workers, which expires, and an index of their names, which saves readers a round trip.

    The index uses the clock of this machine, because no script is involved. If that clock is wrong by more than an
    hour, other workers may be missing from the index until their next heartbeat.
    """
    now_ms = time.time_ns() // 1_000_000
    for name, info in workers.items():
        # kept_ms and the time that is left to the key tell readers when the worker was last seen.
        yield ("HSET", keys.worker(name), "kept_ms", _KEPT_MS, *(value for pair in info.items() for value in pair))
        yield ("PEXPIRE", keys.worker(name), _KEPT_MS)
    if workers:
        yield ("ZADD", keys.workers, *(argument for name in workers for argument in (now_ms, name)))
        yield ("ZREMRANGEBYSCORE", keys.workers, "-inf", now_ms - _KEPT_MS)


def forget_info_commands(keys: Keys, worker: str) -> Iterator[Command]:
    """Forget the info of a worker that is no more: soon, because a page that was shown before may send it a command.

    A process that takes a new name has the same supervisor.
    """
    yield ("PEXPIRE", keys.worker(worker), _FORGOTTEN_MS)
    yield ("ZREM", keys.workers, worker)

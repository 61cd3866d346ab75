"""Work that is due because time has passed: promote delayed jobs, trim old results, dead letters and the like."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from django_rtq.core.broker.keys import Keys, read_queue_names
from django_rtq.core.broker.redis.client import RedisClient
from django_rtq.core.broker.redis.commands import Command, Packet, checked
from django_rtq.core.broker.schedule_store import ScheduleStore
from django_rtq.core.broker.scripts import MAINTAIN_AT_ONCE, SCRIPTS
from django_rtq.core.broker.worker_messages import earliest_seconds, promoted_ids
from django_rtq.core.conf.config import Config
from django_rtq.exceptions import BrokerError, BrokerUnavailable

UNUSED_MS = 86_400_000  # after so long without a worker, a queue that is empty and not declared is forgotten


class MaintenanceResult(NamedTuple):
    """What one maintenance step did."""

    seconds: float | None  # until the next job of any queue is due; None: nothing is scheduled
    promoted: Mapping[str, list[str]]  # queue -> job ids
    is_trimmed: bool  # no queue has expired or surplus results and dead letters left


class Maintenance:
    """Promotes due jobs and trims what has expired. Any thread may use it.

    Schedulers run it. Workers promote too: with each heartbeat, and when they find no job to claim.
    """

    def __init__(self, redis: RedisClient, keys: Keys, config: Config, schedules: ScheduleStore) -> None:
        self._redis = redis
        self._keys = keys
        self._config = config
        self._schedules = schedules

    def run(self, queues: Sequence[str], *, promote_calls: int = 1) -> MaintenanceResult:
        """Promote, trim, and read the version of the stored schedules, in one round trip.

        It calls the script `promote` `promote_calls` times for each queue, because one call promotes a limited number.
        """
        packet = Packet()
        packet.add("promote", *(self.promote_command(queue) for queue in queues for _ in range(promote_calls)))
        packet.add("trim", *map(self.trim_command, queues))
        packet.add("schedules", self._schedules.version_command)
        packet.add("time", ("TIME",))
        replies = packet.replies(self._redis.execute(packet.commands, resend=True))
        ((_, micros),) = replies["time"]
        self._schedules.set_version(replies["schedules"][0])
        promoted: dict[str, list[str]] = {queue: [] for queue in queues}
        for place, reply in enumerate(replies["promote"]):
            promoted[queues[place // promote_calls]] += promoted_ids(reply)
        is_trimmed = not any(has_more for _, _, has_more in replies["trim"])
        seconds = earliest_seconds(replies["promote"][promote_calls - 1 :: promote_calls])
        if seconds:  # scripts count whole milliseconds, and the current one has begun
            seconds = max(0.0001, seconds - int(micros) % 1000 / 1e6)
        return MaintenanceResult(seconds, promoted, is_trimmed)

    def promote(self, queues: Sequence[str]) -> tuple[dict[str, list[str]], bool]:
        """Queue jobs that are due, in one round trip.

        Returns their ids by queue, and whether there may be work: also jobs that a pause of their task had held.
        """
        replies = self._redis.execute([self.promote_command(queue) for queue in queues], resend=True)
        promoted = dict(zip(queues, map(promoted_ids, replies), strict=True))
        return promoted, any(promoted.values()) or earliest_seconds(replies) == 0

    def promote_command(self, queue: str, limit: int = MAINTAIN_AT_ONCE) -> Command:
        """The call of the script `promote`, with the queue's `delayed_first` setting."""
        delayed_first = "1" if self._config.queue(queue).delayed_first else ""
        return SCRIPTS["promote"].call(self._keys.of(queue), (limit, delayed_first))

    def trim_command(self, queue: str) -> Command:
        """The call of the script `trim`, with the limits of the settings."""
        arguments = (self._config.max_dead_letters, self._config.dead_letter_ms, MAINTAIN_AT_ONCE)
        return SCRIPTS["trim"].call(self._keys.of(queue), arguments)

    def forget(self, queue: str, *, idle_ms: int = 0, discard_outcomes: bool = False, is_dry_run: bool = False) -> str:
        """Remove a queue without jobs and workers from the list of queues: the answer of the script `forget`.

        The next enqueue, or a worker, adds it to the list again. A dry run deletes only what has expired.
        """
        flags = ("1" if discard_outcomes else "", "1" if is_dry_run else "")
        forget = SCRIPTS["forget"].call(self._keys.of(queue), (idle_ms, *flags))
        answer, has_more = self._redis.execute_one(forget, resend=True), True
        # Without a worker nobody trims the queue: what is left of finished jobs may have expired long ago.
        while answer == b"more" or (answer in (b"recent", b"outcomes") and has_more):
            (_, _, has_more), answer = self._redis.execute([self.trim_command(queue), forget], resend=True)
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
        clock = self._keys.of(self._config.default_queue).clock
        server, persistence, known_run_id = self._redis.execute_each(
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
        *replies, _ = self._redis.execute_each([*rewrite, ("HSET", clock, "run_id", run_id[1])], resend=True)
        for reply in replies:
            if isinstance(reply, BrokerError) and "in progress" not in str(reply):
                return "refused"
        return "rewritten" if known_run_id else "first"

    def repair_command(self, queue: str, cursor: int) -> Command:
        """The call of the script that repairs some lanes and workers after a torn append-only file.

        It replies with the next cursor, 0 when all lanes were checked, and how many jobs are in no place. They are
        counted once in a lease.
        """
        arguments = (cursor, MAINTAIN_AT_ONCE, int(self._config.lease_seconds * 1000))
        return SCRIPTS["repair_lanes"].call(self._keys.of(queue), arguments)

    def queue_names(self) -> list[str]:
        """The names of all queues, sorted."""
        return read_queue_names(self._redis.execute_one(("SMEMBERS", self._keys.queues), resend=True))

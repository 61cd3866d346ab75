"""What a broker does because time has passed: promote, trim, and start periodic jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django_rtq.broker.keys import Keys
from django_rtq.broker.messages import NewJob, UniqueJob
from django_rtq.broker.redis.client import RedisClient, clock_ms
from django_rtq.broker.schedule_store import ScheduleState, ScheduleStore, read_states
from django_rtq.broker.scripts import SCRIPTS, Argument, Command
from django_rtq.conf import Config

MAINTAIN_AT_ONCE = 100  # jobs of others, or lanes, that one call of a sweep touches


class MaintenanceResult(NamedTuple):
    """What one step of a scheduler did."""

    seconds: float | None  # until the next job of any queue is due; None: nothing is scheduled
    promoted: Mapping[str, list[str]]  # queue -> ids
    is_trimmed: bool  # nothing is left in any queue that was kept long enough, or is too much


class Maintenance:
    """The part of the Broker that schedulers need."""

    config: Config
    keys: Keys
    redis: RedisClient
    plan: ScheduleStore

    # -- jobs that wait for their time

    def tend(self, queues: Sequence[str], *, calls: int = 1) -> MaintenanceResult:
        """Promote and trim, `calls` bounded steps of the first, and look for news of the plan: one round trip."""
        promotions = [self.promote_command(queue, MAINTAIN_AT_ONCE) for queue in queues for _ in range(calls)]
        trims = self._trim_commands(queues)
        *replies, version, (_, micros) = self.redis.execute(
            [*promotions, *trims, self.plan.ask_for_version, ("TIME",)], resend=True
        )
        self.plan.notice(version)
        found = [replies[i * calls : (i + 1) * calls] for i in range(len(queues))]
        promoted = {
            queue: [job_id.decode() for reply in of_queue for job_id in reply[1:]]
            for queue, of_queue in zip(queues, found, strict=True)
        }
        is_trimmed = not any(has_more for _, _, has_more in replies[len(promotions) :])
        seconds = earliest(of_queue[-1] for of_queue in found)
        if seconds:  # scripts count whole milliseconds, and this one has begun
            seconds = max(0.0001, seconds - int(micros) % 1000 / 1e6)
        return MaintenanceResult(seconds, promoted, is_trimmed)

    def promote(self, queue: str, *, limit: int = MAINTAIN_AT_ONCE) -> tuple[float | None, list[str]]:
        """Queue what is due. Returns the seconds until the next is (None: nothing is scheduled), and the ids."""
        seconds, promoted = self.promote_all([queue], limit=limit)
        return seconds, promoted[queue]

    def promote_all(
        self, queues: Sequence[str], *, limit: int = MAINTAIN_AT_ONCE
    ) -> tuple[float | None, dict[str, list[str]]]:
        """promote() for several queues in one round trip; the seconds are those until the next of any."""
        replies = self.redis.execute([self.promote_command(queue, limit) for queue in queues], resend=True)
        ids = [[job_id.decode() for job_id in reply[1:]] for reply in replies]
        return earliest(replies), dict(zip(queues, ids, strict=True))

    def promote_command(self, queue: str, limit: int) -> Command:
        """The call of the script, with what the settings say of the queue."""
        ahead = "1" if self.config.queue(queue).delayed_first else ""
        return SCRIPTS["promote"].call(self.keys.of(queue), (limit, ahead))

    def trim(self, queue: str) -> int:
        """Forget some of what was kept long enough. Returns how much; call it again while that is not 0."""
        return self.trim_all([queue])[0]

    def trim_all(self, queues: Sequence[str]) -> list[int]:
        """trim() for several queues in one round trip."""
        return [outcomes + dead for outcomes, dead, _ in self.redis.execute(self._trim_commands(queues), resend=True)]

    def _trim_commands(self, queues: Sequence[str]) -> list[Command]:
        dead_ms = int(self.config.dead_letter_days * 86_400_000)
        arguments = (self.config.max_dead_letters, dead_ms, MAINTAIN_AT_ONCE)
        return [SCRIPTS["trim"].call(self.keys.of(queue), arguments) for queue in queues]

    # -- periodic jobs

    def begin(self, queue: str, name: str, definition: str, now_ms: int) -> bool:
        """Count the slots of a schedule from now on. False: somebody has begun with this definition before."""
        return self._on_each([queue], "begin_schedule", (name, definition, now_ms)) == [b"begun"]

    def fire(self, queue: str, name: str, slot_ms: int, job: NewJob | UniqueJob, *, may_overlap: bool = True) -> str:
        """Start a periodic job for one slot of a schedule.

        Returns "fired", or why not: "already", "overlap" (the last job lives), "duplicate <id>" (that one holds its
        digest), "unknown" (it has not begun).
        """
        overlap = "allow" if may_overlap else "skip"
        unique = job[8:11] or ("", "", 0)
        arguments = (name, slot_ms, overlap, job.id, *job[1:4], *job[5:8], *unique)
        (reply,) = self._on_each([queue], "fire_schedule", arguments)
        return str(reply.decode())

    def schedules(self, queues: Sequence[str]) -> tuple[int, dict[str, dict[str, ScheduleState]]]:
        """The server's time in ms, and what is known of the schedules of each queue, by name.

        It looks for news of the plan as well: nobody fires by one that was changed before.
        """
        states: list[Command] = [("HGETALL", self.keys.of(queue).schedules) for queue in queues]
        time, version, *replies = self.redis.execute([("TIME",), self.plan.ask_for_version, *states], resend=True)
        self.plan.notice(version)
        found = dict(zip(queues, map(read_states, replies), strict=True))
        return clock_ms(time), found

    def drop_schedules(self, queue: str, names: Sequence[str]) -> None:
        """Forget schedules. One that is declared after all begins anew."""
        self.redis.execute_one(("HDEL", self.keys.of(queue).schedules, *names), resend=True)

    # -- inside

    def _on_each(
        self, queues: Iterable[str], name: str, arguments: Sequence[Argument], *, worker: str = ""
    ) -> list[Any]:
        script = SCRIPTS[name]
        commands = [script.call(self.keys.of(queue), arguments, worker=worker) for queue in queues]
        return self.redis.execute(commands, resend=True)


def earliest(replies: Iterable[Sequence[Any]]) -> float | None:
    """The least of the milliseconds that begin each reply, in seconds; -1 stands for never."""
    return min((reply[0] / 1000 for reply in replies if reply[0] >= 0), default=None)

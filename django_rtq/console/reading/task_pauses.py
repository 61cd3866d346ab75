"""Paused tasks: their jobs wait, and those of other tasks go on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django_rtq.console.merging import MOST, SUM
from django_rtq.console.reading.clients.holds import NO_HOLDS, Holds, paused_text, read_holds
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.keys import read_queue_names
from django_rtq.core.broker.scripts import MAINTAIN_AT_ONCE, SCRIPTS
from django_rtq.core.jobs.aliases import names_of
from django_rtq.exceptions import TooManyPausedTasks

MAX_CALLS = 100  # of resume, for one queue; the scheduler goes on


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPause:
    """A paused task in one queue, or one that was resumed and whose jobs are on their way back to their lanes."""

    task: str
    seconds: float | None = field(metadata=MOST)  # for how long it has been paused; None: it was resumed
    by: str  # who paused it; "": not known
    #: Jobs that claims have met, and that wait; others of the task may be in their lanes still.
    held: int = field(metadata=SUM)

    @property
    def is_over(self) -> bool:
        """Whether it was resumed."""
        return self.seconds is None

    @property
    def text(self) -> str:
        """For how long it has been paused, and by whom, in the language of the user."""
        return paused_text(Holds(paused_seconds=self.seconds, paused_by=self.by))


class TaskPauses:
    """Pauses and resumes tasks. Any thread may use it. All methods raise BrokerUnavailable."""

    def __init__(self, broker: Broker) -> None:
        self._redis, self._keys = broker.redis, broker.keys

    def pause_task(self, name: str, queue: str | None = None, *, by: str = "") -> list[str]:
        """Start no more jobs of a task, in one queue or in all that were used. Running jobs finish, new ones wait.

        Jobs under its aliases wait, too. Returns the queues where it was not paused before. Raises TooManyPausedTasks
        if a queue has too many; the task is paused in the others then.
        """
        pairs = [(place, task) for place in self._queues(queue) for task in names_of(name)]
        calls = [SCRIPTS["pause"].call(self._keys.of(place), (task, by)) for place, task in pairs]
        answers = list(zip(pairs, self._redis.execute(calls, resend=True), strict=True))
        paused = list(dict.fromkeys(place for (place, _), answer in answers if answer == b"paused"))
        if full := [place for (place, _), answer in answers if answer == b"full"]:
            raise TooManyPausedTasks(full[0], paused)
        return paused

    def resume_task(self, name: str, queue: str | None = None) -> list[str]:
        """Start the jobs of a paused task again, in one queue or in all. They go ahead of later jobs of their clients.

        Returns the queues in which it was paused. If many jobs wait, the scheduler gives the rest back.
        """
        resumed, left = [], [(place, task) for place in self._queues(queue) for task in names_of(name)]
        for _ in range(MAX_CALLS):
            calls = [SCRIPTS["resume"].call(self._keys.of(place), (task, MAINTAIN_AT_ONCE)) for place, task in left]
            replies = list(zip(left, self._redis.execute(calls, resend=True) if calls else [], strict=True))
            resumed += [place for (place, _), (status, _, _) in replies if status == b"resumed"]
            left = [pair for pair, (_, _, has_more) in replies if has_more]
        return list(dict.fromkeys(resumed))

    def _queues(self, queue: str | None) -> list[str]:
        if queue is not None:
            return [queue]
        return read_queue_names(self._redis.execute_one(("SMEMBERS", self._keys.queues), resend=True))


def read_pauses(found: Sequence[bytes], now_ms: int) -> tuple[TaskPause, ...]:
    """Read what the script `queue_overview` replies of paused tasks, sorted by name."""
    return tuple(sorted(_pauses(found, now_ms), key=lambda pause: pause.task))


def _pauses(found: Sequence[bytes], now_ms: int) -> Iterable[TaskPause]:
    for task, entry, held in zip(found[::3], found[1::3], found[2::3], strict=True):
        holds = read_task_hold(entry, now_ms)
        yield TaskPause(
            task=task.decode(errors="replace"), seconds=holds.paused_seconds, by=holds.paused_by, held=int(held)
        )


def read_task_hold(entry: bytes, now_ms: float) -> Holds:
    """Read a stored pause of a task, "<number> <ms> <who>"; "" or "<number>": it is not paused."""
    _number, _space, pause = entry.partition(b" ")
    return read_holds(now_ms, pause, None, b"") if pause else NO_HOLDS

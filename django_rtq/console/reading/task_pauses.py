"""Paused tasks: their jobs wait, and those of other tasks go on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django_rtq.console.merging import MOST, SUM
from django_rtq.console.reading.clients.holds import NO_HOLDS, Holds, paused_text, read_holds


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

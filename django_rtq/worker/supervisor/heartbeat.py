"""The heartbeat of a supervisor: renews the leases of its children, and takes back jobs whose lease ran out.

It runs in the supervisor because a job that holds the interpreter lock would starve a thread of its own process.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence

from django_rtq import __version__, signals
from django_rtq.broker.broker import Broker
from django_rtq.broker.messages import CancelRequest
from django_rtq.broker.redis.commands import Argument
from django_rtq.loop import Loop
from django_rtq.worker.memory import memory_bytes
from django_rtq.worker.shared_entries import Mark
from django_rtq.worker.shared_memory import SharedState

START_SECONDS = 0.2  # until the next beat while a child has not signed on yet
Children = Callable[[], Sequence[tuple[int, SharedState]]]  # process ids and pages of those that live


class Heartbeat(Loop):
    """Renews three times a lease, or sooner when somebody's lease is about to run out."""

    name = "heartbeat"

    def __init__(
        self,
        broker: Broker,
        queues: Sequence[str],
        children: Children,
        *,
        promotes: bool,
        supervisor: str = "",
        tell_asked: Callable[[Sequence[CancelRequest]], None] = lambda asked: None,
    ) -> None:
        # After an outage nothing is reclaimed for half a lease: each has to try to come back often enough.
        super().__init__(max_delay_seconds=min(5.0, broker.config.lease_seconds / 4))
        self._broker = broker
        self._queues = list(queues)
        self._children = children
        self._promotes = promotes
        self._supervisor = supervisor
        self._tell_asked = tell_asked
        self._audited: dict[str, int] = {queue: 0 for queue in queues}
        self._host = socket.gethostname()

    def tick(self) -> float:
        """One round trip while all is well."""
        interval = self._broker.config.lease_seconds / 3
        children = self._children()
        notes = {page.worker: self._note(pid, page) for pid, page in children if page.worker and not _is_given_up(page)}
        earliest, promoted, asked = self._broker.heartbeat(self._queues, notes, self._audited, promote=self._promotes)
        signals.send_promoted(Heartbeat, promoted)
        self._tell_asked(asked)
        if earliest is not None and earliest <= 0:
            earliest = self._reclaim()
        if any(not page.worker for _, page in children):
            interval = START_SECONDS
        return interval if earliest is None else min(interval, earliest + 0.01)

    def _reclaim(self) -> float | None:
        earliest: list[float] = []
        for queue in self._queues:
            seconds, taken = self._broker.reclaim(queue)
            if taken:
                signals.send_reclaimed(Heartbeat, queue, "", taken)
            if seconds is not None:
                earliest.append(seconds)
        return min(earliest, default=None)

    def _note(self, pid: int, page: SharedState) -> dict[str, Argument]:
        jobs_done, claimed_at = page.notes()
        note: dict[str, Argument] = {
            "host": self._host,
            "pid": pid,
            "supervisor": os.getpid(),
            "supervisor_name": self._supervisor,
            "quiet": int(page.is_quiet),
            "queues": ",".join(self._queues),
            "jobs_done": jobs_done,
            "slots": page.slots,
            "version": __version__,
            "up_seconds": f"{time.monotonic() - page.made_at:.0f}",
        }
        memory = memory_bytes(pid)
        if memory is not None:
            note["memory"] = memory
        if claimed_at:
            note["claim_seconds"] = f"{time.monotonic() - claimed_at:.3f}"
        return note


def _is_given_up(page: SharedState) -> bool:
    """Whether it looked frozen, and has not shown life since: then it takes a new name."""
    return page.taken is Mark.ALL

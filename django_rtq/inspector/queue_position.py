"""The position of a waiting job in its queue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django_rtq.jobs.job import clock_moment, moment


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePosition:
    """What a job waits for, as far as its queue knows."""

    now: datetime  # the server's time
    paused_at: datetime | None  # None: the queue is not paused
    workers: int  # workers of the queue; counted up to 100
    #: Jobs before it in its lane, counted up to 1,000; cancelled ones may be among them. None: not known.
    ahead: int | None
    after: str  # the job whose end it waits for; "": none
    promoted_at: datetime | None  # when a scheduler last looked for due jobs
    client_paused_at: datetime | None = None
    is_client_at_limit: bool = False  # its client runs as many jobs as it may
    is_queue_at_limit: bool = False
    client_starts_at: datetime | None = None  # when its client may start a job, if only its rate stops it
    queue_starts_at: datetime | None = None  # the same of the queue

    @classmethod
    def read(cls, reply: list[Any]) -> QueuePosition:
        """Read the reply of the script `queue_position`."""
        now_ms, paused, workers, ahead, after, promoted, client_paused, client_full, queue_full, *starts = reply
        return cls(
            now=clock_moment(now_ms),
            paused_at=moment(int(float(paused))) if paused else None,
            workers=workers,
            ahead=ahead if isinstance(ahead, int) else None,
            after=after.decode(errors="replace"),
            promoted_at=moment(int(float(promoted))) if promoted else None,
            client_paused_at=moment(int(client_paused)) if client_paused else None,
            is_client_at_limit=client_full == 1,
            is_queue_at_limit=queue_full == 1,
            client_starts_at=clock_moment(starts[0]) if starts[0] else None,
            queue_starts_at=clock_moment(starts[1]) if starts[1] else None,
        )

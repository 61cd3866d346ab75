"""Where a job stands that waits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django_rtq.jobs.job import clock_moment, moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a job waits for, as far as its queue tells."""

    now: datetime  # the server's time
    paused_at: datetime | None  # None: the queue is not paused
    workers: int  # that serve the queue; counted up to 100
    ahead: (
        int | None
    )  # jobs before it in its lane, counted up to 1,000; cancelled ones may be among them. None: not known
    after: str  # the job for whose end it waits; "": none
    promoted_at: datetime | None  # when somebody looked for due jobs

    @classmethod
    def read(cls, reply: list[Any]) -> Standing:
        """What the script `standing` tells."""
        now_ms, paused, workers, ahead, after, promoted = reply
        return cls(
            now=clock_moment(now_ms),
            paused_at=moment(int(float(paused))) if paused else None,
            workers=workers,
            ahead=ahead if isinstance(ahead, int) else None,
            after=after.decode(errors="replace"),
            promoted_at=moment(int(float(promoted))) if promoted else None,
        )

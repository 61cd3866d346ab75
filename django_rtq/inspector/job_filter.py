"""Which jobs fit a filter, found out where they lie: of the others nothing leaves Redis.

Names that are escaped in JSON are not decoded there. What has one is sent here, its beginning, and decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from django_rtq.broker.broker import MAINTAIN_AT_ONCE
from django_rtq.broker.keys import QueueKeys
from django_rtq.broker.scripts import SCRIPTS, Argument, Command
from django_rtq.inspector.details import JobDetails
from django_rtq.jobs.failure import read_cut_failure
from django_rtq.jobs.job import JobState
from django_rtq.jobs.record import read_head

if TYPE_CHECKING:
    from django_rtq.broker.redis.client import RedisClient
    from django_rtq.inspector.job_list import JobFilter
    from django_rtq.inspector.ride import Ride

AT_ONCE = MAINTAIN_AT_ONCE  # jobs that one script looks at; others wait for Redis meanwhile
TOGETHER = 2  # scripts of one round trip
_BYTES = 1000  # that are read of a record, and of its newest failure
_MESSAGE_BYTES = 4000  # the same, where its message matters


class RedisJobFilter:
    """A filter as the scripts take it, for one queue."""

    def __init__(self, redis: RedisClient | Ride, keys: QueueKeys, wanted: JobFilter) -> None:
        self._redis, self._keys, self._wanted = redis, keys, wanted

    def sift(self, ids: Sequence[bytes], *, by_ready: bool = False) -> set[bytes]:
        """Those of these jobs that fit, leaving times aside unless it is asked when they could start first."""
        parts = [ids[start : start + AT_ONCE] for start in range(0, len(ids), AT_ONCE)]
        found: set[bytes] = set()
        calls = [SCRIPTS["filter_jobs"].call(self._keys, (*self._wishes(times=by_ready), *part)) for part in parts]
        for part, (fitting, doubtful) in zip(parts, self._ask(calls), strict=True):
            found.update(part[place - 1] for place in fitting)
            found.update(part[place - 1] for place, *heads in doubtful if self._fits(*heads))
        return found

    def muster(self, start: int, stop: int, show: Callable[[int], object] | None = None) -> int:
        """Count the dead letters that match among those at these places, counted from the oldest.

        `show` is called with the number so far, while there is more to count.
        """
        wishes = (*self._wishes(times=True), self._wanted.id)
        calls = [
            SCRIPTS["count_matching"].call(self._keys, (*wishes, place, min(AT_ONCE, stop - place)))
            for place in range(start, stop, AT_ONCE)
        ]
        count = 0
        for left, (_, fitting, doubtful) in zip(reversed(range(len(calls))), self._ask(calls), strict=True):
            count += fitting + sum(self._fits(*heads) for _, *heads in doubtful)
            if left and show is not None:
                show(count)
        return count

    # -- inside

    def _wishes(self, *, times: bool) -> tuple[Argument, ...]:
        wanted = self._wanted
        client = "" if wanted.client is None else f"={wanted.client}"
        since, until = (wanted.since, wanted.until) if times else (None, None)
        moments = ["" if at is None else repr(at.timestamp() * 1000) for at in (since, until)]
        most = _MESSAGE_BYTES if wanted.error else _BYTES
        return (wanted.task, client, wanted.error_class, wanted.error, *moments, most)

    def _ask(self, calls: Sequence[Command]) -> Iterable[Any]:
        for start in range(0, len(calls), TOGETHER):
            yield from self._redis.execute(calls[start : start + TOGETHER], resend=True)

    def _fits(self, record: bytes, failure: bytes) -> bool:
        return self._wanted.fits_text(read_letter("", b"", record, failure))


def read_letter(queue: str, job_id: bytes, record: bytes, failure: bytes) -> JobDetails:
    """A dead letter as far as the beginnings of its record and of its newest failure tell."""
    header, task = read_head(record)
    return JobDetails(
        id=job_id.decode(errors="replace"),
        queue=queue,
        state=JobState.DEAD,
        task=task,
        client=header.client if header else "",
        errors=[read_cut_failure(failure)],
    )

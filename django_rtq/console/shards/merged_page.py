"""Pages of jobs of several shards as one, in the order of their lists. The cursor has a place in each shard."""

from __future__ import annotations

import base64
import heapq
import json
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from operator import itemgetter
from typing import Any

from django_rtq.console.reading.jobs.walk import JobPage, decode_list, encode_cursor
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import JobState

_LONGEST = 200_000  # bytes of the places in a cursor

#: The place in each shard: a cursor, "" for the beginning, None for the end. If it is not named: the beginning.
Places = Mapping[int, str | None]


def read_places(cursor: str) -> Places:
    """The places in a cursor of merged_page(). The beginning for a text that is none."""
    try:
        packed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        places = json.loads(zlib.decompressobj().decompress(packed, _LONGEST))
        return {int(number): None if place is None else encode_cursor(list(place)) for number, place in places}
    except (ValueError, TypeError, RecursionError, zlib.error):
        return {}


def write_places(places: Places) -> str:
    """The opposite of read_places(). Short: the cursors of 64 shards have to fit into a URL."""
    named = [(number, None if place is None else decode_list(place)) for number, place in places.items()]
    packed = zlib.compress(json.dumps(named, separators=(",", ":")).encode(), 9)
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def merged_page(
    pages: Mapping[int, JobPage], begun: Places, limit: int, list_of: Callable[[Sequence[Any]], int]
) -> JobPage:
    """The first `limit` of the jobs on these pages of shards, which began at these places.

    `list_of` is the number of the list in which a job is, of its place. Within a list, jobs are in the order that it
    has in each shard: see LISTS. Of queued jobs, one of each shard after the other comes, as each has turns of its own.
    A shard without a page stays where it is.
    """
    rows = heapq.merge(*(_rows(number, page, list_of) for number, page in pages.items()), key=itemgetter(0))
    jobs: list[JobDetails] = []
    taken = dict.fromkeys(pages, 0)
    for _, job, number in islice(rows, limit):
        jobs.append(job)
        taken[number] += 1
    return _page(jobs, pages, begun, taken)


def _rows(
    number: int, page: JobPage, list_of: Callable[[Sequence[Any]], int]
) -> Iterator[tuple[tuple[int, tuple[float, float]], JobDetails, int]]:
    for position, (job, (place, _)) in enumerate(zip(page.jobs, page.places, strict=True)):
        yield (list_of(place), order(job, position)), job, number


def _page(jobs: list[JobDetails], pages: Mapping[int, JobPage], begun: Places, taken: Mapping[int, int]) -> JobPage:
    places, searched, has_more, is_complete = dict(begun), 0, False, True
    for number, page in pages.items():
        if taken[number] == len(page.jobs):
            places[number], looked_at = page.next_cursor or None, page.searched
            is_complete = is_complete and page.is_complete
        elif taken[number]:
            place, looked_at = page.places[taken[number] - 1]
            places[number] = encode_cursor(place)
        else:
            looked_at = 0
        searched += looked_at
        has_more = has_more or taken[number] < len(page.jobs) or bool(page.next_cursor)
    cursor = write_places(places) if has_more else ""
    return JobPage(jobs=jobs, next_cursor=cursor, searched=searched, is_complete=is_complete)


def order(job: JobDetails, position: int) -> tuple[float, float]:
    """What comes first of the next jobs of several shards. `position`: that on the page of its shard."""
    match job.state:
        case JobState.QUEUED:
            return -job.priority, position
        case JobState.SCHEDULED | JobState.RETRYING:
            return _seconds(job.due_at), 0
        case JobState.RUNNING:
            return _seconds(job.claimed_at), 0
    return -_seconds(job.died_at or job.finished_at), 0


def _seconds(moment: datetime | None) -> float:
    return moment.timestamp() if moment else math.inf  # jobs that are held are the last that are due

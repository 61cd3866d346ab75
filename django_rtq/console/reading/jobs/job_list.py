"""Pages of jobs: some jobs of a queue in one state, and a cursor to the next page.

A cursor names the last job that was seen, not a position: jobs that come and go meanwhile shift nothing. Without a
filter a page takes one round trip; with one, as many as there are batches to search, up to a depth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from django_rtq.console.reading.jobs.job_filter import ALL_JOBS, JobFilter
from django_rtq.console.reading.jobs.job_page import DEPTH, JobPage
from django_rtq.console.reading.jobs.walk import JobWalk, List, Shown
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.scripts import MAINTAIN_AT_ONCE
from django_rtq.core.jobs.details import JobDetails


class JobListReader:
    """Reads lists of jobs. Any thread may use it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def page(
        self,
        queue: str,
        state: str,
        *,
        cursor: str = "",
        limit: int = 50,
        filter: JobFilter = ALL_JOBS,
        depth: int = DEPTH,
    ) -> JobPage:
        """Up to `limit` jobs that match. The state is one of LISTS: see there for the order. Raises ValueError."""
        return JobWalk(self._broker, [(queue, state)], filter).page(cursor, limit, depth)

    def search(self, lists: Sequence[List], filter: JobFilter, *, sizes: Mapping[List, int], shown: Shown) -> JobWalk:
        """A search of several lists, each a queue and a state: see JobWalk."""
        return JobWalk(self._broker, lists, filter, sizes=sizes, shown=shown)

    def each(
        self, queue: str, state: str, filter: JobFilter = ALL_JOBS, *, at_once: int = MAINTAIN_AT_ONCE
    ) -> Iterator[JobDetails]:
        """All jobs that match, page by page: see LISTS for the states and the order. Raises ValueError.

        They may change their state while this goes on; jobs that come meanwhile may be left out.
        """
        cursor = ""
        while True:
            page = self.page(queue, state, cursor=cursor, limit=at_once, filter=filter)
            yield from page.jobs
            cursor = page.next_cursor
            if not cursor:
                return

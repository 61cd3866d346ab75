"""The search over all queues and states: reads the query, and makes the table of what was found.

Nothing is indexed for it (D106).
"""

from __future__ import annotations

from typing import Any

from django.db import DatabaseError
from django.http import HttpRequest
from django.utils.translation import gettext as _

from django_rtq.console.admin import query_params
from django_rtq.console.admin.filters import chips
from django_rtq.console.admin.pages.page_admin import place_of
from django_rtq.console.formatting import LIST_LABELS, format_number
from django_rtq.console.reading.jobs.walk import list_sizes
from django_rtq.console.reading.members import read_query
from django_rtq.console.reading.selection import LONGEST, STATES, QueryError, Selection, query_error, words_of
from django_rtq.console.redaction import redacted
from django_rtq.console.render.column import PageUrl
from django_rtq.console.render.html import Viewer, tables
from django_rtq.console.shards import AllShards
from django_rtq.console.subjects.jobs import JOBS, list_of
from django_rtq.core.broker.task_backends import shard_numbers
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import made_at
from django_rtq.core.validation import did_you_mean
from django_rtq.databases.outbox import waiting_rows
from django_rtq.exceptions import BrokerError, JobNotFound


class JobSearch:
    """The search that a query string asks for."""

    def __init__(self, request: HttpRequest) -> None:
        self.readers, data = place_of(request).readers, request.GET
        self.text = "".join(c if c.isprintable() else " " for c in data.get("q", "").strip())
        self.cursor = query_params.get_text(data, "after", query_params.MAX_CURSOR)
        self.query, self.error = None, ""
        try:
            self.query = read_query(self.readers, self.text) if self.text else None
        except QueryError as error:
            self.text, self.cursor, self.error = self.text[:LONGEST], "", str(error)
        self.seen = query_params.get_int(data, "seen", 0) if self.cursor else 0  # jobs looked at for the pages before
        self.is_stopped = "stop" in data  # the browser does not continue by itself until there is a match

    def find_by_id(self) -> JobDetails | None:
        """The job, if the query is its id."""
        job_id, is_of_all = self.query.only_text if self.query else "", self.readers.is_of_all_shards
        if not job_id or self.cursor:
            return None
        try:
            return (AllShards() if shard_numbers() and not is_of_all else self.readers).find(job_id)
        except JobNotFound:
            return None
        except BrokerError:
            if not is_of_all:
                raise
            return None  # the page says that its shard does not answer

    def is_in_outbox(self) -> bool:
        """Whether the query is the id of a job that waits in the outbox."""
        job_id = self.query.only_text if self.query and not self.cursor else ""
        try:
            return made_at(job_id) is not None and bool(waiting_rows(self.readers.places, 1, job_id))
        except DatabaseError:
            return False

    def list_url(self, url: PageUrl) -> str:
        """The URL of the list of a queue, if the query is about one, and about one state. There one can act on all."""
        query = self.query
        if not query or len(query.queues) != 1 or len(query.states) != 1:
            return ""
        is_used = query.queues[0] in self.readers.queues.names()
        return self._list_url(url, query.queues[0], query.states[0]) if is_used else ""

    def _list_url(self, url: PageUrl, queue: str, state: str) -> str:
        words = [word for word in words_of(self.text) if not word.startswith(("queue:", "state:"))]
        words += [f"state:{self.query.outcome}"] if self.query and self.query.outcome else []
        return url("queue_change", queue, query={"state": state, "q": " ".join(words)})

    def context(self, viewer: Viewer) -> dict[str, Any]:
        """The context of the template."""
        error, found = self.error, {}
        if self.query:
            try:
                found = self._found(self.query, viewer)
            except QueryError as unknown:
                error = str(unknown)
        return {
            "title": _("Search jobs"),
            "search_text": self.text,
            "search_error": error,
            "examples": _examples(),
            "here": viewer.here,
            **found,
        }

    def _found(self, query: Selection, viewer: Viewer) -> dict[str, Any]:
        """Some jobs that match: those that run, then dead letters, retrying, queued, scheduled and finished ones.

        Raises QueryError for a queue that was never used, unless a shard is silent.
        """
        details = {queue.name: queue for queue in self.readers.queues.details()}
        for name in () if self.readers.silent else query.queues:
            if name not in details:
                raise query_error(f"queue:{name}", _("no queue of this name was used yet"), did_you_mean(name, details))
        states = [state for state in STATES if state in (query.states or STATES)]
        walked = [(name, state) for state in states for name in (query.queues or details) if name in details]
        sizes = list_sizes(details, walked)
        # What is hidden from people cannot be found.
        walk = self.readers.search(walked, query, sizes=sizes, shown=redacted)
        page = walk.page(self.cursor, JOBS.per_page)
        seen, url = self.seen + page.searched, viewer.url
        more = {"q": self.text, "after": page.next_cursor, "seen": seen}
        lists = dict.fromkeys((job.queue, list_of(job)) for job in page.jobs)
        return {
            **chips(self.text, page.jobs, lambda text: url("job_search", query={"q": text})),
            "tables": tables(JOBS, page.jobs, viewer, label=_("Jobs that match")),
            "range_text": _("%(searched)s of %(total)s jobs looked at.")
            % {"searched": format_number(seen), "total": format_number(sum(sizes.values()))},
            "empty_title": _("No match yet.") if page.next_cursor else _("No matching jobs."),
            "next_url": url("job_search", query=more) if page.next_cursor else "",
            "stop_url": url("job_search", query={"q": self.text, "after": self.cursor, "seen": self.seen, "stop": 1})
            if page.next_cursor and not page.jobs and not self.is_stopped
            else "",
            "first_url": url("job_search", query={"q": self.text}) if self.cursor else "",
            # where one can act on all that match
            "lists": [
                (
                    _("%(state)s in %(queue)s") % {"state": LIST_LABELS[state], "queue": queue},
                    self._list_url(url, queue, state),
                )
                for queue, state in lists
                if not query.text
            ],
        }


def _examples() -> list[tuple[str, str]]:
    return [
        ("018f3c2e…", _("the ID of a job: opens it; id:018f finds all whose ID starts so")),
        ("task:send_mail", _("a task: its full name, or the end of it")),
        ("client:acme", _("a client; client: without a name finds jobs without one")),
        ("workflow:month-end", _("a workflow: its name or ID")),
        ("error:timeout", _("a class of error, or a part of the newest message")),
        ("queue:mail state:dead", _("in this queue and state; the words can be given more than once")),
        ("since:1h before:2026-01-31T08:00", _("when it died, finished or is due, else when it became ready")),
        ("no stock", _("any text in the ID, task, client, arguments or error")),
    ]

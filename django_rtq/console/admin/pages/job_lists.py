"""Lists of jobs: those of a queue in one state, and what a search over all queues and states has found.

The filter of each is the query of a search, whose words are chips. Nothing is indexed for it (D106).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from django.db import DatabaseError
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_rtq.console.admin import query_params
from django_rtq.console.admin.pages.page_admin import place_of
from django_rtq.console.formatting import LIST_LABELS, format_number
from django_rtq.console.reading.actions import VERBS
from django_rtq.console.reading.details import QueueDetails
from django_rtq.console.reading.jobs.walk import list_sizes
from django_rtq.console.reading.members import read_query
from django_rtq.console.reading.selection import LISTS, LONGEST, STATES, QueryError, Selection, query_error, words_of
from django_rtq.console.redaction import redacted
from django_rtq.console.render.column import PageUrl
from django_rtq.console.render.html import Viewer, tables
from django_rtq.console.render.sheet import Empty
from django_rtq.console.sanitize import clean_text
from django_rtq.console.shards import AllShards
from django_rtq.console.subjects.jobs import JOB_LISTS, JOBS, list_of
from django_rtq.core.broker.task_backends import shard_numbers
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import made_at
from django_rtq.core.validation import did_you_mean
from django_rtq.databases.outbox import waiting_rows
from django_rtq.exceptions import BrokerError, JobNotFound

MAX_REFRESHED = 2000  # jobs that an automatic refresh may search through
#: Fields of a query: title, and the values that the jobs of a page suggest.
_FIELDS: dict[str, tuple[Any, Callable[[Sequence[JobDetails]], Iterable[str]]]] = {
    "state": (gettext_lazy("State"), lambda jobs: LISTS),
    "queue": (gettext_lazy("Queue"), lambda jobs: (job.queue for job in jobs)),
    "task": (gettext_lazy("Task"), lambda jobs: (job.task.rpartition(".")[2] for job in jobs)),
    "client": (gettext_lazy("Client"), lambda jobs: (job.client for job in jobs)),
    "class": (gettext_lazy("Error"), lambda jobs: (job.newest_error[0].rpartition(".")[2] for job in jobs)),
    "since": (gettext_lazy("Since"), lambda jobs: ("15min", "1h", "1d", "7d")),
}


def chips(
    text: str, jobs: Sequence[JobDetails], url: Callable[[str], str], *, fixed: Collection[str] = ()
) -> dict[str, Any]:
    """Each word of a query with the address without it, and the words that can be added, by field.

    `url`: the address for a query. `fixed`: fields that the page has.
    """
    words = list(words_of(text))
    given = {word.partition(":")[0] for word in words}
    menus = []
    for field, (title, values) in _FIELDS.items():
        found = [] if field in fixed or field in given else list(dict.fromkeys(filter(None, values(jobs))))
        names, options = LIST_LABELS if field == "state" else {}, []
        for value in found:
            word = f"since:{value}" if field == "since" else str(Selection().narrowed(**{field: value}))
            options.append((names.get(value, clean_text(value, 60)), url(" ".join([*words, word]))))
        if options:
            menus.append({"title": title, "options": options})
    without = (" ".join(words[:place] + words[place + 1 :]) for place in range(len(words)))
    return {
        "chips": [(clean_text(word, 60), url(rest)) for word, rest in zip(words, without, strict=True)],
        "menus": menus,
    }


def job_table(request: HttpRequest, details: QueueDetails, viewer: Viewer) -> dict[str, Any]:
    """The jobs of a queue that a query string asks for, as its template shows them.

    Wrong values are ignored, but a wrong query raises QueryError.
    """
    data, readers, name = request.GET, place_of(request).readers, details.name
    state, text = query_params.get_choice(data, "state", LISTS, "queued"), data.get("q", "").strip()
    wanted = read_query(readers, text).anywhere
    cursor = query_params.get_text(data, "after", query_params.MAX_CURSOR)  # "": the first page
    # Jobs on the pages before; other jobs may have come and gone since.
    before = query_params.get_int(data, "before", 0) if cursor else 0
    page = readers.search([(name, state)], wanted, shown=redacted).page(cursor, JOBS.per_page)
    verbs, jobs, behind = VERBS[state], page.jobs, before + len(page.jobs)

    def url(**changed: object) -> str:
        return viewer.url("queue_change", name, query={"state": state, "q": text, **changed})

    fields = ("queue", "state", *(() if state in ("retrying", "dead") else ("class",)))
    matching = {"q": str(replace(wanted, queues=[name], states=[state]))}
    searched = _("%(count)s searched so far; there are more.") % {"count": format_number(page.searched)}
    first, last = format_number(before + 1), format_number(behind)
    whole = format_number(max(getattr(details, state), behind))
    range_text = _("%(first)s–%(last)s of %(number)s")  # noqa: RUF001 - an en dash between numbers
    range_text %= {"first": first, "last": last, "number": whole}
    empty = JOB_LISTS[state].empty
    if wanted.is_filtered:
        range_text = f"{first}–{last}. {'' if page.is_complete else searched}".strip()  # noqa: RUF001
        empty = Empty(_("No matching jobs."), _("Change the filter or choose another state."))
    elif cursor:
        empty = Empty(_("No more jobs."))
    return {
        "state": state,
        "tabs": [
            (title, getattr(details, other), url(state=other), other == state) for other, title in LIST_LABELS.items()
        ],
        "search_text": clean_text(f"queue:{name} {'' if wanted.outcome else f'state:{state} '}{text}".strip()),
        **chips(text, jobs, lambda text: url(q=text), fixed=fields),
        "tables": tables(
            JOBS,
            jobs,
            replace(viewer, tick=_("Job %(id)s") if verbs else ""),
            label=LIST_LABELS[state],
            titles={**JOB_LISTS[state].titles, "queue": None},
        ),
        "verbs": verbs,
        # Redis does not know what is hidden from people, and would find it by a text.
        "all_urls": {verb: viewer.url(f"job_bulk_{verb}", query=matching) for verb in verbs if not wanted.text},
        "range_text": range_text,
        "next_url": url(after=page.next_cursor, before=behind) if page.next_cursor else "",
        "first_url": url() if cursor else "",
        "is_costly": wanted.is_filtered and page.searched > MAX_REFRESHED,
        "empty": Empty(_("No match yet."), searched) if page.next_cursor else empty,
    }


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

    def elsewhere(self, url: PageUrl) -> str:
        """The address of what the query names: of the job or the row of the outbox with this id, or of the list of a
        queue, if it is about one, and about one state. There one can act on all. "": it names nothing of these.
        """
        query = self.query
        job_id = query.text if query and query == Selection(text=query.text) and not self.cursor else ""
        if job_id and (job := self._find(job_id)):
            return url("job_change", job.id, query={"queue": job.queue})
        with suppress(DatabaseError):
            if made_at(job_id) is not None and waiting_rows(self.readers.places, 1, job_id):
                return url("job_outbox", query={"search": self.text})
        if query and len(query.queues) == len(query.states) == 1 and query.queues[0] in self.readers.queues.names():
            return self._list_url(url, query.queues[0], query.states[0])
        return ""

    def _find(self, job_id: str) -> JobDetails | None:
        is_of_all = self.readers.is_of_all_shards
        try:
            return (AllShards() if shard_numbers() and not is_of_all else self.readers).find(job_id)
        except JobNotFound:
            return None
        except BrokerError:
            if not is_of_all:
                raise
            return None  # the page says that its shard does not answer

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
            "examples": EXAMPLES,
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
                if VERBS[state] and not query.text
            ],
        }


EXAMPLES = (
    ("018f3c2e…", gettext_lazy("the ID of a job: opens it; id:018f finds all whose ID starts so")),
    ("task:send_mail", gettext_lazy("a task: its full name, or the end of it")),
    ("client:acme", gettext_lazy("a client; client: without a name finds jobs without one")),
    ("workflow:month-end", gettext_lazy("a workflow: its name or ID")),
    ("error:timeout", gettext_lazy("a class of error, or a part of the newest message")),
    ("queue:mail state:dead", gettext_lazy("in this queue and state; the words can be given more than once")),
    ("since:1h before:2026-01-31T08:00", gettext_lazy("when it died, finished or is due, else when it became ready")),
    ("no stock", gettext_lazy("any text in the ID, task, client, arguments or error")),
)

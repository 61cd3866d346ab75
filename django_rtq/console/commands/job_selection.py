"""Which jobs the options of rtq_jobs select."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from django.core.management.base import CommandError
from django.utils.translation import override

from django_rtq.console.commands.job_arguments import LISTED_STATES, VERBS
from django_rtq.console.commands.prompts import known_queues
from django_rtq.console.nouns import find_jobs
from django_rtq.console.reading.jobs.job_filter import JobFilter
from django_rtq.console.reading.readers import Readers
from django_rtq.console.reading.selection import QueryError, Selection
from django_rtq.console.search import check_states, read_query, search_all
from django_rtq.core.commands.command import WRONG_USAGE
from django_rtq.core.jobs.details import JobDetails
from django_rtq.exceptions import JobNotFound


@override("en")
def read_selection(readers: Readers, options: dict[str, Any]) -> Selection:
    """The jobs that the options describe. Raises CommandError."""
    if options["query"] is None:
        wanted = JobFilter(
            task=options["task"] or "",
            client=options["client"],
            error=options["error"] or "",
            since=options["since"],
        )
        queues = known_queues(readers, filter(None, [options["queue"]]))
        return Selection(queues=queues, states=options.get("state") or (), filter=wanted)
    try:
        selection = read_query(readers, options["query"])
        if options["action"] != "list":
            check_states(VERBS[options["action"]], selection)
    except QueryError as error:
        raise CommandError(str(error), returncode=WRONG_USAGE) from None
    if options["action"] != "list":
        known_queues(readers, selection.queues)
    return selection


def list_jobs(readers: Readers, options: dict[str, Any], limit: int | None) -> Iterator[JobDetails]:
    """The jobs that match: those that a query finds as the search of the admin does, others as in find_jobs()."""
    selection = read_selection(readers, options)
    if options["query"] is not None:
        return islice(_found_by_query(readers, selection), limit)
    found = find_jobs(readers, replace(selection, states=selection.states or LISTED_STATES))
    return islice(found, limit)


def find_one(readers: Readers, job_id: str, options: dict[str, Any]) -> JobDetails:
    """One job; of any queue, if none is named. Raises JobNotFound."""
    job = readers.find(job_id, options["queue"])
    if options["queue"] not in (None, job.queue):
        raise JobNotFound(job_id)
    return job


def _found_by_query(readers: Readers, query: Selection) -> Iterator[JobDetails]:
    try:
        yield from search_all(readers, query)
    except QueryError as error:
        raise CommandError(str(error)) from None

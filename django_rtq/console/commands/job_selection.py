"""Which jobs the options of rtq_jobs select."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from django.core.management.base import CommandError
from django.utils.translation import override

from django_rtq.console.commands.job_arguments import LISTED_STATES, VERBS
from django_rtq.console.commands.prompts import known_queues
from django_rtq.console.nouns import find_jobs
from django_rtq.console.reading.jobs.job_filter import JobFilter
from django_rtq.console.reading.readers import Readers
from django_rtq.console.reading.selection import QueryError, Selection
from django_rtq.console.redaction import redacted
from django_rtq.console.search import STATES, check_states, read_query
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
    known_queues(readers, selection.queues)
    return selection


def list_jobs(readers: Readers, options: dict[str, Any]) -> Iterator[tuple[JobDetails, Callable[[], str]]]:
    """The jobs that match, redacted, each with the cursor behind it. What is hidden from people cannot be found."""
    selection = read_selection(readers, options)
    usual = LISTED_STATES if options["query"] is None else STATES
    selection = replace(selection, states=selection.states or usual)
    found = find_jobs(readers, selection, cursor=options["after"], shown=redacted)
    return ((redacted(job), partial(readers.job_list.cursor_behind, place)) for job, place in found)


def find_one(readers: Readers, job_id: str, options: dict[str, Any]) -> JobDetails:
    """One job; of any queue, if none is named. Raises JobNotFound."""
    job = readers.find(job_id, options["queue"])
    if options["queue"] not in (None, job.queue):
        raise JobNotFound(job_id)
    return job

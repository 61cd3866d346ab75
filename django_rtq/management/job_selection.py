"""Which jobs the options of rtq_jobs select."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from heapq import merge
from itertools import chain, islice
from typing import Any

from django.core.management.base import CommandError
from django.utils.translation import override

from django_rtq.exceptions import JobNotFound, WrongState
from django_rtq.inspector.details import JobDetails
from django_rtq.inspector.inspector import Inspector
from django_rtq.inspector.jobs.job_filter import JobFilter
from django_rtq.jobs.job import JobState
from django_rtq.management.command import WRONG_USAGE
from django_rtq.management.job_arguments import STATES
from django_rtq.management.prompts import known_queues
from django_rtq.search import searching
from django_rtq.search.query import Query, QueryError, parse

_LONG_AGO = datetime(1970, 1, 1, tzinfo=timezone.utc)


def selected_queues(inspector: Inspector, options: dict[str, Any]) -> list[str]:
    """The queue that --queue names, or all but that of --to. Raises CommandError for an unknown one."""
    if options["queue"] is None:
        return [name for name in inspector.queues.names() if name != options.get("to")]
    return known_queues(inspector, [options["queue"]])


def selected_states(options: dict[str, Any]) -> Sequence[str]:
    """The states of the option --state, or those that the action takes by default."""
    default, _ = STATES.get(options["action"], (("dead",), ()))
    return options.get("state") or default


def selects_only(name: str, options: dict[str, Any]) -> bool:
    """Whether the options select all waiting jobs of a client or a task, in one queue or in all."""
    others = {"client", "task", "state", "error", "since", "limit"} - {name}
    return options[name] is not None and not options["ids"] and all(options[other] is None for other in others)


def job_filter(options: dict[str, Any]) -> JobFilter:
    """The filter that the options describe."""
    return JobFilter(
        task=options["task"] or "",
        client=options["client"],
        error=options["error"] or "",
        since=options["since"],
    )


def find_jobs(inspector: Inspector, options: dict[str, Any], limit: int | None) -> Iterator[JobDetails]:
    """The jobs that match, one state after the other; dead letters of all queues together, the newest first."""
    if options.get("query") is not None:
        return islice(_found_by_query(inspector, options["query"]), limit)
    queues, wanted = selected_queues(inspector, options), job_filter(options)
    return islice(
        chain.from_iterable(_in_state(inspector, queues, state, wanted) for state in selected_states(options)),
        limit,
    )


@override("en")
def _query(text: str) -> Query:
    try:
        return parse(text)
    except QueryError as error:
        raise CommandError(str(error), returncode=WRONG_USAGE) from None


def _found_by_query(inspector: Inspector, text: str) -> Iterator[JobDetails]:
    try:
        yield from searching.each(inspector, _query(text))
    except QueryError as error:
        raise CommandError(str(error)) from None


def find_one(inspector: Inspector, job_id: str, options: dict[str, Any]) -> JobDetails:
    """One job; of any queue, if none is named. Raises JobNotFound."""
    job = inspector.find(job_id, options["queue"])
    if options["queue"] not in (None, job.queue):
        raise JobNotFound(job_id)
    return job


def find_dead_letter(inspector: Inspector, job_id: str, options: dict[str, Any]) -> JobDetails:
    """One dead letter. Raises JobNotFound, and WrongState for any other job."""
    job = find_one(inspector, job_id, options)
    if job.state is not JobState.DEAD:
        raise WrongState(job_id, f"is not a dead letter: it is {job.state}, in queue {job.queue}.")
    return job


def _in_state(inspector: Inspector, queues: Sequence[str], state: str, wanted: JobFilter) -> Iterator[JobDetails]:
    found = [inspector.job_list.each(queue, state, wanted) for queue in queues]
    if state == "dead":
        return merge(*found, key=lambda job: job.died_at or _LONG_AGO, reverse=True)
    return chain.from_iterable(found)

"""Job filters. They are applied inside Redis, so that jobs that do not match are never sent.

The scripts do not decode what is escaped in JSON. A job of which they cannot tell whether it matches they return as a
whole, and Python decides.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

from django_rtq.core.broker.redis.commands import Argument
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.failure import read_cut_failure
from django_rtq.core.jobs.job import JobState
from django_rtq.core.jobs.record import read_head
from django_rtq.core.tasks.registry import other_names
from django_rtq.workflows.store import workflow_of


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Selects the jobs for which all of this is true. Empty: all jobs."""

    task: str = (
        ""  # the full name, or its end after a dot; "=" and the full name: no other. Jobs under aliases match, too
    )
    client: str | None = None  # "" selects the jobs without a client
    error_class: str = ""  # of the newest failure: the full name, or its end after a dot
    error: str = ""  # part of the newest failure's message, or its class as above
    id: str = ""  # the id, or its beginning
    workflow: str = ""  # the id of a workflow, or a name if `workflow_ids` are given
    workflow_ids: Sequence[str] = ()  # of the workflows with that name
    since: datetime | None = None  # dead: died; scheduled, retrying: due; finished: finished; else: became ready
    until: datetime | None = None
    outcome: str = ""  # succeeded, cancelled or expired; "": any state
    text: str = ""  # in the id, task, client, arguments, or newest failure's class or message

    def __bool__(self) -> bool:
        return self != ALL_JOBS

    def fits(self, job: JobDetails) -> bool:
        """Whether the job matches."""
        at, (kind, message) = job.died_at or job.due_at or job.finished_at or job.ready_at, job.newest_error
        return (
            job.id.startswith(self.id)
            and (not self.workflow or workflow_of(job.id) in self._workflows)
            and (self.since is None or (at is not None and at >= self.since))
            and (self.until is None or (at is not None and at <= self.until))
            and (not self.outcome or job.state == self.outcome)
            and (not self.task or any(_is_or_ends(job.task, name) for name in self._task_names))
            and (self.client is None or job.client == self.client)
            and (not self.error_class or _is_or_ends(kind, self.error_class))
            and (not self.error or _is_or_ends(kind, self.error) or self.error in message)
            and (not self.text or has_text(job, self.text))
        )

    def script_arguments(self, until_ms: int | None = None) -> tuple[Argument, ...]:
        """The first arguments of search_jobs. `until_ms`: no later, whatever else is asked."""
        client = "" if self.client is None else f"={self.client}"
        since, until = (None if at is None else round(at.timestamp() * 1000, 3) for at in (self.since, self.until))
        latest = min((ms for ms in (until, until_ms) if ms is not None), default=None)
        moments = ["" if ms is None else repr(ms) for ms in (since, latest)]
        return ("\n".join(self._task_names), client, self.error_class, self.error, *moments, spellings(self.text))

    @property
    def ids_argument(self) -> str:
        """Which ids match, for scripts."""
        return "\n".join((self.id, *self._workflows))

    @property
    def outcome_texts(self) -> str:
        """Texts that are all in the outcome of a finished job that matches, or in its id: for search_jobs."""
        texts = [in_json(text) for text in (self.error_class, self.error, self.text)]
        texts += [f'"state":"{self.outcome}"'] if self.outcome in ("cancelled", "expired") else []
        task = "" if len(self._task_names) > 1 else self.task.removeprefix("=")
        texts += [in_json(task), in_json(self.client or "")]
        return "\n".join(filter(None, texts))

    @property
    def _workflows(self) -> Sequence[str]:
        return self.workflow_ids or ([self.workflow] if self.workflow else ())

    @property
    def _task_names(self) -> list[str]:
        """The name of the task, and with "=" its aliases: jobs may have any of them."""
        aliases = other_names(lambda name: _is_or_ends(name, self.task)) if self.task else []
        return [self.task, *(f"={alias}" for alias in aliases)]


ALL_JOBS = JobFilter()


def _is_or_ends(full: str, name: str) -> bool:
    """Whether this is the full name, or its end after a dot; with a "=" before it, only the full name."""
    if name.startswith("="):
        return full == name[1:]
    return full == name or full.endswith(f".{name}")


def read_dead_letter(queue: str, job_id: bytes, record: bytes, failure: bytes) -> JobDetails:
    """A dead letter, as far as the beginnings of its record and of its newest failure say."""
    header, task = read_head(record)
    return JobDetails(
        id=job_id.decode(errors="replace"),
        queue=queue,
        state=JobState.DEAD,
        task=task,
        client=header.client if header else "",
        errors=[read_cut_failure(failure)],
    )


# -- a text anywhere in a job


def in_json(text: str) -> str:
    """How the text is written inside a string of JSON."""
    return serializer.dumps(text)[1:-1]


def spellings(text: str) -> str:
    """How the text may be written in a record or failure, a line each: in JSON, or as it is."""
    return "\n".join(dict.fromkeys((in_json(text), *([text] if "\n" not in text else ()))))


def has_text(job: JobDetails, text: str) -> bool:
    """Whether the text is anywhere in what lists show of a job."""
    kind, message = job.newest_error
    if any(text in part for part in (job.id, job.task, job.client, kind, message)):
        return True
    return any(text in _written(part) for value in (job.args, job.kwargs) for part in _parts(value))


def _written(value: Any) -> str:
    if value is None or isinstance(value, bool | float):
        return json.dumps(value)
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _parts(value: Any) -> Iterator[Any]:
    """Keys and values, at any depth."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _parts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _parts(item)
    else:
        yield value

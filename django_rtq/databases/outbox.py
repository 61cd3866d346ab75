"""The outbox: rows for the jobs of a transaction, which the commit makes durable (RTQ["OUTBOX"]).

1. delay() inserts a row for each job, in the open transaction
2. after the commit the same process sends the jobs to Redis and deletes their rows
3. if that process was killed or Redis did not respond, the relay of a scheduler does so later: see relay.py

A job has its id from the start, and sending it twice makes one job (G8). A mark "is being sent" in the row would be one
UPDATE more for each commit, and say nothing after a kill.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from functools import cache
from itertools import islice
from operator import itemgetter
from typing import Any

from django.apps import apps
from django.db import Error, connections, models

from django_rtq.core.broker.messages import PLAIN_FIELDS, EnqueueCall, NewJob
from django_rtq.core.broker.task_backends import backends_in, place_of, place_of_job, places
from django_rtq.core.conf.queue_options import is_queue_name
from django_rtq.core.jobs.job import made_ms, new_job_id
from django_rtq.core.transactions import outbox_database
from django_rtq.databases.clocks import database_now
from django_rtq.databases.migrating import advised, with_advice

logger = logging.getLogger("django_rtq")

GRACE_SECONDS = 5.0  # for the process that has inserted a row; then relays take it
AT_ONCE = 500  # rows of one DELETE
MOST_COUNTED = 100_000

#: The format of rows: what is in the column `job`. A change takes over rows of the former number, or says in
#: the changelog what to do with them.
FORMAT = 1
WORKFLOW_FORMAT = 2  # of a row with a whole workflow

_COLUMNS = ("job_id", "backend", "queue", "task", "job", "format", "due_at", "attempts", "error")
_DUE_AT = _COLUMNS.index("due_at")


@cache
def _model() -> type[models.Model]:
    """The model. It is looked up late: projects import tasks before the models are loaded."""
    model: type[models.Model] = apps.get_model("django_rtq", "OutboxJob")
    return model


def outbox_rows(alias: str) -> models.QuerySet[Any]:
    """The rows in a database."""
    rows: models.QuerySet[Any] = _model()._base_manager.using(alias)
    return rows


def rows_of(alias: str, place: str) -> models.QuerySet[Any]:
    """The rows of one Redis. Those of a backend that TASKS does not have are with RTQ["REDIS"]."""
    rows = outbox_rows(alias)
    if place:
        rows = rows.filter(backend__in=[place, *backends_in(place)])
    elif others := [name for other in places()[1:] for name in (other, *backends_in(other))]:
        rows = rows.exclude(backend__in=others)
    return rows


def store(alias: str, task: str, call: EnqueueCall) -> list[NewJob]:
    """Insert a row for each job, in the open transaction. Returns the jobs with times that do not count from now on.

    Raises what the database raises.
    """
    stored = [_with_absolute_times(job) for job in call.jobs]
    due_at = database_now() + timedelta(seconds=GRACE_SECONDS)
    rows = [  # relays keep this order
        (
            job.id,
            place_of(place_of_job(call.backend, job.id)),
            call.queue,
            task,
            json.dumps(job if job.digest else job[:PLAIN_FIELDS]),
            FORMAT,
            due_at + timedelta(microseconds=number),
            0,
            "",
        )
        for number, job in enumerate(stored)
    ]
    try:
        if len(rows) == 1:
            _insert(alias, rows[0])
        else:
            model = _model()
            outbox_rows(alias).bulk_create(model(**dict(zip(_COLUMNS, row, strict=True))) for row in rows)
    except Error as error:
        raise advised(error, alias) from error
    return stored


def store_text(alias: str, place: str, queue: str, name: str, text: str) -> str:
    """Insert a row for what is no call of a task, in the open transaction if there is one. Returns its key.

    Raises what the database raises.
    """
    key, due_at = new_job_id(), database_now() + timedelta(seconds=GRACE_SECONDS)
    try:
        _insert(alias, (key, place, queue, name, text, WORKFLOW_FORMAT, due_at, 0, ""))
    except Error as error:
        raise advised(error, alias) from error
    return key


def _insert(alias: str, row: Sequence[Any]) -> None:
    """Insert one row with a statement of our own: the ORM takes several times as long to build it."""
    connection = connections[alias]
    values = [connection.ops.adapt_datetimefield_value(value) if value is row[_DUE_AT] else value for value in row]
    with connection.cursor() as cursor:
        cursor.execute(_insertion(alias, connection.vendor), values)


@cache
def _insertion(alias: str, vendor: str) -> str:
    """The statement. `vendor`: a test may put another database in the place of this one."""
    quote, table = connections[alias].ops.quote_name, _model()._meta.db_table
    names, marks = ", ".join(map(quote, _COLUMNS)), ", ".join(["%s"] * len(_COLUMNS))
    return f"INSERT INTO {quote(table)} ({names}) VALUES ({marks})"


def delete(alias: str, job_ids: Sequence[str]) -> None:
    """Delete rows, in one statement for some hundreds. Raises what the database raises."""
    connection, left = connections[alias], iter(job_ids)
    table = connection.ops.quote_name(_model()._meta.db_table)
    while part := list(islice(left, AT_ONCE)):
        marks = ", ".join(["%s"] * len(part))
        with connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {table} WHERE job_id IN ({marks})", part)


def delete_or_log(alias: str, job_ids: Sequence[str]) -> None:
    """Delete rows of jobs that were sent. If that fails, a relay sends the jobs again and deletes the rows."""
    try:
        delete(alias, job_ids)
    except Error as error:
        logger.warning("rows of jobs that were sent could not be deleted from the outbox; a relay will: %s", error)


def read_call(queue: str, job: str, row_format: int = FORMAT) -> EnqueueCall:
    """The call that a row stands for. Raises ValueError."""
    if row_format != FORMAT:
        raise ValueError(
            f"the row has format {row_format}, and this version of django_rtq reads format {FORMAT}. A worker or "
            "scheduler of the version that wrote the row sends its job."
        )
    if not is_queue_name(queue):
        raise ValueError(f"{queue!r} is not the name of a queue.")
    values = json.loads(job)
    if isinstance(values, list) and len(values) in (PLAIN_FIELDS, len(NewJob._fields)):
        return EnqueueCall(queue, [NewJob(*values)])
    raise ValueError("The row has not the fields of a job.")


def _with_absolute_times(job: NewJob) -> NewJob:
    """A copy of the job with times that count from the call, not from when it arrives in Redis."""
    if not job.due.startswith("+") and not job.expires.startswith("+"):
        return job
    made = made_ms(job.id)
    due = _absolute(job.due, made)
    return job._replace(due=due, expires=_absolute(job.expires, int(due or made)))


def _absolute(moment: str, since_ms: int) -> str:
    return str(since_ms + int(moment)) if moment.startswith("+") else moment


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxLag:
    """What waits in the outbox."""

    jobs: int  # MOST_COUNTED at most
    oldest_seconds: float  # since the call; 0.0 if there is none
    error: str = ""  # why the database did not say
    oldest_error: str = ""  # why the oldest could not be sent, if a relay has tried
    oldest_queue: str = ""


def outbox_lag(place: str) -> OutboxLag | None:
    """What waits in the outbox for a Redis; None if there is no outbox.

    Errors of the database are a part of it.
    """
    alias = outbox_database()
    if alias is None:
        return None
    try:
        rows = rows_of(alias, place)
        first = rows.order_by("pk").values_list("pk", "error", "queue").first()  # ids begin with their time
        jobs = rows.values("pk")[:MOST_COUNTED].count()
    except Error as error:
        return OutboxLag(jobs=0, oldest_seconds=0.0, error=with_advice(error, alias))
    oldest, why, queue = first or ("", "", "")
    seconds = max(0.0, time.time_ns() / 1e9 - made_ms(oldest) / 1000) if oldest else 0.0
    return OutboxLag(jobs=jobs, oldest_seconds=seconds, oldest_error=why, oldest_queue=queue)


def sum_of_lags(lags: Iterable[OutboxLag | None]) -> OutboxLag | None:
    """What waits in the outbox for all shards."""
    every = sorted((lag for lag in lags if lag is not None), key=lambda lag: (lag.error == "", -lag.oldest_seconds))
    return replace(every[0], jobs=sum(lag.jobs for lag in every)) if every else None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRow:
    """A job that waits in the outbox."""

    job_id: str
    queue: str
    task: str
    attempts: int  # of relays, that were refused
    due_at: datetime  # when a relay may take it
    error: str  # of the last attempt


def waiting_rows(of_places: Iterable[str], most: int, beginning: str = "") -> list[OutboxRow]:
    """What waits in the outbox for these, the oldest first; with ids that begin so. Raises what the database raises."""
    alias, names = outbox_database(), [each.name for each in fields(OutboxRow)]
    rows = [rows_of(alias, place) for place in of_places] if alias is not None else []
    found = [row for each in rows for row in each.filter(pk__startswith=beginning).order_by("pk").values(*names)[:most]]
    return [OutboxRow(**row) for row in sorted(found, key=itemgetter("job_id"))[:most]]

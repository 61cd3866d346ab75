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
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from django.apps import apps
from django.db import Error, connections, models

from django_rtq.core.broker.messages import PLAIN_FIELDS, EnqueueCall, NewJob, is_refusal
from django_rtq.core.broker.task_backends import backends_in, place_of, place_of_job, places, shard_of
from django_rtq.core.conf.queue_options import is_queue_name
from django_rtq.core.jobs.job import about_jobs, made_ms, new_job_id
from django_rtq.core.transactions import Answers, away, has_transaction, outbox_database, refusal
from django_rtq.databases.clocks import database_now
from django_rtq.databases.migrating import advised, with_advice
from django_rtq.exceptions import BrokerError, BrokerFull, BrokerUnavailable

logger = logging.getLogger("django_rtq")

GRACE_SECONDS = 5.0  # for the process that has inserted a row; then relays take it
AT_ONCE = 500  # rows of one DELETE
MOST_COUNTED = 100_000

#: The format of rows: what is in the column `job`. A change takes over rows of the former number, or says in
#: the changelog what to do with them.
FORMAT = 1
WORKFLOW_FORMAT = 2  # of a row with a whole workflow


class OutboxRow(NamedTuple):
    """A row of the table, with the fields of the model."""

    job_id: str
    backend: str
    queue: str
    task: str
    due_at: datetime  # when a relay may take it
    attempts: int = 0  # of relays, that were refused
    error: str = ""  # of the last attempt
    format: int = FORMAT
    job: str = ""  # not read for lists: it may be a megabyte


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


def store_text(alias: str, place: str, queue: str, name: str, text: str) -> str:
    """Insert a row for what is no call of a task, in the open transaction if there is one. Returns its key.

    Raises what the database raises.
    """
    key, due_at = new_job_id(), database_now() + timedelta(seconds=GRACE_SECONDS)
    _insert(alias, [OutboxRow(key, place, queue, name, due_at, format=WORKFLOW_FORMAT, job=text)])
    return key


def _insert(alias: str, rows: Sequence[OutboxRow]) -> None:
    """One row with a statement of our own: the ORM takes several times as long to build it."""
    connection, row = connections[alias], rows[0]
    try:
        if rows[1:]:
            outbox_rows(alias).bulk_create(_model()(**row._asdict()) for row in rows)
            return
        values = [connection.ops.adapt_datetimefield_value(value) if value is row.due_at else value for value in row]
        with connection.cursor() as cursor:
            cursor.execute(_insertion(alias, connection.vendor), values)
    except Error as error:
        raise advised(error, alias) from error


@cache
def _insertion(alias: str, vendor: str) -> str:
    """The statement. `vendor`: a test may put another database in the place of this one."""
    quote, table = connections[alias].ops.quote_name, _model()._meta.db_table
    names, marks = ", ".join(map(quote, OutboxRow._fields)), ", ".join(["%s"] * len(OutboxRow._fields))
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


def waiting_rows(of_places: Iterable[str], most: int, beginning: str = "") -> list[OutboxRow]:
    """What waits in the outbox for these, the oldest first; with ids that begin so. Raises what the database raises."""
    alias = outbox_database()
    rows = [rows_of(alias, place) for place in of_places] if alias is not None else []
    waiting = [each.filter(pk__startswith=beginning).order_by("pk") for each in rows]
    return sorted(OutboxRow(*row) for each in waiting for row in each.values_list(*OutboxRow._fields[:-1])[:most])[
        :most
    ]


# -- as delay() and commits use it, in any thread: see core/transactions.py. Each outage is logged once. A call with
# jobs for several shards does not say which of them failed: it is about all.

_lock = threading.Lock()


def store(alias: str, task: str, call: EnqueueCall) -> list[NewJob]:
    """Insert a row for each job, in the open transaction. Returns the jobs as they are to be sent then.

    Their times do not count from now on. Raises what the database raises.
    """
    stored = [_with_absolute_times(job) for job in call.jobs]
    due_at = database_now() + timedelta(seconds=GRACE_SECONDS)
    rows = [  # relays keep this order
        OutboxRow(
            job.id,
            place_of(place_of_job(call.backend, job.id)),
            call.queue,
            task,
            due_at + timedelta(microseconds=number),
            job=json.dumps(job if job.digest else job[:PLAIN_FIELDS]),
        )
        for number, job in enumerate(stored)
    ]
    _insert(alias, rows)
    return stored


def store_instead(task: str, call: EnqueueCall, error: BrokerError) -> bool:
    """Insert rows for jobs that Redis did not accept. False: a transaction is open, which may roll back."""
    alias = outbox_database()
    if alias is None or has_transaction(alias):
        return False
    store(alias, task, call)
    extra = about_jobs([job.id for job in call.jobs], task=task, queue=call.queue)
    level = logging.WARNING if _begins_outage(call, error) else logging.DEBUG
    text = "Redis did not accept %d job(s) of %s; they wait in the outbox, as the next ones do: %s"
    logger.log(level, text, len(call.jobs), task, error, extra=extra)
    return True


def note_answers(calls: Sequence[tuple[EnqueueCall, Answers]], alias: str = "") -> None:
    """These calls were sent. `alias`: the database with rows of their jobs, if they have some. Raises nothing."""
    answered = [(call, answers) for call, answers in calls if not isinstance(answers, BrokerError)]
    stored = [
        job.id
        for call, answers in answered
        for job, answer in zip(call.jobs, answers, strict=True)
        if not is_refusal(answer)
    ]
    if alias and stored:
        delete_or_log(alias, stored)
    if away:
        for call, _ in answered:
            _end_outage(call)
    refused = [(call, error) for call, answers in calls if (error := refusal(call, answers))]
    if alias and refused:
        extra = about_jobs([job.id for call, _ in refused for job in call.jobs])
        told = [error for call, error in refused if _begins_outage(call, error)]
        text = "Redis did not accept the jobs of a transaction; they wait in the outbox, as the next ones do: %s"
        logger.log(logging.WARNING if told else logging.DEBUG, text, (told or [refused[0][1]])[0], extra=extra)


def _end_outage(call: EnqueueCall) -> None:
    with _lock:
        ended = sorted(away & _places_of(call))
        away.difference_update(ended)
    for place in ended:
        alias = outbox_database()
        lag = None if alias is None or has_transaction(alias) else outbox_lag(place)
        waits = f", and {lag.jobs} job(s) wait in the outbox for a relay" if lag and not lag.error else ""
        where = "Redis" if shard_of(place) is None else f"Shard {shard_of(place)}"
        logger.info("%s accepts jobs again%s", where, waits)


def _begins_outage(call: EnqueueCall, error: Exception) -> bool:
    """Whether this error is to be logged as a warning: it is of no outage, or of one that was not noticed yet."""
    if not isinstance(error, BrokerUnavailable | BrokerFull):
        return True
    with _lock:
        places = _places_of(call)
        is_new = away.isdisjoint(places)
        away.update(places)
    return is_new


def _places_of(call: EnqueueCall) -> set[str]:
    return {place_of(place_of_job(call.backend, job.id)) for job in call.jobs}

"""Moves jobs from the outbox to Redis that the process that enqueued them did not send.

Each scheduler has a relay for the jobs of its Redis, and any number may run: where the database can skip locked rows
each takes other rows, and elsewhere a job that two of them send is stored once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby
from typing import Any

from django.db import Error, connections, models, transaction

from django_rtq.core import signals
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.messages import EnqueueCall, queue_full
from django_rtq.core.broker.task_backends import place_of
from django_rtq.core.extension import required
from django_rtq.core.jobs.job import about_jobs, made_ms
from django_rtq.core.threads import Loop
from django_rtq.databases.clocks import database_now
from django_rtq.databases.exactly_once import known_jobs
from django_rtq.databases.migrating import with_advice
from django_rtq.databases.outbox import WORKFLOW_FORMAT, OutboxRow, delete, outbox_rows, read_call, rows_of
from django_rtq.exceptions import (
    BrokerError,
    BrokerFull,
    BrokerUnavailable,
    ConfigurationError,
    QueueFull,
)

logger = logging.getLogger("django_rtq")

INTERVAL_SECONDS = 5.0
ROWS_AT_ONCE = 200  # a row may have a megabyte
MIN_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 10.0, 3600.0  # for a row that Redis refuses
FULL_BACKOFF_SECONDS = 60.0  # for a row whose queue is full, at most
MAX_ERROR_LENGTH = 500
RECENT_MS = 60_000  # a job that was made since then cannot be forgotten, whatever the clocks say


class OutboxRelay(Loop):
    """Moves rows that are due, a bounded number at once. Has a database connection during a tick only."""

    name = "outbox"

    def __init__(self, broker: Broker, alias: str) -> None:
        super().__init__()
        self._broker = broker
        self._alias = alias
        self._has_failed = False

    def tick(self) -> float:
        """Move the rows that are due."""
        try:
            moved = relay(self._broker, self._alias)
        except Error as error:
            if not self._has_failed:
                logger.warning(
                    "the outbox in database %r cannot be read, retrying: %s", self._alias, with_advice(error)
                )
            self._has_failed = True
            return INTERVAL_SECONDS
        self._has_failed = False
        return 0.0 if moved == ROWS_AT_ONCE else INTERVAL_SECONDS


def relay(broker: Broker, alias: str) -> int:
    """Move the rows that are due, ROWS_AT_ONCE at most. Returns how many it found.

    A row that Redis refuses waits, each time for longer, and does not block others. Raises BrokerUnavailable and
    BrokerFull, and what the database raises: then rows may be left that were sent.
    """
    due = rows_of(alias, broker.backend).filter(due_at__lte=database_now()).order_by("due_at")
    if not connections[alias].features.has_select_for_update_skip_locked:
        return _move(broker, alias, due)
    with transaction.atomic(using=alias):
        return _move(broker, alias, due.select_for_update(skip_locked=True))


def _move(broker: Broker, alias: str, due: models.QuerySet[Any]) -> int:
    rows = [OutboxRow(*values) for values in due.values_list(*OutboxRow._fields)[:ROWS_AT_ONCE]]
    answers = _send(broker, [row for row in rows if row.format != WORKFLOW_FORMAT])
    answers |= {row.job_id: _make_workflow(broker, row) for row in rows if row.format == WORKFLOW_FORMAT}
    refused = {job_id: answer for job_id, answer in answers.items() if isinstance(answer, Exception)}
    accepted = [row for row in rows if row.job_id not in refused]
    delete(alias, [row.job_id for row in accepted])
    for row in rows:
        if row.job_id in refused:
            _postpone(alias, row, refused[row.job_id])
    queued = (row for row in accepted if str(answers[row.job_id]).startswith(("ok", "after")))
    for (queue, task), group in groupby(queued, lambda row: (row.queue, row.task)):
        signals.send_enqueued(OutboxRelay, queue, task, [row.job_id for row in group])
    return len(rows)


def _send(broker: Broker, rows: Sequence[OutboxRow]) -> dict[str, str | Exception]:
    """Send the jobs of these rows together. Returns by their ids what Redis has answered, or why they are not sent.

    Those of a part that was refused are sent one by one, because one of them may be the cause.
    """
    answers: dict[str, str | Exception] = {}
    calls: dict[str, EnqueueCall] = {}
    for row in rows:
        try:
            place_of(row.backend)
            calls[row.job_id] = read_call(row.queue, row.job, row.format)
        except (ValueError, ConfigurationError) as problem:  # the latter: TASKS has no such backend
            answers[row.job_id] = problem
    # Jobs that have run, or were moved, are not sent. When a job is sent, its id is known for two minutes after its end
    # at the least, and after it has left its queue. Its outcome is known for longer.
    before_ms = time.time_ns() // 1_000_000 - RECENT_MS
    for job_id in known_jobs(broker, [job_id for job_id in calls if made_ms(job_id) < before_ms]):
        del calls[job_id]
        answers[job_id] = "exists"
    replies = broker.enqueue_calls(list(calls.values()))
    for (job_id, call), together in zip(calls.items(), replies, strict=True):
        (reply,) = broker.enqueue_calls([call]) if isinstance(together, BrokerError) else [together]
        if isinstance(reply, BrokerUnavailable | BrokerFull):
            raise reply  # Redis accepts nothing at the moment
        if isinstance(reply, BrokerError):
            answers[job_id] = reply
        else:
            answers[job_id] = queue_full(call.queue, call.jobs, reply) or reply[0]
    return answers


def _make_workflow(broker: Broker, row: OutboxRow) -> str | Exception:
    """Store the workflow of a row, which may be there. Returns why not. Raises BrokerUnavailable and BrokerFull."""
    try:
        place_of(row.backend)
        required("workflows").make_stored(broker, row.task, row.job)
    except (BrokerUnavailable, BrokerFull):
        raise
    except (ValueError, ConfigurationError, BrokerError, QueueFull) as problem:
        return problem
    return "workflow"


def _postpone(alias: str, row: OutboxRow, error: Exception) -> None:
    is_full = isinstance(error, QueueFull)
    most = FULL_BACKOFF_SECONDS if is_full else MAX_BACKOFF_SECONDS
    seconds = min(most, MIN_BACKOFF_SECONDS * 2.0 ** min(row.attempts, 20))
    extra = about_jobs([row.job_id], task=row.task, queue=row.queue)
    text = "job %s of %s stays in the outbox, retrying in %g s: %s"
    logger.log(logging.INFO if is_full else logging.ERROR, text, row.job_id, row.task, seconds, error, extra=extra)
    outbox_rows(alias).filter(pk=row.job_id).update(
        due_at=database_now() + timedelta(seconds=seconds),
        attempts=row.attempts + 1,
        error=str(error)[:MAX_ERROR_LENGTH],
    )

"""Tasks with exactly_once: what the function writes is committed together with a row of the job's id.

A second run of the job finds the row, and does not call the function.
internal_tasks.py deletes old rows.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any

from django.db import DEFAULT_DB_ALIAS, IntegrityError, connections, transaction
from django.utils import timezone

from django_rtq.conf.config import get_config
from django_rtq.exceptions import Bury, InvalidTask, PayloadError
from django_rtq.jobs import serializer
from django_rtq.jobs.context import running
from django_rtq.jobs.log_fields import about_current_job

logger = logging.getLogger("django_rtq")

TABLE = "django_rtq_committedjob"


def database_option(owner: str, value: object, func: Callable[..., Any]) -> str:
    """The database of a task with exactly_once; "" without it. Raises InvalidTask."""
    if value is False or value == "":
        return ""
    if value is not True and not isinstance(value, str):
        raise InvalidTask(f"{owner}: exactly_once is {value!r}, but has to be True, False or an alias of DATABASES.")
    if inspect.iscoroutinefunction(func):
        raise InvalidTask(
            f"{owner}: exactly_once runs the function in a transaction, and Django has none for coroutine functions. "
            "Write `def` instead of `async def`."
        )
    alias = DEFAULT_DB_ALIAS if value is True else value
    if alias not in connections:
        raise InvalidTask(f"{owner}: exactly_once is {alias!r}, but DATABASES has: {', '.join(sorted(connections))}.")
    if not connections.settings[alias].get("AUTOCOMMIT", True):
        raise InvalidTask(f"{owner}: exactly_once needs a database with AUTOCOMMIT, which is off for {alias!r}.")
    return alias


class ExactlyOnce:
    """What workers call for a task with exactly_once: the function in a transaction, unless it has committed before."""

    def __init__(self, func: Callable[..., Any], task: str, alias: str) -> None:
        self._func = func
        self._task = task
        self._alias = alias

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        run = running()
        job = run.context
        try:
            with transaction.atomic(using=self._alias):
                _insert(self._alias, job.job_id, job.queue_name)
                result = self._func(*args, **kwargs)
                self._check(result)
                if run.interruptible is not None:
                    run.interruptible.end()  # before the commit, or not at all
                return result
        except _HasCommittedError:
            text = "job %s has committed in an earlier run: its function was not called again"
            logger.info(text, job.job_id, extra=about_current_job())
            return None

    def _check(self, result: Any) -> None:
        """Raises Bury for a result that cannot be stored: after the commit the job could not fail any more."""
        if result is not None:
            try:
                text = serializer.dumps(result, what=f"the result of {self._task}")
                serializer.check_size(self._task, "the result has", text, get_config().max_payload_bytes, "")
            except PayloadError as error:
                raise Bury(str(error)) from error


class _HasCommittedError(Exception):
    """There is a row of the job."""


def _insert(alias: str, job_id: str, queue: str) -> None:
    """Insert the row of a job. Waits while another run of the job has inserted it and has not committed."""
    connection = connections[alias]
    quote = connection.ops.quote_name
    columns = ", ".join(map(quote, ("job_id", "queue", "committed_at")))
    now = connection.ops.adapt_datetimefield_value(timezone.now())
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {quote(TABLE)} ({columns}) VALUES (%s, %s, %s)", [job_id, queue, now])
    except IntegrityError as error:
        raise _HasCommittedError from error

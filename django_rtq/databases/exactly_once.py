"""Tasks with exactly_once: what the function writes is committed together with a row of the job's id.

Why a row, and not a key in Redis: D77. The row has the result, too. A second run of the job finds it, returns that
result, and does not call the function. An internal task, which schedules start, deletes old rows.

Steps of jobs have rows of their own: see commit_once().
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, Error, IntegrityError, connections, transaction

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.task_backends import places
from django_rtq.core.conf.config import DATABASE, Config, get_config
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.context import about_current_job, running
from django_rtq.core.tasks.decorator import internal_task
from django_rtq.databases.clocks import database_now
from django_rtq.databases.migrating import advised
from django_rtq.exceptions import Bury, InvalidTask, PayloadError

if TYPE_CHECKING:
    from django_rtq.core.broker.broker import Broker
    from django_rtq.core.broker.redis.commands import Command

logger = logging.getLogger("django_rtq")

TABLE = "django_rtq_committedjob"
STEP_MARK = ":"  # between the id of a job and what tells its steps apart, in the id of a row


def database_option(owner: str, value: object, func: Callable[..., Any]) -> str:
    """The database of a task with exactly_once; "" without it. Raises InvalidTask."""
    if value is None:  # which other options take for their default
        raise InvalidTask(f"{owner}: exactly_once is None, but has to be {DATABASE.says}.")
    named = DATABASE.checked(f"{owner}: exactly_once", value, InvalidTask)
    if not named:
        return ""
    if inspect.iscoroutinefunction(func):
        raise InvalidTask(
            f"{owner}: exactly_once runs the function in a transaction, and Django has none for coroutine functions. "
            "Write `def` instead of `async def`."
        )
    alias = DEFAULT_DB_ALIAS if named is True else str(named)
    if not connections.settings[alias].get("AUTOCOMMIT", True):
        raise InvalidTask(f"{owner}: exactly_once needs a database with AUTOCOMMIT, which is off for {alias!r}.")
    return alias


def run_once(func: Callable[..., Any], task: str, alias: str, /, *args: Any, **kwargs: Any) -> Any:
    """What workers call for a task with exactly_once: the function in a transaction, unless it has committed before."""
    run = running()
    job = run.context
    config = get_config()
    hooks = None if connections[alias].in_atomic_block else _Hooks()  # inside of a test there is no commit
    try:
        with transaction.atomic(using=alias):
            if hooks is not None:
                transaction.on_commit(hooks, using=alias)
            _insert(alias, job.job_id, job.queue_name)
            result = func(*args, **kwargs)
            text = kept = _as_json(task, result, config)
            is_small = run.result_ttl(config) and len(text.encode()) <= config.exactly_once_max_result_bytes
            if not is_small and not run.keeps_result:
                kept = _NOT_KEPT
            _finish(alias, task, job.job_id, kept)
            if hooks is not None:
                hooks.take(alias, partial(run.note_commit, text))
            if run.interruptible is not None:
                run.interruptible.end()  # before the commit, or not at all
            return result
    except _HasCommittedError:
        text = _select(alias, job.job_id, "result") or _NOT_KEPT  # the row may be deleted by now
        if run.keeps_result and not text:
            raise Bury("Its result, which another step of its workflow takes, was not kept in the database.") from None
        run.committed = text or "null"
        note = "" if text else f"; {_WHY_NOT_KEPT}"
        message = "job %s has committed in an earlier run: its function was not called again%s"
        logger.info(message, job.job_id, note, extra=about_current_job())
        return serializer.loads(text) if text else None


def _as_json(task: str, result: Any, config: Config) -> str:
    """Raises Bury for a result that cannot be stored: after the commit the job could not fail any more."""
    if result is None:
        return "null"
    try:
        text = serializer.dumps(result, what=f"the result of {task}")
        running().check_result(text, config)
    except PayloadError as error:
        raise Bury(str(error)) from error
    return text


class _Hooks:
    """The first hook of on_commit(): notes that the job has committed, then calls the other hooks.

    So an exception of a hook neither fails the job, nor keeps Django from calling the hooks behind it.
    """

    def __init__(self) -> None:
        self._note_commit: Callable[[], object] = bool
        self._others: list[Any] = []

    def take(self, alias: str, note_commit: Callable[[], object]) -> None:
        """Called at the end of the transaction. Django takes each hook from this very list, before it calls it."""
        self._others, self._note_commit = connections[alias].run_on_commit, note_commit

    def __call__(self) -> None:
        self._note_commit()
        while self._others:
            hook = self._others.pop(0)[1]
            try:
                hook()
            except MemoryError:
                raise
            except BaseException as error:
                job = about_current_job()
                text = "job %s has committed, so it has succeeded. Its hook %r of on_commit() raised: %r"
                logger.error(text, job.get("job_id"), hook, error, exc_info=error, extra=job)


def commit_once(alias: str, task: str, row_id: str, queue: str, call: Callable[[], str]) -> str:
    """Call a function in a transaction that stores what it returns in a row, unless one with this id has committed.

    Returns the text of the row.
    """
    try:
        with transaction.atomic(using=alias):
            _insert(alias, row_id, queue)
            text = call()
            _finish(alias, task, row_id, text)
            return text
    except _HasCommittedError:
        return str(_select(alias, row_id, "result"))


class _HasCommittedError(Exception):
    """There is a row of the job."""


_NOT_KEPT = ""  # in the column of results
_WHY_NOT_KEPT = (
    "its result is None, because the first one was not kept: result_ttl is 0, or it had more bytes than "
    'RTQ["EXACTLY_ONCE_MAX_RESULT_BYTES"]'
)


def has_committed(database: bool | str, job_id: str) -> bool:
    """Whether a run of the job has committed. `database`: exactly_once of its task. Raises what the database raises."""
    return bool(database) and _select(str(database), job_id, "job_id") is not None


def _insert(alias: str, job_id: str, queue: str) -> None:
    """Insert the row of a job. Waits while another run of the job has inserted it and has not committed."""
    connection = connections[alias]
    quote = connection.ops.quote_name
    columns = ", ".join(map(quote, ("job_id", "queue", "committed_at")))
    now = connection.ops.adapt_datetimefield_value(database_now())
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {quote(TABLE)} ({columns}) VALUES (%s, %s, %s)", [job_id, queue, now])
    except IntegrityError as error:
        raise _HasCommittedError from error
    except Error as error:
        raise advised(error, alias) from error


def _finish(alias: str, task: str, job_id: str, result: str) -> None:
    """Store the result in the row, as the last statement: if there is no row any more, nothing would be committed.

    Raises TransactionManagementError.
    """
    cause: Exception | None = None
    quote = connections[alias].ops.quote_name
    try:
        with connections[alias].cursor() as cursor:
            sql = f"UPDATE {quote(TABLE)} SET {quote('result')} = %s WHERE {quote('job_id')} = %s"
            cursor.execute(sql, [result, job_id])
            if cursor.rowcount:
                return
    except Error as error:  # also of Django, which has seen an error of the database in this transaction
        if (known := advised(error, alias)) is not error:
            raise known from error
        cause = error
    raise transaction.TransactionManagementError(
        f"{task}: what it has written cannot be committed, so it was rolled back. In its transaction a "
        "statement has failed and the exception was caught, or the connection was closed, or the transaction was "
        "ended. Put statements that may fail into a block of their own, `with "
        f'transaction.atomic(using="{alias}")`, and catch the exception outside of that block.'
    ) from cause


def _rows(alias: str) -> Any:
    return apps.get_model("django_rtq", "CommittedJob")._base_manager.using(alias)


def _select(alias: str, job_id: str, column: str) -> Any:
    return _rows(alias).filter(pk=job_id).values_list(column, flat=True).first()


# -- deletes the rows of jobs that have committed

ROWS_AT_ONCE = 500


@internal_task
def delete_committed_jobs(database: str) -> int:
    """Delete the rows of jobs that committed RTQ["EXACTLY_ONCE_DAYS"] ago and are not in Redis. Returns how many.

    A job that is still in Redis can run again, as a dead letter that is requeued or in a paused queue: its row is
    checked again after the same time. It may be interrupted anywhere and run again.
    """
    rows = _rows(database)
    before = database_now() - timedelta(days=get_config().exactly_once_days)
    old = rows.filter(committed_at__lt=before).order_by("committed_at")
    deleted, jobs = 0, list(old.values_list("job_id", flat=True)[:ROWS_AT_ONCE])
    while jobs:
        ids = {row_id: row_id.partition(STEP_MARK)[0] for row_id in jobs}
        wanted = list(dict.fromkeys(ids.values()))
        stored = set[str]().union(*(known_jobs(get_broker(place), wanted, with_ended=False) for place in places()))
        gone = [row_id for row_id in jobs if ids[row_id] not in stored]
        rows.filter(pk__in=gone).delete()
        rows.filter(pk__in=[row_id for row_id in jobs if ids[row_id] in stored]).update(committed_at=database_now())
        deleted += len(gone)
        jobs = list(old.values_list("job_id", flat=True)[:ROWS_AT_ONCE])
    return deleted


def known_jobs(broker: Broker, job_ids: Sequence[str], *, with_ended: bool = True) -> set[str]:
    """Those of these jobs that are live or dead letters, or have an outcome that is kept (`with_ended`).

    It asks all queues: a job may have been requeued in another one.
    """
    known: set[str] = set()
    for keys in map(broker.keys.of, broker.queue_names()):
        for key in (keys.jobs, keys.results) if with_ended else (keys.jobs,):
            missing = [job_id for job_id in job_ids if job_id not in known]
            commands: list[Command] = [("HEXISTS", key, job_id) for job_id in missing]
            replies = broker.redis.execute(commands, resend=True) if commands else []
            known.update(job_id for job_id, reply in zip(missing, replies, strict=True) if reply)
    return known

"""Sends the jobs of a transaction when it commits.

1. delay() is called while the transaction of the database is open: defer() registers the call with Django's on_commit()
2. a rollback, also to a savepoint, forgets the calls that were made since: Django sees to that
3. the transaction commits, and Django runs what was registered, in that order
4. the first call that is run sends the jobs of all that Django is about to run, in one round trip to each Redis
5. each call learns the answers, which may name duplicates of unique jobs

One function for all jobs would be dropped by a rollback to a savepoint with all of them, or with none. Django does not
say which function is the last: the first one reads its list, and only if its own entry is gone from there.

Warns while DEBUG is on about jobs that are sent although a transaction is open.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from django.db import connections, transaction

from django_rtq.core.broker.brokers import get_broker, on_brokers_forgotten
from django_rtq.core.broker.messages import EnqueueCall, is_refusal, queue_full
from django_rtq.core.broker.task_backends import place_of, place_of_job, shard_of, view_backend
from django_rtq.core.jobs.log_fields import about_jobs
from django_rtq.core.transactions.rules import outbox_database, written_database
from django_rtq.databases.outbox import delete_or_log, outbox_lag, store
from django_rtq.exceptions import BrokerError, BrokerFull, BrokerUnavailable, QueueFull

if TYPE_CHECKING:
    from django_rtq.core.broker.broker import Broker

logger = logging.getLogger("django_rtq")
_warned: set[str] = set()  # names of tasks for which a warning was logged


class Outages:
    """Redis servers that did not accept jobs when this process last sent some: of each it is logged once.

    Any thread may use it. A call with jobs for several shards does not say which of them failed: it is about all.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.places: set[str] = set()

    def begins_with(self, call: EnqueueCall, error: Exception) -> bool:
        """Whether this error is to be logged as a warning: it is of no outage, or of one that was not noticed yet."""
        if not isinstance(error, BrokerUnavailable | BrokerFull):
            return True
        with self._lock:
            places = _places_of(call)
            is_new = self.places.isdisjoint(places)
            self.places |= places
        return is_new

    def end(self, call: EnqueueCall) -> None:
        """Redis has answered this call. Logs what waits."""
        with self._lock:
            ended = sorted(self.places & _places_of(call))
            self.places -= set(ended)
        for place in ended:
            with view_backend(place):
                alias = outbox_database()
                lag = None if alias is None or has_transaction(alias) else outbox_lag()
                waits = f", and {lag.jobs} job(s) wait in the outbox for a relay" if lag and not lag.error else ""
                where = "Redis" if shard_of(place) is None else f"Shard {shard_of(place)}"
                logger.info("%s accepts jobs again%s", where, waits)


def _places_of(call: EnqueueCall) -> set[str]:
    return {place_of(place_of_job(call.backend, job.id)) for job in call.jobs}


outages = Outages()
on_brokers_forgotten.append(outages.places.clear)


class Finish(Protocol):
    """Gets the answers of the broker, None if Redis gave none, and whether the jobs are in the outbox."""

    def __call__(self, answers: Sequence[str] | None, *, is_stored: bool) -> None: ...


def has_transaction(alias: str) -> bool:
    """Whether on_commit() of this database would wait. Opens no connection."""
    connection = connections[alias]
    # Without autocommit Django does not know when a commit comes: then its on_commit() raises an error, which says so.
    return connection.in_atomic_block or (connection.connection is not None and not connection.autocommit)


def has_block(alias: str) -> bool:
    """Whether a block of atomic() is open, other than those that TestCase opens around a test."""
    return any(not getattr(block, "_from_testcase", False) for block in connections[alias].atomic_blocks)


def open_database(is_open: Callable[[str], bool] = has_transaction) -> str | None:
    """The database with a transaction in this thread: the written one, else another. None: there is none."""
    others = (connection.alias for connection in connections.all(initialized_only=True))
    return next(filter(is_open, (written_database(), *others)), None)


def defer(alias: str, task: str, call: EnqueueCall, finish: Finish) -> None:
    """Send the jobs when the open transaction commits, then call `finish` with the broker's answers.

    If that database has the outbox, they are rows of the transaction until then, and `finish` gets None if Redis did
    not accept them. Raises TransactionManagementError in a connection without autocommit and outside of atomic().
    """
    is_stored = alias == outbox_database()
    if is_stored:
        call = call._replace(jobs=store(alias, task, call))
    connection = connections[alias]
    earlier = next(filter(None, map(_deferred, reversed(connection.run_on_commit))), None)
    hooks = earlier.hooks if earlier else _Hooks()
    transaction.on_commit(_Deferred(alias, call, finish, hooks, is_stored), using=alias)
    hooks.latest = connection.run_on_commit


def store_instead(task: str, call: EnqueueCall, error: BrokerError) -> bool:
    """Insert rows for jobs that Redis did not accept. False: there is no outbox, or a transaction may roll back."""
    alias = outbox_database()
    if alias is None or has_transaction(alias):
        return False
    store(alias, task, call)
    extra = about_jobs([job.id for job in call.jobs], task=task, queue=call.queue)
    level = logging.WARNING if outages.begins_with(call, error) else logging.DEBUG
    text = "Redis did not accept %d job(s) of %s; they wait in the outbox, as the next ones do: %s"
    logger.log(level, text, len(call.jobs), task, error, extra=extra)
    return True


@dataclass(slots=True, eq=False)
class _Hooks:
    """The list of Django in which the calls of a transaction were last registered.

    A commit takes each entry from this very list before it runs it. A rollback to a savepoint makes another list.
    """

    latest: list[Any] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class _Deferred:
    """A call of delay() or its kin, as Django's on_commit() has it."""

    alias: str
    call: EnqueueCall
    finish: Finish
    hooks: _Hooks
    is_stored: bool  # its jobs are in the outbox
    is_done: bool = False

    def __call__(self) -> None:
        """Django calls this after the commit. Raises BrokerError, QueueFull, unless its jobs are in the outbox."""
        if not self.is_done:
            _send([self, *self._following()])

    def _following(self) -> list[_Deferred]:
        """The calls that Django runs after this one in the same commit, as far as that is certain."""
        if connections[self.alias].in_atomic_block:  # no commit: a test runs what was registered
            return []
        if any(_deferred(entry) is self for entry in self.hooks.latest):
            return []  # not the list that Django works through: a savepoint was rolled back later
        later = map(_deferred, self.hooks.latest)
        return [deferred for deferred in later if deferred is not None and not deferred.is_done]

    def __repr__(self) -> str:
        return f"<{len(self.call.jobs)} job(s) for queue {self.call.queue}>"


def _deferred(entry: Any) -> _Deferred | None:
    """What is ours of an entry in Django's list: (savepoint ids, function, robust)."""
    return entry[1] if isinstance(entry[1], _Deferred) else None


def _send(calls: Sequence[_Deferred]) -> None:
    """Send all. Raises the first error of jobs that are not in the outbox, after the others have been finished."""
    refused: list[tuple[_Deferred, BrokerError | QueueFull]] = []
    in_redis: list[str] = []
    for deferred, answers in zip(calls, _answers(calls), strict=True):
        if isinstance(answers, BrokerError):
            refused.append((deferred, answers))
            continue
        deferred.is_done = True
        deferred.finish(answers, is_stored=deferred.is_stored)
        jobs = deferred.call.jobs
        if full := queue_full(deferred.call.queue, jobs, answers):
            refused.append((deferred, full))
        if deferred.is_stored:
            in_redis += [job.id for job, answer in zip(jobs, answers, strict=True) if not is_refusal(answer)]
    if in_redis:
        delete_or_log(calls[0].alias, in_redis)
    if outages.places:
        for deferred in calls:
            if deferred.is_done:
                outages.end(deferred.call)
    if refused:
        _leave_in_outbox(refused)


def _leave_in_outbox(refused: Sequence[tuple[_Deferred, BrokerError | QueueFull]]) -> None:
    """Finish the calls that Redis has refused. Raises the first error of jobs that are not in the outbox."""
    for deferred, error in refused:
        if not deferred.is_stored:
            raise error
        if not deferred.is_done:
            deferred.is_done = True
            deferred.finish(None, is_stored=True)
    extra = about_jobs([job.id for deferred, _ in refused for job in deferred.call.jobs])
    told = [error for deferred, error in refused if outages.begins_with(deferred.call, error)]
    text = "Redis did not accept the jobs of a transaction; they wait in the outbox, as the next ones do: %s"
    logger.log(logging.WARNING if told else logging.DEBUG, text, (told or [refused[0][1]])[0], extra=extra)


def _answers(calls: Sequence[_Deferred]) -> list[list[str] | BrokerError]:
    """The answers to each call, or why its jobs are not in Redis, or may not be."""
    answers: dict[int, list[str] | BrokerError] = {}
    by_broker: dict[Broker, list[int]] = {}
    for number, deferred in enumerate(calls):
        by_broker.setdefault(get_broker(deferred.call.backend), []).append(number)
    for broker, numbers in by_broker.items():
        try:
            answers.update(zip(numbers, broker.enqueue_calls([calls[number].call for number in numbers]), strict=True))
        except BrokerError as error:
            answers.update(dict.fromkeys(numbers, error))
    return [answers[number] for number in range(len(calls))]


def warn_if_in_transaction(task: str) -> None:
    """Log a warning, once for each task, if the transaction of any database is open in this thread."""
    if task in _warned:
        return
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block:
            _warned.add(task)
            # Not with the module `warnings`: once for each task, whatever the filters, and never an exception.
            logger.warning(
                "A job of %s was sent while a transaction of the database %r is open: a worker may run it before the "
                "commit, and it runs after a rollback, too. Use delay_on_commit(), or set "
                'RTQ["ENQUEUE_ON_COMMIT"] = True. If it is meant, say so: @task(on_commit=False) or '
                "using(on_commit=False). This warning comes once for each task, and only while DEBUG is on.",
                task,
                connection.alias,
            )
            return

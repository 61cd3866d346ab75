"""Sends the jobs of a transaction when it commits.

1. delay() is called while the transaction of the database is open: defer() registers the call with Django's on_commit()
2. a rollback, also to a savepoint, forgets the calls that were made since: Django sees to that
3. the transaction commits, and Django runs what was registered, in that order
4. the first call that is run sends the jobs of all that Django is about to run, in one round trip
5. each call learns the answers, which may name duplicates of unique jobs
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, transaction

from django_rtq.broker.broker import get_broker
from django_rtq.broker.enqueue_calls import EnqueueCall
from django_rtq.conf import get_config
from django_rtq.exceptions import BrokerError

OnCommit = bool | str | None  # False: at once; True or an alias: after the commit of that database; None: the setting


def database_to_await(option: OnCommit) -> str | None:
    """The database after whose commit jobs are sent; None: they are sent at once."""
    rule = get_config().enqueue_on_commit if option is None else option
    return DEFAULT_DB_ALIAS if rule is True else rule or None


def explicit_database(option: OnCommit) -> str:
    """The database of delay_on_commit(): the one that the option or the setting names, or the default one."""
    named = option if isinstance(option, str) else get_config().enqueue_on_commit
    return named if isinstance(named, str) else DEFAULT_DB_ALIAS


def has_transaction(alias: str) -> bool:
    """Whether on_commit() of this database would wait. Opens no connection."""
    connection = connections[alias]
    # Without autocommit Django does not know when a commit comes: then its on_commit() raises an error, which says so.
    return connection.in_atomic_block or (connection.connection is not None and not connection.autocommit)


def defer(alias: str, call: EnqueueCall, finish: Callable[[Sequence[str]], None]) -> None:
    """Send the jobs when the open transaction commits, then call `finish` with the broker's answers.

    Raises TransactionManagementError in a connection without autocommit and outside of atomic().
    """
    connection = connections[alias]
    earlier = next(filter(None, map(_deferred, reversed(connection.run_on_commit))), None)
    hooks = earlier.hooks if earlier else _Hooks()
    transaction.on_commit(_Deferred(alias, call, finish, hooks), using=alias)
    hooks.latest = connection.run_on_commit


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
    finish: Callable[[Sequence[str]], None]
    hooks: _Hooks
    is_sent: bool = False

    def __call__(self) -> None:
        """Django calls this after the commit. Raises BrokerError."""
        if not self.is_sent:
            _send([self, *self._following()])

    def _following(self) -> list[_Deferred]:
        """The calls that Django runs after this one in the same commit, as far as that is certain."""
        if connections[self.alias].in_atomic_block:  # no commit: a test runs what was registered
            return []
        if any(_deferred(entry) is self for entry in self.hooks.latest):
            return []  # not the list that Django works through: a savepoint was rolled back later
        return [each for each in map(_deferred, self.hooks.latest) if each is not None and not each.is_sent]

    def __repr__(self) -> str:
        return f"<{len(self.call.jobs)} job(s) for queue {self.call.queue}>"


def _deferred(entry: Any) -> _Deferred | None:
    """What is ours of an entry in Django's list: (savepoint ids, function, robust)."""
    return entry[1] if isinstance(entry[1], _Deferred) else None


def _send(calls: Sequence[_Deferred]) -> None:
    """Send all. Raises the first error, after the calls that were accepted have been finished."""
    errors = []
    for each, answers in zip(calls, get_broker().enqueue_calls([each.call for each in calls]), strict=True):
        if isinstance(answers, BrokerError):
            errors.append(answers)
            continue
        each.is_sent = True
        each.finish(answers)
    if errors:
        raise errors[0]

"""Jobs and database transactions: which commit jobs wait for, and how they are sent after it.

The settings and the option `on_commit` of a task say which commit it is.

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, connections, router, transaction

from django_rtq.core.broker.brokers import get_broker, on_brokers_forgotten
from django_rtq.core.broker.messages import EnqueueCall, queue_full
from django_rtq.core.conf.config import get_config, is_debug
from django_rtq.core.extension import required
from django_rtq.exceptions import BrokerError, QueueFull

if TYPE_CHECKING:
    from django_rtq.core.broker.broker import Broker

logger = logging.getLogger("django_rtq")
_warned: set[str] = set()  # names of tasks for which a warning was logged
#: The Redis servers, by place, that did not accept jobs when this process last sent some; only the outbox notes them.
away: set[str] = set()
on_brokers_forgotten.append(away.clear)
#: False: at once; True: after the commit of written_database(); an alias: of that one; None: what the setting says.
OnCommit = bool | str | None


@lru_cache(maxsize=1)
def ignores_transactions() -> bool:
    """Whether nothing in the settings asks what transactions are open when jobs are enqueued."""
    config = get_config()
    rule = config.enqueue_on_commit
    return not rule and not config.outbox and (rule is False or not is_debug())


on_brokers_forgotten.append(ignores_transactions.cache_clear)


def integrations_wait() -> bool:
    """Whether jobs of integrations (TASKS, EMAIL_BACKEND) wait for the commit while no setting says it (D122)."""
    config = get_config()
    return config.enqueue_on_commit is None and not config.outbox


def written_database() -> str:
    """The database that True names: "default", or the one in which the routers of the project write our tables."""
    if not router.routers or not apps.models_ready or not apps.is_installed("django_rtq"):
        return DEFAULT_DB_ALIAS
    alias: str = router.db_for_write(apps.get_model("django_rtq", "OutboxJob"))
    return alias


def outbox_database() -> str | None:
    """The database with the outbox; None: there is none."""
    outbox = get_config().outbox
    return written_database() if outbox is True else outbox or None


def database_to_await(option: OnCommit) -> str | None:
    """The database after whose commit jobs are sent; None: they are sent at once."""
    rule = _rule_of_settings() if option is None else option
    return written_database() if rule is True else rule or None


def named_database(option: OnCommit = None) -> str | None:
    """The database that the option or the setting names by its alias."""
    named = option if isinstance(option, str) else _rule_of_settings()
    return named if isinstance(named, str) else None


def _rule_of_settings() -> OnCommit:
    config = get_config()
    return config.outbox or config.enqueue_on_commit


def awaited_transaction(name: str, option: OnCommit) -> str | None:
    """The database with a transaction whose commit a task or a workflow of this name waits for."""
    if option is None and ignores_transactions():
        return None
    alias = database_to_await(option)
    if alias is None and option is None:
        warn_if_in_transaction(name)  # the setting is not set, and DEBUG is on
    return alias if alias and has_transaction(alias) else None


# -- sending


Answers = Sequence[str] | BrokerError  # to a call, or why its jobs are not in Redis, or may not be
#: Gets the answers of the broker, None if Redis gave none, and `is_stored`: whether the jobs are in the outbox.
Finish = Callable[..., None]


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


def outbox() -> Any:
    """databases/outbox.py, if the settings ask for it; None."""
    return required("outbox") if outbox_database() is not None else None


def defer(alias: str, task: str, call: EnqueueCall, finish: Finish) -> None:
    """Send the jobs when the open transaction commits, then call `finish` with the broker's answers.

    If that database has the outbox, they are rows of the transaction until then, and `finish` gets None if Redis did
    not accept them. Raises TransactionManagementError in a connection without autocommit and outside of atomic().
    """
    box = required("outbox") if alias == outbox_database() else None
    if box:
        call = call._replace(jobs=box.store(alias, task, call))
    connection = connections[alias]
    earlier = next(filter(None, map(_deferred, reversed(connection.run_on_commit))), None)
    hooks = earlier.hooks if earlier else []
    transaction.on_commit(_Deferred(alias, call, finish, hooks, box), using=alias)
    hooks[:] = [connection.run_on_commit]


@dataclass(slots=True, eq=False, repr=False)
class _Deferred:
    """A call of delay() or its kin, as Django's on_commit() has it."""

    alias: str
    call: EnqueueCall
    finish: Finish
    #: The list of Django in which the calls of this transaction were last registered. A commit takes each entry from
    #: this very list before it runs it. A rollback to a savepoint makes another list.
    hooks: list[list[Any]]
    outbox: Any  # where its jobs have rows
    is_done: bool = False

    def __call__(self) -> None:
        """Django calls this after the commit. Raises BrokerError, QueueFull, unless its jobs are in the outbox."""
        if not self.is_done:
            _send([self, *self._following()])

    def _following(self) -> list[_Deferred]:
        """The calls that Django runs after this one in the same commit, as far as that is certain."""
        if connections[self.alias].in_atomic_block:  # no commit: a test runs what was registered
            return []
        if any(_deferred(entry) is self for entry in self.hooks[0]):
            return []  # not the list that Django works through: a savepoint was rolled back later
        later = map(_deferred, self.hooks[0])
        return [deferred for deferred in later if deferred is not None and not deferred.is_done]

    def __repr__(self) -> str:
        return f"<{len(self.call.jobs)} job(s) for queue {self.call.queue}>"


def _deferred(entry: Any) -> _Deferred | None:
    """What is ours of an entry in Django's list: (savepoint ids, function, robust)."""
    return entry[1] if isinstance(entry[1], _Deferred) else None


def _send(calls: Sequence[_Deferred]) -> None:
    """Send all. Raises the first error of jobs that are not in the outbox, after the others have been finished."""
    box, error = calls[0].outbox, None
    answered = list(zip(calls, _answers(calls), strict=True))
    for deferred, answers in answered:
        replied = None if isinstance(answers, BrokerError) else answers
        if box or replied is not None:
            deferred.is_done = True
            deferred.finish(replied, is_stored=box is not None)
        error = error or refusal(deferred.call, answers)
    if asked := box or (outbox() if away else None):
        asked.note_answers([(deferred.call, answers) for deferred, answers in answered], calls[0].alias if box else "")
    if error and not box:
        raise error


def refusal(call: EnqueueCall, answers: Answers) -> BrokerError | QueueFull | None:
    """Why not all jobs of a call are in Redis, or may not be; None: they are."""
    return answers if isinstance(answers, BrokerError) else queue_full(call.queue, call.jobs, answers)


def _answers(calls: Sequence[_Deferred]) -> list[Answers]:
    answers: dict[int, Answers] = {}
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

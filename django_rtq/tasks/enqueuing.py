"""Sends the jobs of a task to Redis."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from django.db import DEFAULT_DB_ALIAS

from django_rtq import signals
from django_rtq.broker.broker import broker_of
from django_rtq.broker.enqueue_calls import EnqueueCall
from django_rtq.broker.messages import NewJob, UniqueJob, is_refusal, queue_full
from django_rtq.exceptions import BrokerFull, BrokerUnavailable, DuplicateJob
from django_rtq.handle import JobHandle
from django_rtq.tasks.limits_of import ameet_clients, limit_functions, meet_clients
from django_rtq.tasks.new_jobs import new_job, new_unique_job
from django_rtq.tasks.room import await_room, wait_for_room
from django_rtq.transactions.on_commit import defer, has_block, has_transaction, store_instead, warn_if_in_transaction
from django_rtq.transactions.rules import database_to_await, ignores_transactions, integrations_wait

if TYPE_CHECKING:
    from django_rtq.tasks.task import Task

Calls: TypeAlias = Iterable[tuple[Sequence[Any], dict[str, Any]]]
STORED = frozenset(("ok", "exists"))  # what most answers are
Job = TypeVar("Job", NewJob, UniqueJob, NewJob | UniqueJob)


def send(task: Task[Any, Any], calls: Calls, all_or_none: bool = False) -> list[JobHandle[Any]]:
    """Make the jobs of some calls and enqueue them. Raises what delay() raises."""
    if task.uniqueness is not None:
        return enqueue_unique(task, [new_unique_job(task, *call) for call in calls], all_or_none)
    return enqueue(task, [new_job(task, *call) for call in calls], all_or_none)


async def asend(task: Task[Any, Any], calls: Calls, all_or_none: bool = False) -> list[JobHandle[Any]]:
    """send() for coroutines, without waiting for a commit."""
    if task.uniqueness is not None:
        return await _aenqueue_unique(task, [new_unique_job(task, *call) for call in calls], all_or_none)
    return await _aenqueue(task, [new_job(task, *call) for call in calls], all_or_none)


def enqueue(task: Task[Any, Any], jobs: list[NewJob], all_or_none: bool = False) -> list[JobHandle[Any]]:
    """Enqueue jobs of new_job(). Raises what delay() raises."""
    if task.queue in limit_functions():
        meet_clients(broker_of(task.backend), task.queue, jobs)
    if jobs and (alias := _open_transaction(task)):
        return _enqueue_on_commit(alias, task, jobs, all_or_none)
    queue, broker = task.queue, broker_of(task.backend)
    try:
        answers = broker.enqueue(queue, jobs, all_or_none=all_or_none) if jobs else []
        if not STORED.issuperset(answers):
            answers = wait_for_room(queue, jobs, answers, partial(broker.enqueue, queue, all_or_none=all_or_none))
    except (BrokerUnavailable, BrokerFull) as error:
        if not store_instead(task.name, EnqueueCall(queue, jobs, backend=task.backend), error):
            raise
        return [JobHandle(job.id, queue, backend=task.backend) for job in jobs]
    stored = jobs if STORED.issuperset(answers) else _added(jobs, answers)
    _announce(task, queue, stored)
    return _handles(task, jobs, answers)


def enqueue_unique(task: Task[Any, Any], jobs: list[UniqueJob], all_or_none: bool = False) -> list[JobHandle[Any]]:
    """Enqueue jobs of new_unique_job(). Raises what delay() raises."""
    if task.queue in limit_functions():
        meet_clients(broker_of(task.backend), task.queue, jobs)
    if jobs and (alias := _open_transaction(task)):
        return _enqueue_on_commit(alias, task, jobs, all_or_none)
    send = partial(broker_of(task.backend).enqueue_unique, task.queue, all_or_none=all_or_none)
    try:
        answers = send(jobs) if jobs else []
        if any(map(is_refusal, answers)):
            answers = wait_for_room(task.queue, jobs, answers, send)
    except (BrokerUnavailable, BrokerFull) as error:
        if not store_instead(task.name, EnqueueCall(task.queue, jobs, backend=task.backend), error):
            raise
        return [JobHandle(job.id, task.queue, backend=task.backend) for job in jobs]
    _announce(task, task.queue, _added(jobs, answers))
    return _unique_handles(task, jobs, answers)


async def _aenqueue(task: Task[Any, Any], jobs: list[NewJob], all_or_none: bool) -> list[JobHandle[Any]]:
    if task.queue in limit_functions():
        await ameet_clients(broker_of(task.backend), task.queue, jobs)
    send = partial(broker_of(task.backend).aenqueue, task.queue, all_or_none=all_or_none)
    answers = await send(jobs) if jobs else []
    if not STORED.issuperset(answers):
        answers = await await_room(task.queue, jobs, answers, send)
    stored = jobs if STORED.issuperset(answers) else _added(jobs, answers)
    await _aannounce(task, task.queue, stored)
    return _handles(task, jobs, answers)


async def _aenqueue_unique(task: Task[Any, Any], jobs: list[UniqueJob], all_or_none: bool) -> list[JobHandle[Any]]:
    if task.queue in limit_functions():
        await ameet_clients(broker_of(task.backend), task.queue, jobs)
    send = partial(broker_of(task.backend).aenqueue_unique, task.queue, all_or_none=all_or_none)
    answers = await send(jobs) if jobs else []
    if any(map(is_refusal, answers)):
        answers = await await_room(task.queue, jobs, answers, send)
    await _aannounce(task, task.queue, _added(jobs, answers))
    return _unique_handles(task, jobs, answers)


def _handles(task: Task[Any, Any], jobs: Sequence[NewJob], answers: Sequence[str]) -> list[JobHandle[Any]]:
    queue, backend = task.queue, task.backend
    handles: list[JobHandle[Any]] = [JobHandle(job.id, queue, backend=backend) for job in jobs]
    if not STORED.issuperset(answers) and (full := queue_full(queue, jobs, answers, handles)):
        raise full
    return handles


def _unique_handles(task: Task[Any, Any], jobs: Sequence[UniqueJob], answers: Sequence[str]) -> list[JobHandle[Any]]:
    queue, backend = task.queue, task.backend
    firsts = ["" if is_refusal(answer) else answer.partition(" ")[2] for answer in answers]
    handles: list[JobHandle[Any]] = [
        JobHandle(first or job.id, queue, duplicate=bool(first), backend=backend)
        for job, first in zip(jobs, firsts, strict=True)
    ]
    if full := queue_full(queue, jobs, answers, handles):
        raise full
    if task.unique_on_conflict == "raise" and any(firsts):
        raise DuplicateJob(next(filter(None, firsts)), task.name)
    return handles


def waits_by_default(task: Task[Any, Any]) -> bool:
    """Whether its jobs come through TASKS and wait for the commit, although neither an option nor a setting says so.

    Packages enqueue them in transactions: they are made for backends whose jobs are rows of the database.
    """
    return task.backend != "" and task.on_commit is None and integrations_wait()


def _open_transaction(task: Task[Any, Any]) -> str | None:
    """The database whose commit the jobs have to wait for."""
    if waits_by_default(task) and has_block(DEFAULT_DB_ALIAS):
        return DEFAULT_DB_ALIAS
    if task.on_commit is None and ignores_transactions():
        return None
    alias = database_to_await(task.on_commit)
    if alias is None and task.on_commit is None:
        warn_if_in_transaction(task.name)  # the setting is not set, and DEBUG is on
    return alias if alias and has_transaction(alias) else None


def _enqueue_on_commit(
    alias: str, task: Task[Any, Any], jobs: Sequence[NewJob | UniqueJob], all_or_none: bool
) -> list[JobHandle[Any]]:
    """Enqueue the jobs when the transaction commits. The handles of duplicates are corrected then."""
    queue, backend = task.queue, task.backend
    handles: list[JobHandle[Any]] = [JobHandle(job.id, queue, backend=backend) for job in jobs]

    def finish(answers: Sequence[str] | None, *, is_stored: bool) -> None:
        if answers is not None:  # else the jobs are in the outbox still, whose relay announces them
            for handle, answer in zip(handles, answers, strict=True):
                if not is_refusal(answer):
                    if first := answer.partition(" ")[2]:
                        handle.id, handle.duplicate = first, True
                elif not is_stored:
                    handle.tell_refused()
            _announce(task, queue, _added(jobs, answers))
        for handle in handles:
            handle.tell_sent()

    for handle in handles:
        handle.wait_for_commit()
    defer(alias, task.name, EnqueueCall(queue, jobs, all_or_none, backend), finish)
    return handles


def _added(jobs: Sequence[Job], answers: Sequence[str]) -> list[Job]:
    """The jobs that are neither duplicates nor refused."""
    pairs = zip(jobs, answers, strict=True)
    return [job for job, answer in pairs if not (is_refusal(answer) or answer.startswith("duplicate"))]


def _announce(task: Task[Any, Any], queue: str, jobs: Sequence[NewJob | UniqueJob]) -> None:
    if jobs and signals.job_enqueued.receivers:
        signals.job_enqueued.send_robust(type(task), job_ids=[job.id for job in jobs], queue=queue, task=task.name)


async def _aannounce(task: Task[Any, Any], queue: str, jobs: Sequence[NewJob | UniqueJob]) -> None:
    if jobs and signals.job_enqueued.receivers:
        ids = [job.id for job in jobs]
        await signals.job_enqueued.asend_robust(type(task), job_ids=ids, queue=queue, task=task.name)


def checked_calls(task: str, calls: Iterable[Any]) -> Iterator[tuple[Sequence[Any], dict[Any, Any]]]:
    """The calls of delay_many(), one by one. Raises TypeError."""
    for number, call in enumerate(calls):
        match call:
            case [[*args], {**kwargs}]:
                yield args, kwargs
            case _:
                raise TypeError(
                    f"{task}.delay_many() takes pairs of arguments and keyword arguments, like ((7, 42), {{}}), "
                    f"but number {number} is {reprlib.repr(call)}."
                )

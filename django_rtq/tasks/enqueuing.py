"""Sends the jobs of a task to Redis."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from django_rtq import signals
from django_rtq.broker.broker import get_broker
from django_rtq.broker.messages import NewJob, UniqueJob
from django_rtq.exceptions import DuplicateJob
from django_rtq.handle import JobHandle

if TYPE_CHECKING:
    from django_rtq.tasks.task import Task


def enqueue(task: Task[Any, Any], jobs: Sequence[NewJob]) -> list[JobHandle[Any]]:
    """Enqueue jobs of new_job(). Raises what delay() raises."""
    queue = task.queue
    if jobs:
        get_broker().enqueue(queue, jobs)
        _announce(task, queue, jobs)
    return [JobHandle(job.id, queue) for job in jobs]


def enqueue_unique(task: Task[Any, Any], jobs: Sequence[UniqueJob]) -> list[JobHandle[Any]]:
    """Enqueue jobs of new_unique_job(). Raises what delay() raises."""
    queue = task.queue
    answers = get_broker().enqueue_unique(queue, jobs) if jobs else []
    _announce(task, queue, [job for job, said in zip(jobs, answers, strict=True) if not said.startswith("duplicate")])
    firsts = [answer.partition(" ")[2] for answer in answers]
    if task.unique_on_conflict == "raise" and any(firsts):
        raise DuplicateJob(next(filter(None, firsts)), task.name)
    return [JobHandle(first or job.id, queue, duplicate=bool(first)) for job, first in zip(jobs, firsts, strict=True)]


def _announce(task: Task[Any, Any], queue: str, jobs: Sequence[NewJob | UniqueJob]) -> None:
    if jobs and signals.job_enqueued.receivers:
        signals.job_enqueued.send_robust(type(task), job_ids=[job.id for job in jobs], queue=queue, task=task.name)


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

"""Makes the jobs of a task: checks a call, and writes the record that is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django_rtq.broker.messages import NewJob, UniqueJob
from django_rtq.conf.config import get_config
from django_rtq.exceptions import InvalidTask, PayloadError
from django_rtq.jobs import serializer
from django_rtq.jobs.job import new_job_id
from django_rtq.jobs.record import check_body, write_body
from django_rtq.tasks.options.values import client_name
from django_rtq.tasks.unknown_tasks import warn_if_unknown_to_workers

if TYPE_CHECKING:
    from django_rtq.tasks.task import Task

WORKER_OPTIONS = ("max_attempts", "time_limit", "result_ttl")  # stored in the record, because workers need them


def new_job(task: Task[Any, Any], args: Sequence[Any], kwargs: dict[str, Any]) -> NewJob:
    """A job for Broker.enqueue, with checked arguments. Raises what delay() raises for invalid ones."""
    config, name, signature = get_config(), task.name, task.call_signature
    signature.check(args, kwargs)
    call = serializer.dumps_call(args, kwargs, names=signature.names, task=name)
    body = write_body(name, call, task.options_in_record)
    check_body(name, body, config.max_payload_bytes)
    return NewJob(
        new_job_id(),
        task.priority,
        config.max_crashes if task.max_crashes is None else task.max_crashes,
        task.client if isinstance(task.client, str) else _client_of(task, args, kwargs),
        task.due,
        task.expires_in,
        "1" if task.at_front else "",
        body,
    )


def new_unique_job(task: Task[Any, Any], args: Sequence[Any], kwargs: dict[str, Any]) -> UniqueJob:
    """new_job() of a unique task, with its digest and what to do on a conflict."""
    job, unique = new_job(task, args, kwargs), task.uniqueness
    assert unique is not None
    return UniqueJob(*job, unique.digest(args, kwargs), unique.until, unique.limit_ms, unique.on_conflict)


def check_call(task: Task[Any, Any], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Raises InvalidTask if periodic jobs cannot have these arguments."""
    try:
        task.call_signature.check(args, kwargs)
        serializer.dumps_call(args, kwargs, names=task.call_signature.names, task=task.name)
    except (TypeError, PayloadError) as error:
        raise InvalidTask(f"{task.name}: the arguments of its schedule are invalid: {error}") from error


def write_options(task: Task[Any, Any]) -> str:
    """The options that workers have to know of a copy, as members of a JSON object.

    This is cached, so it is also the place to warn.
    """
    warn_if_unknown_to_workers(task)
    options = {name: getattr(task, name) for name in WORKER_OPTIONS if name in task.changed}
    if None in options.values():  # None: the default of the settings, not that of the task
        options = {name: getattr(get_config(), name) if v is None else v for name, v in options.items()}
    if task.headers:
        options["headers"] = task.headers
    return serializer.dumps(options)[1:-1]


def _client_of(task: Task[Any, Any], args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    assert not isinstance(task.client, str)
    return client_name(task.name, task.call_signature.apply(task.client, args, kwargs))

"""The types of the options of @task and using(), for type checkers and editors.

They are wider than those of Task, where options are declared. A test compares the names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict
from uuid import UUID

from django_rtq.core.schedules import Schedule
from django_rtq.core.tasks.calls import UniqueOption
from django_rtq.core.tasks.options.backoff import Backoff
from django_rtq.core.tasks.options.kinds import Moment
from django_rtq.core.transactions import OnCommit

Client = str | int | UUID | None
Errors = type[BaseException] | Sequence[type[BaseException]]
Delay = float | timedelta
Until = Literal["start", "done"]
OnConflict = Literal["return", "raise", "replace", "rerun"]


class CallOptions(TypedDict, total=False):
    """Options that @task and using() take."""

    queue_name: str | None
    client: Client | Callable[..., Client]
    priority: int
    max_attempts: int | None
    max_crashes: int | None
    backoff: Backoff | Delay | Sequence[Delay]
    time_limit: float | None
    expires: Moment | None
    at_front: bool
    result_ttl: float | None
    unique: UniqueOption
    unique_until: Until
    unique_seconds: float
    unique_on_conflict: OnConflict
    on_commit: OnCommit


class UsingOptions(CallOptions, total=False):
    """Options that using() takes."""

    run_after: Moment | None
    headers: Mapping[str, Any] | None


class DeclarationOptions(CallOptions, total=False):
    """Options that @task takes, also for tasks of django.tasks."""

    retry_on: Errors
    give_up_on: Errors
    exactly_once: bool | str
    schedule: Schedule | Sequence[Schedule]


class SharedOptions(DeclarationOptions, total=False):
    """Options that task.with_options() takes."""

    keep_args: bool | None


class TaskOptions(SharedOptions, total=False):
    """Options that @task takes, beside takes_context."""

    name: str
    aliases: Sequence[str]


class CeleryOptions(TypedDict, total=False):
    """Options of Celery's apply_async() that have a counterpart."""

    countdown: float | None
    eta: datetime | None
    expires: float | timedelta | datetime | None
    queue: str | None
    priority: int | None
    time_limit: float | None
    headers: Mapping[str, Any] | None

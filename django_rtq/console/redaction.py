"""Redacts secrets of jobs on pages and in commands. The data in Redis is not changed (D55).

Arguments, headers and results are redacted by name, as Django does with settings on its error pages
(DEFAULT_EXCEPTION_REPORTER_FILTER). Positional arguments have the names of the parameters of the task. If this process
does not know the task, all of them are redacted. Texts, such as messages of errors, are shown as they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.views.debug import get_exception_reporter_filter

from django_rtq.core.tasks.registry import known_task

if TYPE_CHECKING:
    from django_rtq.core.jobs.details import JobDetails

HIDDEN = "********************"


# -- arguments, by name


def hidden(value: Any, name: str = "") -> Any:
    """A copy in which values of names like "password" and "token" are redacted, at any depth."""
    hide = getattr(get_exception_reporter_filter(None), "cleanse_setting", None)
    return value if hide is None else hide(name, value)


def hidden_args(task: str, args: Any, *, shows_unknown: bool = False) -> list[Any]:
    """Positional arguments, redacted by the names of the parameters of the task."""
    given = args if isinstance(args, list) else [args]
    registered = known_task(task)
    if registered is None:
        return [hidden(value) if shows_unknown else HIDDEN for value in given]
    names = registered.call_signature.names
    return [hidden(value, names[i] if i < len(names) else "") for i, value in enumerate(given)]


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function, with its defaults redacted by the names of its parameters."""
    signature = inspect.signature(function)
    shown = [
        each if each.default is each.empty else each.replace(default=hidden(each.default, each.name))
        for each in signature.parameters.values()
    ]
    return signature.replace(parameters=shown)


# -- jobs


def redacted(job: JobDetails, *, shows_unknown: bool = False) -> JobDetails:
    """A job with its secrets redacted, except in texts."""
    return replace(
        job,
        args=hidden_args(job.task, job.args, shows_unknown=shows_unknown),
        kwargs=hidden(job.kwargs),
        headers=hidden(job.headers),
        result=hidden(job.result),
        steps=[replace(step, result=hidden(step.result, step.name)) for step in job.steps],
    )

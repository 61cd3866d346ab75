"""Runs jobs inside the middleware of the project."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from django_rtq.jobs.context import running
from django_rtq.jobs.job import Job
from django_rtq.middleware_chain import wrap


class RunMiddleware:
    """RTQ["MIDDLEWARE"] around the functions of tasks. Any thread may use it."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths

    @cached_property
    def call(self) -> Callable[[Job], Any]:
        """Runs the job whose run is the current one: a function. Raises ConfigurationError."""
        return wrap(self._paths, "run", _call_task)

    @cached_property
    def acall(self) -> Callable[[Job], Any]:
        """call() for a coroutine function."""
        return wrap(self._paths, "run", _acall_task)


def _call_task(job: Job) -> Any:
    """Call the function of a task. Middleware may have changed the arguments."""
    run: Any = running()
    args = (run.context, *job.args) if run.task.takes_context else job.args
    return run.task.body(*args, **job.kwargs)


async def _acall_task(job: Job) -> Any:
    return await _call_task(job)

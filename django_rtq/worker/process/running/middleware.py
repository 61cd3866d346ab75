"""Runs jobs inside the middleware of the project."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from django_rtq.jobs.context import running
from django_rtq.jobs.job import Job
from django_rtq.middleware.chain import wrap


class RunMiddleware:
    """RTQ["MIDDLEWARE"] around the functions of tasks. Any thread may use it."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._wrapped: dict[Callable[[Job], Any], Callable[[Job], Any]] = {}
        self._lock = threading.Lock()

    @property
    def call(self) -> Callable[[Job], Any]:
        """Runs the job whose run is the current one: a function. Raises ConfigurationError.

        Takes a lock, so no time limit may interrupt it.
        """
        return self._wrap(_call_task)

    @property
    def acall(self) -> Callable[[Job], Any]:
        """The same, as a coroutine function."""
        return self._wrap(_acall_task)

    def _wrap(self, innermost: Callable[[Job], Any]) -> Callable[[Job], Any]:
        """Calls the factories once."""
        with self._lock:
            if innermost not in self._wrapped:
                self._wrapped[innermost] = wrap(self._paths, "run", innermost)
            return self._wrapped[innermost]


def _call_task(job: Job) -> Any:
    """Call the function of a task. Middleware may have changed the arguments."""
    run: Any = running()
    args = (run.context, *job.args) if run.task.takes_context else job.args
    return run.task.body(*args, **job.kwargs)


async def _acall_task(job: Job) -> Any:
    return await _call_task(job)

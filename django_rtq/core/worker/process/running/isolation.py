"""Isolates jobs from each other: context variables and database connections.

Connections are managed as around a request, but only after a job has opened one: otherwise it would cost for nothing.
"""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Callable
from typing import Any

from django.db import connections, reset_queries
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from django_rtq.core.conf.config import is_debug
from django_rtq.core.jobs.context import CurrentRun, current_run
from django_rtq.core.worker.process.run import Run

logger = logging.getLogger("django_rtq")


class _ThreadContext(threading.local):
    """Per thread: the current run, and a context that has it."""

    def __init__(self, context: contextvars.Context) -> None:
        of_process, here = context.copy(), CurrentRun()
        of_process.run(current_run.set, here)
        self.both = here, of_process


class Isolation:
    """Runs the functions of jobs so that they do not affect later jobs. Any thread may use it.

    Context variables (language, time zone and others): each function runs in a copy of the context in which this object
    was created, and the signals of its run are sent in the same copy. Database connections: closed if they are unusable
    or too old, as Django does around a request. Those of a coroutine are its own, and closed when it ends.
    """

    def __init__(self) -> None:
        self._thread_context = _ThreadContext(contextvars.copy_context())
        self._is_debug = is_debug()
        self.uses_database = False  # a job has opened a connection
        # clean_up() takes some microseconds even without connections, so it is skipped until one is opened.
        connection_created.connect(self._note_connection, weak=False, dispatch_uid=f"rtq-isolation-{id(self)}")

    def call(self, run: Run, *args: Any) -> Any:
        """Call the function of a job in its own context, in which the job is the current one."""
        variables = run.variables
        if variables is None:  # prepare_context(), inlined: this runs for every job
            here, context = self._thread_context.both
            here.run = run
            run.variables = variables = context.copy()
        return variables.run(run.task.body, *args, **run.kwargs)

    def call_with(self, run: Run, function: Callable[..., Any], *args: Any) -> Any:
        """Call another function in the context of a run."""
        variables = self.prepare_context(run) if run.variables is None else run.variables
        return variables.run(function, *args)

    def prepare_context(self, run: Run) -> contextvars.Context:
        """Create the context of a run, in the thread that will call its function."""
        here, context = self._thread_context.both
        here.run = run
        run.variables = context.copy()
        return run.variables

    def clean_up(self, *, is_thread_ending: bool = False) -> None:
        """Close unusable and old connections, in the thread that used them; all of them if the thread ends. Like
        close_old_connections(), but an error of close() is not a failure of the job.
        """
        if self.uses_database:
            for connection in connections.all(initialized_only=True):
                try:
                    connection.close() if is_thread_ending else connection.close_if_unusable_or_obsolete()
                    if connection.in_atomic_block:
                        _roll_back(connection)
                except Exception:  # whatever a driver raises
                    logger.exception("cannot close a connection to database %r: dropped it", connection.alias)
                    del connections[connection.alias]
            if self._is_debug:
                reset_queries()

    def close(self) -> None:
        """Disconnect from Django's signal."""
        connection_created.disconnect(dispatch_uid=f"rtq-isolation-{id(self)}")

    def _note_connection(self, **kwargs: Any) -> None:
        self.uses_database = True


def _roll_back(connection: BaseDatabaseWrapper) -> None:
    """Roll back a transaction that a job left open: otherwise later jobs would write into it."""
    logger.error("a job left a transaction open on database %r: rolled back", connection.alias)
    connection.close()
    del connections[connection.alias]  # the wrapper still believes it is in a transaction

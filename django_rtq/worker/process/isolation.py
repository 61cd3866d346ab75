"""What Django leaves behind when a job is over, and how the next one is kept from seeing it."""

from __future__ import annotations

import contextvars
import logging
import threading
from typing import Any

from django.db import connections, reset_queries
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from django_rtq.conf import is_debug
from django_rtq.jobs.context import CurrentRun, current_run
from django_rtq.worker.process.run import Run

logger = logging.getLogger("django_rtq")


class _ThreadContext(threading.local):
    """What each thread has of its own: its current run, and a context in which that is set."""

    def __init__(self, context: contextvars.Context) -> None:
        own, here = context.copy(), CurrentRun()
        own.run(current_run.set, here)
        self.both = here, own


class Isolation:
    """Runs functions so that they leave nothing to the next. Any thread may use it.

    Language, time zone and all that lives in context variables: each function runs in a copy of the context
    in which this was made, and the signals of its run are sent in the same copy. Database connections: looked after as
    Django does around a request, once one was opened.
    """

    def __init__(self) -> None:
        self._thread_context = _ThreadContext(contextvars.copy_context())
        self._is_debug = is_debug()
        self._uses_database = False
        # Closing costs some microseconds even when there is nothing to close.
        connection_created.connect(self._note_connection, weak=False, dispatch_uid=f"rtq-isolation-{id(self)}")

    def call(self, run: Run, *args: Any) -> Any:
        """Call the function of a job in a context of its own, in which the job is the current one."""
        variables = run.variables
        if variables is None:  # as begin(), without the call: this is on the way of every job
            here, context = self._thread_context.both
            here.run = run
            run.variables = variables = context.copy()
        return variables.run(run.task.func, *args, **run.kwargs)  # type: ignore[union-attr]

    def prepare_context(self, run: Run) -> contextvars.Context:
        """Give a run its context, in the thread that will call its function."""
        here, context = self._thread_context.both
        here.run = run
        run.variables = context.copy()
        return run.variables

    def clean_up(self) -> None:
        """Close connections that are broken or too old, in the thread that used them. As close_old_connections() does,
        but a connection that cannot even be closed is no failure of the job.
        """
        if self._uses_database:
            for connection in connections.all(initialized_only=True):
                try:
                    connection.close_if_unusable_or_obsolete()
                    if connection.in_atomic_block:
                        _roll_back(connection)
                except Exception:  # whatever a driver raises
                    logger.exception("a connection to database %r could not be closed: it is dropped", connection.alias)
                    del connections[connection.alias]
            if self._is_debug:
                reset_queries()

    @property
    def uses_database(self) -> bool:
        """Whether any job has opened a connection so far."""
        return self._uses_database

    def close(self) -> None:
        """Let go of Django's signal."""
        connection_created.disconnect(dispatch_uid=f"rtq-isolation-{id(self)}")

    def _note_connection(self, **kwargs: Any) -> None:
        self._uses_database = True


def _roll_back(connection: BaseDatabaseWrapper) -> None:
    """A transaction that a job left open would swallow what the next ones write: it is rolled back."""
    logger.error("a job left a transaction open on database %r: it is rolled back", connection.alias)
    connection.close()
    del connections[connection.alias]  # the wrapper believes that it is still in there

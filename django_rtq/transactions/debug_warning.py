"""Warns while DEBUG is on about jobs that are sent although a transaction is open."""

from __future__ import annotations

import logging

from django.db import connections

# A logger, not the module `warnings`: one warning for each task, whatever the filters, and never an exception.
logger = logging.getLogger(__name__)

_warned: set[str] = set()  # names of tasks


def warn_if_in_transaction(task: str) -> None:
    """Log a warning, once for each task, if the transaction of any database is open in this thread."""
    if task in _warned:
        return
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block:
            _warned.add(task)
            logger.warning(
                "A job of %s was sent while a transaction of the database %r is open: a worker may run it before the "
                "commit, and it runs after a rollback, too. Use delay_on_commit(), or set "
                'RTQ["ENQUEUE_ON_COMMIT"] = True. If it is meant, say so: @task(on_commit=False) or '
                "using(on_commit=False). This warning comes once for each task, and only while DEBUG is on.",
                task,
                connection.alias,
            )
            return

"""Database connections in threads and processes that run code of the project only now and then, such as receivers of
signals: nobody looks after them there as Django does around a request."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

logger = logging.getLogger("django_rtq")

_here = threading.local()


def watch() -> None:
    """Take note of connections that are opened from now on. May be called again."""
    connection_created.connect(_note, dispatch_uid="rtq-databases")


def close_opened() -> None:
    """Close what this thread has opened. Costs nothing when it has opened nothing."""
    if getattr(_here, "has_opened", False):
        close_all()


def close_all() -> None:
    """Close all connections of this thread. Raises nothing."""
    _here.has_opened = False
    for connection in connections.all(initialized_only=True):
        try:
            connection.close()
        except Exception:
            logger.exception("the connection to database %r could not be closed; it is dropped", connection.alias)
        # The next one is made anew: this one may believe that it is still in a transaction.
        with suppress(AttributeError):
            del connections[connection.alias]


def close_pools() -> None:
    """Close the connection pools of this process, before a fork: their sockets must not be in two processes."""
    for alias, settings in connections.settings.items():
        if settings.get("OPTIONS", {}).get("pool"):
            _close_pool(connections[alias])


def _close_pool(connection: BaseDatabaseWrapper) -> None:
    try:
        connection.close_pool()  # type: ignore[attr-defined]
    except Exception:
        logger.exception("the connection pool of database %r could not be closed", connection.alias)


def _note(**kwargs: object) -> None:
    _here.has_opened = True

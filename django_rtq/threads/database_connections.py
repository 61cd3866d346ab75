"""Closes database connections in threads that run code of the project only now and then, such as signal receivers.

Django closes them after each web request; in these threads nothing else does."""

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
    """Track connections that are opened from now on. May be called more than once."""
    connection_created.connect(_note, dispatch_uid="rtq-databases")


def close_opened() -> None:
    """Close the connections that this thread has opened. Costs nothing if there are none."""
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
        # Make a new one next time: this one may still be marked as in a transaction.
        with suppress(AttributeError):
            del connections[connection.alias]


def close_pools() -> None:
    """Close the connection pools of this process before a fork, because two processes must not share their sockets."""
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

"""The task: it writes one row, and kills its own process where it is told to."""

from __future__ import annotations

import os
import signal
from typing import Any

from django.db import connection, transaction

from django_rtq import constant, task

CREATE_TABLE = "CREATE TABLE effects (number integer NOT NULL)"


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@task(backoff=constant(0), takes_context=True, max_crashes=1000)
def write(context: Any, number: int, dies: str = "") -> None:
    """Write a row. Die in the first run "before" its end, or "after" the commit and before Redis is told."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO effects (number) VALUES (%s)", [number])
    if dies and context.attempt == 1:
        transaction.on_commit(_die) if dies == "after" else _die()


@task(exactly_once=True, backoff=constant(0), takes_context=True, max_crashes=1000)
def write_once(context: Any, number: int, dies: str = "") -> None:
    """write() with exactly_once."""
    write.func(context, number, dies)

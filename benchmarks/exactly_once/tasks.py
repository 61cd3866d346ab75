"""The task: it writes one row, and kills its own process where it is told to."""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import Any

from django.db import connection, transaction

from django_rtq import constant, task

CREATE_TABLE = "CREATE TABLE effects (number integer NOT NULL)"
DIES = "kills its own process:"  # in the log


def _die(how: str) -> None:
    os.write(2, f"{DIES} {how}\n".encode())  # into the worker's log
    os.kill(os.getpid(), signal.SIGKILL)


@task(backoff=constant(0), takes_context=True, max_crashes=1000)
def write(context: Any, number: int, dies: str = "") -> None:
    """Write a row. Die in the first run "before" its end, or "after" the commit and before Redis is told."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO effects (number) VALUES (%s)", [number])
    if dies and context.attempt == 1:
        transaction.on_commit(partial(_die, dies)) if dies == "after" else _die(dies)


@task(exactly_once=True, backoff=constant(0), takes_context=True, max_crashes=1000)
def write_once(context: Any, number: int, dies: str = "") -> None:
    """write() with exactly_once."""
    write.func(context, number, dies)

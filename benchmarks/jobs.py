"""The jobs that are measured."""

from __future__ import annotations

import time

from benchmarks.notes import notes
from django_rtq import task


def _account_name(account: int, **kwargs: object) -> str:
    return f"account-{account}"


@task(result_ttl=0)
def noop(account: int, number: int) -> None:
    """Nothing, for nobody in particular."""


@task(result_ttl=0, unique=True)
def noop_once(account: int, number: int) -> None:
    """Nothing, and not twice at a time."""


@task(result_ttl=0, client=_account_name)
def noop_of_account(account: int, number: int) -> None:
    """Nothing, for one of many clients."""


@task
def answer(account: int, number: int) -> int:
    """Nothing but a result, which is kept."""
    return number


@task(result_ttl=0)
def note_moment(slot: int) -> None:
    """Say when it started. The clock is the same in all processes of a machine."""
    now = time.monotonic_ns()
    notes()[slot] = now


@task(result_ttl=0)
def take_place(slot: int) -> None:
    """Say as which one it started, of all since the start of the only process that runs them; slot 0 counts."""
    places = notes()
    places[0] += 1
    if slot:
        places[slot] = places[0]

"""The tasks that the benchmarks run."""

from __future__ import annotations

import time

from benchmarks.counters import counters
from django_rtq import task


def _account_name(account: int, **kwargs: object) -> str:
    return f"account-{account}"


@task(result_ttl=0)
def noop(account: int, number: int) -> None:
    """Do nothing, for no particular client."""


@task(result_ttl=0, unique=True)
def noop_once(account: int, number: int) -> None:
    """Do nothing, as a unique job."""


@task(result_ttl=0, client=_account_name)
def noop_of_account(account: int, number: int) -> None:
    """Do nothing, for one of many clients."""


@task
def return_number(account: int, number: int) -> int:
    """Return a number, which is stored."""
    return number


@task(result_ttl=0)
def record_start(slot: int) -> None:
    """Record when it started. The clock is the same in all processes of a machine."""
    now = time.monotonic_ns()
    counters()[slot] = now


@task(result_ttl=0)
def record_place(slot: int) -> None:
    """Record its place in the order of starts; slot 0 counts all. For a worker with one process."""
    places = counters()
    places[0] += 1
    if slot:
        places[slot] = places[0]

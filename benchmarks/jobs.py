"""The tasks that the benchmarks run."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Sequence

from django.db import transaction

from benchmarks.counters import counters, marks
from django_rtq import Call, JobContext, task

logger = logging.getLogger("benchmarks")
PROCESSES = 1024  # slots of a client in nap_of_client


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
def log_a_line(account: int, number: int) -> None:
    """Log a line."""
    logger.info("number %s", number)


@task(result_ttl=0)
def record_start(slot: int) -> None:
    """Record when it started. The clock is the same in all processes of a machine."""
    now = time.monotonic_ns()
    counters()[slot] = now


@task(result_ttl=0, takes_context=True)
def record_event(context: JobContext, slot: int) -> None:
    """Wait for an event, and record when it has come."""
    context.wait("go")
    now = time.monotonic_ns()
    counters()[slot] = now


@task(result_ttl=0)
def record_place(slot: int) -> None:
    """Record its place in the order of starts; slot 0 counts all. For a worker with one process."""
    places = counters()
    places[0] += 1
    if slot:
        places[slot] = places[0]


@task(result_ttl=0)
def nap(number: int, ms: int) -> None:
    """Wait for so long."""
    time.sleep(ms / 1000)
    marks()[number] = 1


@task(result_ttl=0)
def mark(number: int) -> None:
    """Set the mark of its number."""
    marks()[number] = 1


@task(max_attempts=1)
def kill_process() -> None:
    """Kill the process that runs it."""
    os.kill(os.getpid(), signal.SIGKILL)


@task(result_ttl=0)
def wait_for_cancel(slot: int) -> None:
    """Wait until it is cancelled, and record when it started and stopped."""
    counters()[slot] = time.monotonic_ns()
    try:
        time.sleep(60)
    finally:
        counters()[slot + 1] = time.monotonic_ns()


@task(result_ttl=0)
def record_run(slot: int, ms: int) -> None:
    """Wait for so long, and record when it started and ended."""
    counters()[slot] = time.monotonic_ns()
    time.sleep(ms / 1000)
    counters()[slot + 1] = time.monotonic_ns()


@task(result_ttl=0)
def nap_of_client(place: int, ms: int) -> None:
    """Wait for so long, and add up how long it took. Each client and process has a slot."""
    began = time.perf_counter_ns()
    time.sleep(ms / 1000)
    counters()[place * PROCESSES + os.getpid() % PROCESSES] += time.perf_counter_ns() - began


@task(result_ttl=0)
async def noop_async(account: int, number: int) -> None:
    """Do nothing, as a coroutine."""


@task(result_ttl=0)
async def nap_async(number: int, ms: int) -> None:
    """Wait for so long, as a coroutine."""
    await asyncio.sleep(ms / 1000)
    marks()[number] = 1


@task(result_ttl=0, backoff=0)
def fail_once(number: int) -> None:
    """Fail in the first run."""
    if not marks()[number]:
        marks()[number] = 2
        raise ValueError("the first run fails")
    marks()[number] = 1


@task
def add_one(number: int) -> int:
    """Return a result that somebody waits for."""
    return number + 1


@task(result_ttl=0)
def take(number: int, text: str) -> None:
    """Take a large argument."""
    marks()[number] = 1


@task(result_ttl=0)
def read_and_write(number: int) -> None:
    """One SELECT and one UPDATE."""
    from benchmarks.models import Account

    account = Account.objects.get(pk=1 + number % 100)
    account.balance = number
    account.save(update_fields=["balance"])
    marks()[number] = 1


@task(result_ttl=0)
def insert(number: int) -> None:
    """One INSERT of one row."""
    from benchmarks.models import Account

    Account.objects.bulk_create([Account(balance=number)])
    marks()[number] = 1


@task(result_ttl=0, batch=100)
def insert_together(calls: Sequence[Call]) -> None:
    """One INSERT of a row for each job."""
    from benchmarks.models import Account

    Account.objects.bulk_create(Account(balance=call.args[0]) for call in calls)
    for call in calls:
        marks()[call.args[0]] = 1


@task(result_ttl=0)
def add_row(number: int) -> None:
    """Insert a row in a transaction."""
    with transaction.atomic():
        _insert(number)
    marks()[number] = 1


@task(result_ttl=0, exactly_once=True)
def add_row_once(number: int) -> None:
    """The same, exactly once."""
    _insert(number)
    marks()[number] = 1


def _insert(number: int) -> None:
    from benchmarks.models import Account

    Account.objects.create(balance=number)

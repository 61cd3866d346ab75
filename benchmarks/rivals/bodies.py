"""What the jobs do, for all contenders alike. Needs only the standard library."""

from __future__ import annotations

import asyncio
import os
import time

from benchmarks.counters import counters, marks

URL = os.environ.get("RTQ_BENCH_REDIS", "redis://127.0.0.1:6379/0")
NAP_SECONDS = 0.006


def noop(number: int) -> None:
    """Only mark that it is done."""
    marks()[number] = 1


def nap(number: int) -> None:
    """Wait 6 ms."""
    time.sleep(NAP_SECONDS)
    marks()[number] = 1


async def nap_async(number: int) -> None:
    """Wait 6 ms, as a coroutine."""
    await asyncio.sleep(NAP_SECONDS)
    marks()[number] = 1


def fail_once(number: int) -> None:
    """Fail in the first run."""
    if not marks()[number]:
        marks()[number] = 2
        raise ValueError("the first run fails")
    marks()[number] = 1


def record_start(slot: int) -> None:
    """Record when it started."""
    now = time.monotonic_ns()
    counters()[slot] = now


def call_back(*results: object) -> None:
    """Record when it started first, and how often. What a queue passes on is ignored."""
    now = time.monotonic_ns()
    counters()[0] = counters()[0] or now
    counters()[1] += 1


def add_one(number: int) -> int:
    """Return a result that somebody waits for."""
    return number + 1


def read_and_write(number: int) -> None:
    """One SELECT and one UPDATE. Connections are never closed: that favours queues that do not know Django."""
    from django.apps import apps

    if not apps.ready:
        os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.rivals.database_settings"
        import django

        django.setup()
    from benchmarks.models import Account

    account = Account.objects.get(pk=1 + number % 100)
    account.balance = number
    account.save(update_fields=["balance"])
    marks()[number] = 1

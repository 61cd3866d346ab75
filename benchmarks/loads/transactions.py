"""Transactions: what the outbox adds to one in a web process, and exactly_once to a job. With PostgreSQL."""

from __future__ import annotations

import json
import os
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.backlog import run_backlog
from benchmarks.environment import Environment
from benchmarks.figures import Readings
from benchmarks.loads.database import SETTINGS, VARIABLE
from testproject.postgres_server import PostgresUnavailable, PrivatePostgres

TRANSACTIONS = 1000
OUTBOX = "RTQ_BENCH_OUTBOX"  # what SETTINGS read


def measure(env: Environment, readings: Readings) -> None:
    """One round."""
    try:
        with PrivatePostgres() as server:
            os.environ[VARIABLE] = json.dumps({**server.settings, "CONN_MAX_AGE": None})
            _measure(env, readings)
    except PostgresUnavailable as problem:
        readings.remark(f"transactions: skipped, {problem}")


def _measure(env: Environment, readings: Readings) -> None:
    from benchmarks.jobs import add_row, add_row_once

    path = env.server.directory / "transactions.json"
    variables = {"DJANGO_SETTINGS_MODULE": SETTINGS, OUTBOX: "1"}
    env.clear()
    with env.process("-m", "benchmarks.loads.transactions", str(path), variables=variables) as child:
        env.finish(child, seconds=120)
    for name, microseconds in json.loads(path.read_text()).items():
        readings.add(f"transactions.{name}", microseconds)
    jobs = 1000 if env.is_quick else 4000
    for name, task in (("job", add_row), ("job_once", add_row_once)):
        env.clear()
        task.delay_many([((number,), {}) for number in range(jobs)])
        run_backlog(env, jobs, settings=SETTINGS).record(readings, f"transactions.{name}")
    readings.ratio("transactions.job_once_vs_job", "transactions.job_once", "transactions.job")


def main(path: Path) -> None:
    """Make the tables, and write the median µs of a transaction: without a job, and with its row in the outbox."""
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection, transaction

    from benchmarks.jobs import noop
    from benchmarks.models import Account

    call_command("migrate", verbosity=0)
    with connection.schema_editor() as editor:
        editor.create_model(Account)
    seconds: dict[str, list[float]] = {"bare": [], "outbox": []}
    for number in range(TRANSACTIONS):
        for name, spent in seconds.items():
            began = perf_counter()
            with transaction.atomic():
                Account.objects.create(balance=number)
                if name == "outbox":
                    noop.delay(7, number)
            spent.append(perf_counter() - began)
    found = {name: median(spent) * 1e6 for name, spent in seconds.items()}
    path.write_text(json.dumps({**found, "outbox_more": found["outbox"] - found["bare"]}))


if __name__ == "__main__":
    import sys

    main(Path(sys.argv[1]))

"""Jobs of one SELECT and one UPDATE through the ORM, with connections that are kept, new for each job, or pooled."""

from __future__ import annotations

import importlib.util
import json
import os
from typing import Any

from benchmarks.backlog import run_backlog
from benchmarks.environment import Environment
from benchmarks.figures import Readings
from testproject.postgres_server import PostgresUnavailable, PrivatePostgres

SETTINGS = "benchmarks.database_settings"
VARIABLE = "RTQ_BENCH_DATABASE"  # what SETTINGS read


def measure(env: Environment, readings: Readings) -> None:
    """One round: each database once with each kind of connection."""
    _measure(env, readings, "sqlite", sqlite(env))
    try:
        with PrivatePostgres() as server:
            _measure(env, readings, "postgres", server.settings)
    except PostgresUnavailable as problem:
        readings.remark(f"database: PostgreSQL is skipped, {problem}")


def create_table(env: Environment) -> None:
    """Create the table and its rows in the database that the variable names."""
    with env.process("-m", "benchmarks.loads.database_setup", variables={"DJANGO_SETTINGS_MODULE": SETTINGS}) as setup:
        env.finish(setup)


def sqlite(env: Environment) -> dict[str, Any]:
    """A file with a write-ahead log, as busy projects set it."""
    pragmas = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(env.server.directory / "bench.sqlite3"),
        "OPTIONS": {"init_command": pragmas, "transaction_mode": "IMMEDIATE", "timeout": 20},
    }


def _measure(env: Environment, readings: Readings, name: str, database: dict[str, Any]) -> None:
    from benchmarks.jobs import read_and_write

    os.environ[VARIABLE] = json.dumps(database)
    create_table(env)
    ways: dict[str, dict[str, Any]] = {"": {"CONN_MAX_AGE": None}, "_new": {"CONN_MAX_AGE": 0}}
    if name == "postgres" and importlib.util.find_spec("psycopg_pool"):
        ways["_pool"] = {"OPTIONS": {"pool": True}}
    jobs = 500 if env.is_quick else 2000
    for suffix, options in ways.items():
        os.environ[VARIABLE] = json.dumps({**database, **options})
        env.clear()
        read_and_write.delay_many([((number,), {}) for number in range(jobs)])
        run_backlog(env, jobs, "--processes", "2", settings=SETTINGS).record(readings, f"database.{name}{suffix}")
        if suffix:
            figure = f"database.{name}{suffix}"
            readings.ratio(f"{figure}_vs_kept", figure, f"database.{name}")
    if name == "sqlite":  # created again in the next round
        for path in env.server.directory.glob("bench.sqlite3*"):
            path.unlink()

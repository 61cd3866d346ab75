"""Jobs that insert a row each, one by one and 100 in one call, in SQLite and PostgreSQL."""

from __future__ import annotations

import json
import os
from typing import Any

from benchmarks.backlog import run_backlog
from benchmarks.environment import Environment
from benchmarks.figures import Readings
from benchmarks.loads.database import SETTINGS, VARIABLE, create_table, sqlite
from testproject.postgres_server import PostgresUnavailable, PrivatePostgres


def measure(env: Environment, readings: Readings) -> None:
    """One round."""
    _measure(env, readings, "sqlite", sqlite(env))
    try:
        with PrivatePostgres() as server:
            _measure(env, readings, "postgres", server.settings)
    except PostgresUnavailable as problem:
        readings.remark(f"together: PostgreSQL is skipped, {problem}")


def _measure(env: Environment, readings: Readings, name: str, database: dict[str, Any]) -> None:
    from benchmarks.jobs import insert, insert_together

    os.environ[VARIABLE] = json.dumps({**database, "CONN_MAX_AGE": None})
    create_table(env)
    jobs = 5_000 if env.is_quick or name == "postgres" else 20_000  # it waits for the disk at each commit
    for suffix, task in (("_single", insert), ("", insert_together)):
        env.clear()
        task.delay_many([((number,), {}) for number in range(jobs)])
        run_backlog(env, jobs, settings=SETTINGS).record(readings, f"together.{name}{suffix}")
    readings.ratio(f"together.{name}_vs_single", f"together.{name}", f"together.{name}_single")
    if name == "sqlite":  # created again in the next round
        for path in env.server.directory.glob("bench.sqlite3*"):
            path.unlink()

"""Counts the effects of jobs whose workers are killed: python -m benchmarks.exactly_once --jobs 20000 --kills 500

Two fifths of the kills come before a commit, two fifths after a commit and before Redis is told: the job kills its own
process. The others hit processes at random moments, each tenth of these a whole worker with its supervisor. Redis,
PostgreSQL and MariaDB are servers of its own. The exit code is 1 unless each job has had its effect exactly once. The
last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.processes import children_of
from testproject.mariadb_server import PrivateMariaDB
from testproject.postgres_server import PrivatePostgres
from testproject.redis_server import PrivateRedis

ROOT = Path(__file__).resolve().parent.parent.parent
PROCESSES = 2
STALLED_SECONDS = 60.0


class Worker:
    """An rtq_worker that is started again when it is killed."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._start()

    def _start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "django", "rtq_worker", "--processes", str(PROCESSES)],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill_child(self, chance: random.Random) -> None:
        """Kill one of its processes."""
        while True:
            if children := children_of(self._process.pid):
                with suppress(ProcessLookupError):  # its own job was faster
                    return os.kill(chance.choice(children), signal.SIGKILL)
            time.sleep(0.01)

    def kill_all(self) -> None:
        """Kill the supervisor and its processes, and start another one."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._start()

    def stop(self) -> None:
        """Let it finish."""
        self._process.terminate()
        self._process.wait(30)


class Proof:
    """Enqueues the jobs, kills workers, and counts."""

    def __init__(self, jobs: int, kills: int, seed: int, *, is_plain: bool) -> None:
        self._jobs = jobs
        self._is_plain = is_plain
        self._chance = random.Random(seed)
        dying = self._chance.sample(range(jobs), min(jobs, kills * 4 // 5))
        self._dies = {number: ("before", "after")[place % 2] for place, number in enumerate(dying)}
        self._thresholds = sorted(self._chance.randrange(jobs) for _ in range(kills - len(dying)))

    def run(self, worker: Worker) -> dict[str, Any]:
        """Returns the counts."""
        from benchmarks.exactly_once.tasks import write, write_once

        task = write if self._is_plain else write_once
        task.delay_many([((number, self._dies.get(number, "")), {}) for number in range(self._jobs)])
        at_random = len(self._thresholds)
        self._kill_until_done(worker)
        return {
            "jobs": self._jobs,
            "effects": self._query("SELECT count(*) FROM effects"),
            "jobs with an effect": self._query("SELECT count(DISTINCT number) FROM effects"),
            "rows of jobs": self._query("SELECT count(*) FROM django_rtq_committedjob"),
            "killed at random": at_random,
        }

    def _kill_until_done(self, worker: Worker) -> None:
        from django_rtq.core.broker.brokers import get_broker

        jobs_key = get_broker().keys.of("default").jobs
        left, since, kills = -1, time.monotonic(), 0
        while now_left := get_broker().redis.execute_one(("HLEN", jobs_key)):
            if now_left != left:
                left, since = now_left, time.monotonic()
            if time.monotonic() > since + STALLED_SECONDS:
                break
            if self._thresholds and self._jobs - left >= self._thresholds[0]:
                self._thresholds.pop(0)
                kills += 1
                worker.kill_all() if kills % 10 == 0 else worker.kill_child(self._chance)
            time.sleep(0.01)
        while self._thresholds:  # the last jobs were faster
            self._thresholds.pop()
            worker.kill_child(self._chance)

    def _query(self, sql: str) -> int:
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute(sql)
            return int(cursor.fetchone()[0])


@contextmanager
def _database(name: str, folder: Path) -> Iterator[dict[str, Any]]:
    """An entry for DATABASES."""
    if name == "postgresql":
        with PrivatePostgres(unix_socket=True) as server:
            yield {**server.settings, "CONN_MAX_AGE": None}
    elif name == "mariadb":
        with PrivateMariaDB() as server:
            yield {**server.create_database("proof"), "CONN_MAX_AGE": None}
    else:
        pragmas = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
        yield {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(folder / "proof.sqlite3"),
            "CONN_MAX_AGE": None,
            "OPTIONS": {"init_command": pragmas, "transaction_mode": "IMMEDIATE", "timeout": 20},
        }


def _prepare(redis_url: str, database: dict[str, Any]) -> None:
    """Django in this process, and the tables."""
    os.environ["RTQ_BENCH_REDIS"] = redis_url
    os.environ["RTQ_BENCH_DATABASE"] = json.dumps(database)
    os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.exactly_once.settings"
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection

    from benchmarks.exactly_once.tasks import CREATE_TABLE

    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute(CREATE_TABLE)


def _read_log(text: str) -> dict[str, int]:
    """How many jobs killed their own process, and how many of them had committed. One that is hit at random may not."""
    from benchmarks.exactly_once.tasks import DIES

    return {
        "killed before a commit": text.count(f"{DIES} before"),
        "killed after a commit": text.count(f"{DIES} after"),
        "settled without their function": text.count("earlier run:"),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the counts. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exactly_once", description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--database", choices=("sqlite", "postgresql", "mariadb"), default="sqlite")
    parser.add_argument("--plain", action="store_true", help="without exactly_once: shows what it prevents")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name, PrivateRedis() as redis:
        folder = Path(name)
        with _database(options.database, folder) as database:
            _prepare(redis.url, database)
            worker = Worker(folder / "worker.log")
            try:
                proof = Proof(options.jobs, options.kills, options.seed, is_plain=options.plain)
                counts = proof.run(worker)
            finally:
                worker.stop()
            counts |= _read_log((folder / "worker.log").read_text())
            from django.db import connection

            connection.close()
    print(json.dumps({"database": options.database, **counts}))
    same = {counts[name] for name in ("jobs", "effects", "jobs with an effect", "rows of jobs")}
    return len(same) > 1


if __name__ == "__main__":
    sys.exit(main())

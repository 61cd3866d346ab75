"""Processes are killed between their commit and Redis: no job is lost, none is doubled, and a worker runs them all."""

import os
import subprocess
import sys

import pytest

from tests.databases.workers.outbox_producer import MOMENTS, moment_of
from tests.support.forked_commands import ROOT
from tests.support.waiting import wait_until

pytestmark = pytest.mark.long

PROCESSES = 4 * len(MOMENTS)


@pytest.fixture
def produce(database, redis_server, journal):
    """Runs the producers; returns when they are all gone."""
    database.query("CREATE TABLE orders (name varchar(50) PRIMARY KEY)")

    def run(processes):
        subprocess.run(
            [sys.executable, "-m", "tests.databases.workers.outbox_producer", str(processes)],
            cwd=ROOT,
            env={
                **os.environ,
                **database.environment,
                "DJANGO_SETTINGS_MODULE": "tests.settings",
                "RTQ_REDIS_URL": redis_server.url,
            },
            check=True,
            timeout=120,
        )

    return run


def test_every_committed_job_runs_once(produce, database, rtq_worker, journal):
    produce(PROCESSES)
    orders = {name for (name,) in database.query("SELECT name FROM orders")}
    left = {job for (job,) in database.query("SELECT job FROM django_rtq_outboxjob")}

    expected = {f"order-{number}" for number in range(PROCESSES) if moment_of(number) != "before the commit"}
    assert orders == expected
    assert len(left) == 3 * PROCESSES // len(MOMENTS)
    database.query("UPDATE django_rtq_outboxjob SET due_at = '2026-01-01 00:00:00'")  # their grace is over
    worker = rtq_worker(environment=database.environment, OUTBOX=True)
    wait_until(lambda: not database.query("SELECT 1 FROM django_rtq_outboxjob"))
    wait_until(lambda: journal.ends() >= len(orders))
    assert sorted(journal.names()) == sorted(orders)
    assert worker.stop() == 0

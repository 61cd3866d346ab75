"""The same drain with the jobs of 1 to 100,000 clients."""

from __future__ import annotations

from benchmarks.drain import drain
from benchmarks.environment import Environment
from benchmarks.figures import Readings
from benchmarks.loads.figures import CLIENTS


def measure(env: Environment, readings: Readings) -> None:
    """One round."""
    from benchmarks.jobs import noop_of_account

    jobs = 50_000 if env.is_quick else 200_000
    for clients in CLIENTS:
        if clients <= jobs:
            drain(env, noop_of_account, jobs=jobs, clients=clients).record(readings, f"clients.{clients}")
    largest = max(clients for clients in CLIENTS if clients <= jobs)
    readings.ratio("clients.most_vs_one", f"clients.{largest}", "clients.1")

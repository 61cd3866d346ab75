"""What middleware, logs, metrics, traces and error reports cost: drains with each of them, in turn with one without."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from benchmarks.drain import drain
from benchmarks.environment import Environment
from benchmarks.figures import Readings

SCRAPE_SECONDS = 1.0  # Prometheus scrapes every 15 s or so
SETTINGS = "benchmarks.observed_settings"
JOBS = {"job_logs": 40_000, "opentelemetry": 40_000, "sentry": 40_000, "sentry_traced": 10_000}  # of the slow ones


def measure(env: Environment, readings: Readings) -> None:
    """One round."""
    from benchmarks.jobs import log_a_line, noop

    drain(env, noop).record(readings, "observers.none")
    for observer in ("middleware", "job_logs", "logs", "opentelemetry", "sentry", "sentry_traced"):
        os.environ["RTQ_BENCH_OBSERVER"] = observer
        with _scraping() if observer == "logs" else nullcontext():
            task = log_a_line if observer == "job_logs" else noop
            cost = drain(env, task, jobs=JOBS.get(observer, 0), settings=SETTINGS)
        cost.record(readings, f"observers.{observer}")
        readings.ratio(f"observers.{observer}_vs_none", f"observers.{observer}", "observers.none")


@contextmanager
def _scraping() -> Iterator[None]:
    """Meanwhile, the metrics are read again and again."""
    from django_rtq.monitoring.prometheus import metrics_text

    stopped = threading.Event()

    def scrape() -> None:
        while not stopped.wait(SCRAPE_SECONDS):
            metrics_text()

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()

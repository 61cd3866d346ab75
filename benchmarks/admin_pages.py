"""Cost of the pages of the admin, and of a scrape for Prometheus, with very many jobs."""

from __future__ import annotations

from benchmarks.admin import fill, run_pages
from benchmarks.environment import Environment
from benchmarks.figures import FIGURES, Readings


def measure(env: Environment, readings: Readings) -> None:
    """Fill Redis once, then request each page."""
    fill(env, readings)
    for page, costs in run_pages(env).items():
        readings.add(f"admin.page_{page}", costs.pop("ms"))
        for cost, value in costs.items():
            if f"admin.page_{page}_{cost}" in FIGURES:
                readings.add(f"admin.page_{page}_{cost}", value)
    env.clear()

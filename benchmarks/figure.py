"""A figure: its unit, its description and its target."""

from __future__ import annotations

from typing import NamedTuple

# What a job costs is shown in columns beside its figure, whose name it begins with: suffix -> head of the column.
COLUMNS = {
    "_share": "of limit",
    "_worker_cpu": "Python µs",
    "_redis_cpu": "Redis µs",
    "_script_time": "in scripts",
    "_commands": "commands",
    "_total_cpu": "CPU ms",
    "_from_redis": "Redis kB",
}


class Target(NamedTuple):
    """A limit for a median."""

    sign: str  # ">=", ">", "<=" or "<"
    value: float

    def is_met(self, median: float) -> bool:
        """Whether the median is within the limit."""
        return {
            ">=": median >= self.value,
            ">": median > self.value,
            "<=": median <= self.value,
            "<": median < self.value,
        }[self.sign]

    def __str__(self) -> str:
        return f"{self.sign} {self.value:,g}"


class Figure(NamedTuple):
    """A line of the table."""

    unit: str
    description: str
    target: Target | None = None  # None: for comparison only


def rate(name: str, description: str, target: Target | None = None, **targets: Target) -> dict[str, Figure]:
    """A figure in jobs per second, and what a job costs. The targets of costs are given by the names of COLUMNS."""
    costs = {
        "share": Figure("ratio", f"share of its limit: {description}", targets.get("share")),
        "worker_cpu": Figure("µs/job", f"CPU of worker or caller: {description}", targets.get("worker_cpu")),
        "redis_cpu": Figure("µs/job", f"CPU of Redis: {description}", targets.get("redis_cpu")),
        "script_time": Figure(
            "µs/job", f"of which in scripts, by its own clock: {description}", targets.get("script_time")
        ),
        "commands": Figure("per job", f"commands of Redis, also in scripts: {description}", targets.get("commands")),
    }
    return {
        name: Figure("jobs/s", description, target),
        **{f"{name}_{cost}": figure for cost, figure in costs.items()},
    }


def column_of(name: str) -> tuple[str, str] | None:
    """The figure beside which this one is shown, and the suffix. None if it has a line of its own."""
    return next(((name.removesuffix(suffix), suffix) for suffix in COLUMNS if name.endswith(suffix)), None)

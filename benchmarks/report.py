"""Prints the figures as a table or as JSON."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from typing import Any

import django
import redis

from benchmarks.environment import Environment
from benchmarks.figure import COLUMNS, column_of
from benchmarks.figures import FIGURES, Readings

VERDICTS = {True: "met", False: "MISSED", None: ""}


def as_table(readings: Readings, machine: Mapping[str, object]) -> str:
    """One line per figure: name, median, unit, target, whether it is met, rounds, costs of a job, description."""
    names = readings.names()
    heads = {suffix: head for suffix, head in COLUMNS.items() if any(name.endswith(suffix) for name in names)}
    rows = [("figure", "median", "unit", "target", "", "rounds", *heads.values(), "")]
    for name in names:
        figure, rounds = FIGURES[name], readings.rounds[name]
        if figure.target is None and (beside := column_of(name)) and beside[0] in names:
            continue
        spread = f"{number(min(rounds))} … {number(max(rounds))}" if len(rounds) > 1 else "one"
        target = "" if figure.target is None else str(figure.target)
        verdict = VERDICTS[readings.verdict(name)]
        costs = [number(readings.median(name + suffix)) if name + suffix in names else "" for suffix in heads]
        median = number(readings.median(name))
        rows.append((name, median, figure.unit, target, verdict, spread, *costs, figure.description))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["; ".join(f"{key} {value}" for key, value in machine.items()), ""]
    right = {1, *range(6, 6 + len(heads))}
    for row in rows:
        cells = [
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join([*lines, "", *readings.remarks])


def as_json(readings: Readings, machine: Mapping[str, object], run: Mapping[str, object]) -> dict[str, Any]:
    """The output of --json. `target` and `met` are null for figures without a target."""
    figures = {}
    for name in readings.names():
        target = FIGURES[name].target
        figures[name] = {
            "median": readings.median(name),
            "unit": FIGURES[name].unit,
            "rounds": readings.rounds[name],
            "target": None if target is None else str(target),
            "met": readings.verdict(name),
        }
    return {"machine": dict(machine), "run": dict(run), "figures": figures, "remarks": readings.remarks}


def machine(env: Environment) -> dict[str, Any]:
    """Versions, cores and load of the machine."""
    return {
        "python": platform.python_version(),
        "django": django.get_version(),
        "redis-py": redis.__version__,
        "redis": env.redis.info("server")["redis_version"],
        "cores": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 2),  # of the last minute: above 0, other programs are running
    }


def number(value: float) -> str:
    """A number with three significant digits, or in whole numbers from 1,000."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.3g}"

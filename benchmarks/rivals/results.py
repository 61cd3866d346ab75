"""The readings of all contenders, as tables and as JSON."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.report import number
from benchmarks.rivals.contenders import CONTENDERS
from benchmarks.rivals.works import WORKS, Reading

SPEEDS = ("jobs/s", "ms", "s")
OURS, FLOOR = "django_rtq", "bare"
HEAD = ("", "median", "", "rounds", "Python µs", "Redis µs", "commands", "django_rtq is faster by")


def gain(unit: str, value: float, other: float) -> float:
    """How many times as fast the first one is: of rates, more is faster; of times, less. 1 for what is no speed."""
    if unit not in SPEEDS:
        return 1.0
    return value / other if unit == "jobs/s" else other / value


@dataclass(slots=True)
class Results:
    """What was measured so far."""

    readings: dict[str, dict[str, list[Reading]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(self, work: str, contender: str, reading: Reading) -> None:
        """Add the reading of one round."""
        self.readings[work][contender].append(reading)

    def as_json(self, machine: Mapping[str, object], run: Mapping[str, object]) -> dict[str, Any]:
        """The output of --json."""
        return {
            "machine": dict(machine),
            "run": dict(run),
            "contenders": {
                name: {
                    "title": CONTENDERS[name].title,
                    "how": CONTENDERS[name].how,
                    "on_kill": CONTENDERS[name].on_kill,
                    "versions": found,
                }
                for name, found in self.versions.items()
            },
            "works": {
                work: {
                    "unit": WORKS[work].unit,
                    "description": WORKS[work].description,
                    "contenders": {name: _summary(readings) for name, readings in by_contender.items()},
                }
                for work, by_contender in self.readings.items()
            },
            "problems": self.problems,
        }

    def as_table(self, machine: Mapping[str, object]) -> str:
        """A table for each work, the best first."""
        lines = ["; ".join(f"{key} {value}" for key, value in machine.items())]
        for work, by_contender in self.readings.items():
            lines += ["", f"{work}: {WORKS[work].description}"]
            rows = [HEAD, *self._rows(work, by_contender)]
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            for row in rows:
                cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
                lines.append("  " + "  ".join(cells).rstrip())
        return "\n".join([*lines, "", *self.problems])

    def _rows(self, work: str, by_contender: Mapping[str, list[Reading]]) -> list[tuple[str, ...]]:
        found = {name: _summary(readings) for name, readings in by_contender.items()}
        is_rate = WORKS[work].unit == "jobs/s"
        ours = found.get(OURS) if WORKS[work].unit in SPEEDS else None
        rows = []
        for name in sorted(found, key=lambda name: found[name]["median"], reverse=is_rate):
            summary = found[name]
            costs = [summary[cost] for cost in ("python_cpu", "redis_cpu", "commands")]
            ratio = number(gain(WORKS[work].unit, ours["median"], summary["median"])) if ours and name != OURS else ""
            spread = f"{number(min(summary['rounds']))} … {number(max(summary['rounds']))}"
            texts = ["" if cost is None else number(cost) for cost in costs]
            title = CONTENDERS[name].title
            rows.append((title, number(summary["median"]), WORKS[work].unit, spread, *texts, ratio))
        return rows


def _summary(readings: list[Reading]) -> dict[str, Any]:
    """Medians of the rounds."""

    def median(cost: str) -> float | None:
        values = [getattr(reading, cost) for reading in readings if getattr(reading, cost) is not None]
        return statistics.median(values) if values else None

    return {
        "median": statistics.median(reading.value for reading in readings),
        "rounds": [reading.value for reading in readings],
        **{cost: median(cost) for cost in ("python_cpu", "redis_cpu", "commands")},
    }

"""Measure django_rtq: python benchmarks/run.py [--json FILE|-] [--only NAME…] [--rounds 3] [--quick] [--check]

README.md beside this file says what the figures mean.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

BUSY = 0.5  # load average: from here on somebody else took part
GROUPS = ("raw", "enqueue", "unique", "drain", "latency", "memory", "fairness", "idle", "scale", "admin")


def main() -> int:
    """Returns the exit code."""
    # In place of this folder, which Python puts there: it is imported as "benchmarks".
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: nothing is left running
    from benchmarks import report
    from benchmarks.figures import Readings
    from benchmarks.stage import Stage

    started = time.monotonic()
    readings = Readings()
    with Stage(is_quick=options.quick) as stage:
        machine = report.machine(stage)
        if float(machine["load"]) > BUSY:
            readings.remark(
                f"The load was {machine['load']} before the start: read the ratios, not the absolute figures."
            )
        _measure(stage, readings, options)
    run = {"rounds": options.rounds, "quick": options.quick, "seconds": round(time.monotonic() - started, 1)}
    if options.json != "-":
        print(report.as_table(readings, machine))
    if options.json:
        text = json.dumps(report.as_json(readings, machine, run), indent=2, ensure_ascii=False) + "\n"
        print(text, end="") if options.json == "-" else Path(options.json).write_text(text)
    missed = [name for name in readings.names() if readings.verdict(name) is False]
    return 1 if options.check and missed else 0


def _measure(stage: Any, readings: Any, options: argparse.Namespace) -> None:
    from benchmarks import admin, drain, enqueue, fairness, idle, latency, memory, raw, scale, unique
    from benchmarks.stage import say

    by_rounds = {
        "raw": raw.measure,
        "enqueue": enqueue.measure,
        "unique": unique.measure,
        "drain": drain.measure,
        "latency": latency.measure,
        "memory": memory.measure,
        "fairness": fairness.measure,
    }
    at_last: dict[str, Callable[[Any, Any], None]] = {
        "idle": idle.measure,
        "scale": partial(scale.measure, rounds=options.rounds),
        "admin": admin.measure,
    }
    for turn in range(1, options.rounds + 1):
        for name, measure in by_rounds.items():
            if name in options.only:
                say(f"round {turn}: {name}")
                measure(stage, readings)
    for name, measure_all in at_last.items():
        if name in options.only:
            say(f"once: {name}")
            measure_all(stage, readings)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure django_rtq with a Redis server and workers of its own.")
    add = parser.add_argument
    add("--json", metavar="FILE", help="write the figures as JSON; - writes them to stdout, without the table")
    add(
        "--only",
        nargs="+",
        metavar="NAME",
        type=lambda name: name.partition(".")[0],  # a figure stands for its group
        choices=GROUPS,
        default=GROUPS,
        help=f"some of: {', '.join(GROUPS)}",
    )
    add("--rounds", type=int, metavar="N", help="how often all is measured (3; with --quick 1)")
    add("--quick", action="store_true", help="a first impression, in some 75 s")
    add("--check", action="store_true", help="exit code 1 when a target is missed")
    options = parser.parse_args()
    if options.rounds is None:
        options.rounds = 1 if options.quick else 3
    if options.rounds < 1:
        parser.error("--rounds has to be 1 or more")
    return options


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

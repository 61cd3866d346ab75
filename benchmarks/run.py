"""Measure django_rtq: python benchmarks/run.py [--json FILE|-] [--only NAME…] [--rounds 3] [--quick] [--awake]

benchmarks/README.md explains the options and the figures.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

BUSY_LOAD = 0.5  # load average from which other programs distort the figures
GROUPS = (
    *("raw", "enqueue", "unique", "drain", "latency", "delayed", "memory", "fairness"),
    *("ordinary", "threads", "coroutines", "database", "get", "retries", "payload", "queues", "producers", "clients"),
    *("weights", "limits", "crashes", "transactions", "workflows", "together"),
    *("observers", "start", "idle", "scale", "workers", "admin", "pages"),
)


def main() -> int:
    """Returns the exit code."""
    # Replaces this folder, which Python puts first: it has to be imported as "benchmarks".
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C: stops all processes
    from benchmarks import report
    from benchmarks.environment import Environment
    from benchmarks.figures import Readings

    started = time.monotonic()
    readings = Readings()
    with Environment(is_quick=options.quick) as env:
        machine = report.machine(env)
        if float(machine["load"]) > BUSY_LOAD:
            readings.remark(
                f"The load average was {machine['load']} before the start: trust the ratios, not the absolute figures."
            )
        if options.awake:
            env.keep_awake()
        machine["idle cores"] = "kept awake" if options.awake else "may halt"
        _measure(env, readings, options)
    run = {"rounds": options.rounds, "quick": options.quick, "seconds": round(time.monotonic() - started, 1)}
    if options.json != "-":
        print(report.as_table(readings, machine))
    if options.json:
        text = json.dumps(report.as_json(readings, machine, run), indent=2, ensure_ascii=False) + "\n"
        print(text, end="") if options.json == "-" else Path(options.json).write_text(text)
    missed = [name for name in readings.names() if readings.verdict(name) is False]
    return 1 if options.check and missed else 0


Measure = Callable[[Any, Any], None]


def _groups(rounds: int) -> tuple[dict[str, Measure], dict[str, Measure]]:
    """What is measured in each round, and what is measured once: by the name of the group."""
    from benchmarks import (
        admin,
        admin_pages,
        delayed,
        drain,
        enqueue,
        fairness,
        idle,
        latency,
        memory,
        observers,
        raw,
        scale,
        start,
        unique,
        workers,
        workflows,
    )
    from benchmarks.loads import (
        clients,
        crashes,
        database,
        get,
        limits,
        payload,
        producers,
        queues,
        retries,
        together,
        transactions,
        waiting,
        weights,
    )

    modules = (
        *(raw, enqueue, unique, drain, latency, delayed, memory, fairness, database, get, retries, payload, queues),
        *(producers, clients, weights, limits, crashes, transactions, workflows, together, observers),
    )
    by_rounds = {module.__name__.rpartition(".")[2]: module.measure for module in modules} | {
        "ordinary": waiting.measure_ordinary,
        "threads": waiting.measure_threads,
        "coroutines": waiting.measure_coroutines,
    }
    once: dict[str, Measure] = {
        "start": start.measure,
        "idle": idle.measure,
        "delayed": delayed.measure_far,
        "workflows": workflows.measure_large,
        "scale": partial(scale.measure, rounds=rounds),
        "workers": workers.measure,
        "admin": admin.measure,
        "pages": admin_pages.measure,
    }
    return by_rounds, once


def _measure(env: Any, readings: Any, options: argparse.Namespace) -> None:
    from benchmarks.environment import print_progress

    by_rounds, once = _groups(options.rounds)
    for turn in range(1, options.rounds + 1):
        for name, measure in by_rounds.items():
            if name in options.only:
                print_progress(f"round {turn}: {name}")
                _try(name, partial(measure, env, readings), readings)
    for name, measure_all in once.items():
        if name in options.only:
            print_progress(f"once: {name}")
            _try(name, partial(measure_all, env, readings), readings)


def _try(name: str, measure: Callable[[], None], readings: Any) -> None:
    """A group that fails does not end the others."""
    from benchmarks.environment import MeasurementFailed, print_progress

    try:
        measure()
    except Exception as problem:  # noqa: BLE001 - the figures of the other groups took minutes
        print_progress(str(problem) if isinstance(problem, MeasurementFailed) else traceback.format_exc())
        readings.remark(f"{name} failed: {(str(problem).splitlines() or [type(problem).__name__])[0]}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure django_rtq with a Redis server and workers of its own.")
    add = parser.add_argument
    add("--json", metavar="FILE", help="write the figures as JSON; - writes them to stdout, without the table")
    add(
        "--only",
        nargs="+",
        metavar="NAME",
        type=lambda name: name.partition(".")[0],  # the name of a figure selects its group
        choices=GROUPS,
        default=GROUPS,
        help=f"some of: {', '.join(GROUPS)}",
    )
    add("--rounds", type=int, metavar="N", help="number of rounds (default: 3; with --quick: 1)")
    add("--quick", action="store_true", help="smaller and faster: about 5 minutes")
    add("--awake", action="store_true", help="keep idle cores from halting, which slows down virtual machines")
    add("--check", action="store_true", help="exit with code 1 if a target is missed")
    options = parser.parse_args()
    if options.rounds is None:
        options.rounds = 1 if options.quick else 3
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    return options


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

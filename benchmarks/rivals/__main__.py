"""Compare django_rtq with other task queues: python -m benchmarks.rivals [--only NAME…] [--works NAME…] [--json FILE]

benchmarks/README.md says how. The contenders are installed from the package index into .venv-rivals.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.environment import Environment, MeasurementFailed, print_progress
from benchmarks.rivals.contenders import CONTENDERS
from benchmarks.rivals.environments import NotInstalled, python_of, version_of, versions
from benchmarks.rivals.results import Results
from benchmarks.rivals.works import WORKS, Entrant


def main() -> int:
    """Returns the exit code."""
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C: stops all processes
    started = time.monotonic()
    results = Results()
    entrants = []
    for name in options.only:
        try:
            interpreter = python_of(name, CONTENDERS[name], options.python)
        except NotInstalled as problem:
            results.problems.append(f"not installed: {problem}")
            continue
        entrants.append(Entrant(name, CONTENDERS[name], interpreter))
        results.versions[name] = versions(interpreter)
    with Environment(is_quick=options.quick) as env:
        machine = report.machine(env) | {"python": version_of(options.python)}  # that of the contenders
        if options.awake:
            env.keep_awake()
        machine["idle cores"] = "kept awake" if options.awake else "may halt"
        _measure(env, entrants, results, options)
    run = {"rounds": options.rounds, "quick": options.quick, "seconds": round(time.monotonic() - started)}
    print(results.as_table(machine))
    if options.json:
        Path(options.json).write_text(json.dumps(results.as_json(machine, run), indent=2, ensure_ascii=False) + "\n")
    return 0


def _measure(env: Environment, entrants: list[Entrant], results: Results, options: Any) -> None:
    """Each work by one contender after the other, in each round."""
    for turn in range(1, options.rounds + 1):
        for name in options.works:
            for entrant in entrants:
                if name in entrant.contender.lacks:
                    continue
                print_progress(f"round {turn}: {name}: {entrant.name}")
                env.clear()
                try:
                    results.add(name, entrant.name, WORKS[name].measure(env, entrant))
                except MeasurementFailed as problem:
                    print_progress(f"  failed: {problem}")
                    results.problems.append(f"{name}, {entrant.name}: {str(problem).splitlines()[0]}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare django_rtq with other task queues.")
    add = parser.add_argument
    add("--json", metavar="FILE", help="write the figures as JSON, too")
    add("--only", nargs="+", choices=CONTENDERS, default=list(CONTENDERS), metavar="NAME", help=", ".join(CONTENDERS))
    add("--works", nargs="+", choices=WORKS, default=list(WORKS), metavar="NAME", help=", ".join(WORKS))
    add("--rounds", type=int, default=0, metavar="N", help="number of rounds (default: 3; with --quick: 1)")
    add("--quick", action="store_true", help="smaller and faster")
    add("--awake", action="store_true", help="keep idle cores from halting, which slows down virtual machines")
    add("--python", default=sys.executable, help="the Python of all environments; some queues need 3.12 or newer")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

"""Writes measured figures into the pages that show them: python -m benchmarks.publish FILE…

The files are those of --json: of `make bench` or `make bench-rivals`, each with or without --awake. Each table is
written between its marks: <!-- figures: NAME --> and <!-- /figures -->. Tables without a file stay as they are.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.environment import ROOT
from benchmarks.figure import COLUMNS, column_of
from benchmarks.figures import FIGURES
from benchmarks.report import number
from benchmarks.rivals.contenders import CONTENDERS
from benchmarks.rivals.results import FLOOR, OURS, SPEEDS, gain

Run = Mapping[str, Any]  # one file of --json

GROUPS = {
    "throughput": ("raw", "drain", "clients", "retries"),
    "enqueue": ("enqueue", "producers", "unique"),
    "ordinary": ("ordinary", "threads", "coroutines"),
    "database": ("database", "together", "transactions"),
    "latency": ("latency", "get", "delayed"),
    "payload": ("payload",),
    "queues": ("queues", "fairness", "weights", "limits"),
    "workflows": ("workflows",),
    "idle": ("start", "idle", "memory", "workers"),
    "observers": ("observers",),
}
README_FIGURES = ("fairness.last_place", "drain.results", "latency.p50")
README_SENTENCE = (
    "On {} cores, the last of 10 jobs behind 20,000 of another client starts as number {}, one process runs {} no-op"
    " jobs a second, and an idle worker begins a job {} ms after `delay()`."
)
# What one Redis carries: a figure whose Redis CPU is known -> the kind of job.
CAPACITY = {
    "drain.one_client": "no-op jobs in batches, results off",
    "drain.results": "no-op jobs in batches, results kept",
    "ordinary.1ms_16_threads": "jobs of 1 ms in 16 threads",
    "ordinary.6ms_16_threads": "jobs of 6 ms in 16 threads",
    "ordinary.5ms_4x4": "jobs of 5 ms in 4 processes with 4 threads",
    "ordinary.6ms": "jobs of 6 ms, one process, one at a time",
    "ordinary.20ms_16_processes": "jobs of 20 ms in 16 processes",
    "database.postgres": "jobs of one SELECT and one UPDATE in PostgreSQL",
    "payload.out_100kb": "no-op jobs with a payload of 100 kB",
}
# The figures that advice follows from: a ratio, or two figures, the cheap one first.
ADVICE = {
    "Keep results only where they are read: `result_ttl=0` otherwise": ("drain.one_client", "drain.results"),
    "Enqueue many with `delay_many()` instead of `delay()`": ("enqueue.many_1000", "enqueue.delay"),
    "Keep database connections (`CONN_MAX_AGE`): PostgreSQL": ("database.postgres", "database.postgres_new"),
    "The same with psycopg's pool": ("database.postgres_pool", "database.postgres_new"),
    "Keep database connections: SQLite": ("database.sqlite", "database.sqlite_new"),
    "Jobs that wait: 16 threads instead of one (6 ms)": ("ordinary.6ms_16_threads", "ordinary.6ms"),
    "A worker with one queue instead of 100": ("queues.1", "queues.100"),
    "Pass an id instead of 100 kB": ("payload.in_1kb", "payload.in_100kb"),
    "Do not fail: a job that fails once and is retried": ("drain.one_client", "retries.once"),
}


def main(files: list[str]) -> None:
    """Read the files and write the tables."""
    runs = [json.loads(Path(file).read_text()) for file in files]
    kept, awake = (
        [run for run in runs if "figures" in run and (run["machine"]["idle cores"] == "kept awake") is is_awake]
        for is_awake in (False, True)
    )
    rivals = [run for run in runs if "works" in run]
    tables: dict[str, str] = {}
    if own := (kept or awake):
        tables |= _own_tables(own[0], awake[0] if kept and awake else None)
    for run in rivals:
        tables |= _rival_tables(run)
    for page in (ROOT / "benchmarks" / "FIGURES.md", ROOT / "docs" / "performance.md", ROOT / "README.md"):
        page.write_text(fill(page.read_text(), tables))


def fill(text: str, tables: Mapping[str, str]) -> str:
    """Replace what is between the marks of each table."""
    pattern = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- /figures -->)", re.S)
    return pattern.sub(
        lambda found: f"{found[1]}\n{tables[found[2]]}\n\n{found[3]}" if found[2] in tables else found[0], text
    )


def _own_tables(run: Run, awake: Run | None) -> dict[str, str]:
    """By the names of their marks."""
    tables = {"machine": _machine(run), "advice": _advice(run)}
    if run["figures"].keys() >= set(README_FIGURES):
        tables["readme"] = _readme(run)
    tables["capacity"] = _capacity(run, awake)
    tables["missed"] = _missed(run, awake)
    pages = re.compile(r"admin\.(click$|page_(?!\w+_(trips|kb|script)$))")
    if of_pages := [name for name in run["figures"] if pages.match(name)]:
        tables["pages"] = _figures(run, None, of_pages)
    for name, groups in GROUPS.items():
        if names := [figure for figure in run["figures"] if figure.partition(".")[0] in groups]:
            tables[name] = _figures(run, awake, names)
    return tables


def _figures(run: Run, awake: Run | None, names: list[str]) -> str:
    """One line per figure, with costs in columns beside it."""
    medians = {name: run["figures"][name]["median"] for name in names}
    heads = {suffix: head for suffix, head in COLUMNS.items() if any(name.endswith(suffix) for name in names)}
    rows = [["figure", "median", *(["cores awake"] if awake else []), "unit", "target", *heads.values(), "what it is"]]
    for name in names:
        figure = run["figures"][name]
        if not figure["target"] and (beside := column_of(name)) and beside[0] in medians:
            continue
        costs = [number(medians[name + suffix]) if name + suffix in medians else "" for suffix in heads]
        middle = [_median(awake, name)] if awake else []
        row = [f"`{name}`", number(figure["median"]), *middle, figure["unit"], _target(figure), *costs]
        rows.append([*row, FIGURES[name].description if name in FIGURES else ""])
    return _table(rows)


def _readme(run: Run) -> str:
    values = [number(run["figures"][name]["median"]) for name in README_FIGURES]
    return README_SENTENCE.format(run["machine"]["cores"], *values)


def _machine(run: Run) -> str:
    machine, how = run["machine"], run["run"]
    rounds = "one round" if how["rounds"] == 1 else f"medians of {how['rounds']} rounds"
    load = f"load {machine['load']} before the start"
    versions = ", ".join(
        f"{title} {machine[key]}"
        for key, title in (("python", "Python"), ("django", "Django"), ("redis-py", "redis-py"), ("redis", "Redis"))
    )
    size = ", with `--quick`" if how["quick"] else ""
    idle = "which were kept awake" if machine["idle cores"] == "kept awake" else "which halt when they are idle"
    cores = f"{machine['cores']} cores, {idle}"
    return f"Measured on a machine with {cores}; {versions}; {rounds}{size}; {load}."


def _missed(run: Run, awake: Run | None) -> str:
    """The figures that do not reach their targets, in one of the runs."""
    rows = [["figure", "median", *(["cores awake"] if awake else []), "unit", "target", "what it is"]]
    for name, figure in run["figures"].items():
        others = awake["figures"].get(name) if awake else None
        if figure["target"] and not (figure["met"] and (others is None or others["met"])):
            middle = [_median(awake, name)] if awake else []
            row = [f"`{name}`", number(figure["median"]), *middle, figure["unit"], str(figure["target"])]
            rows.append([*row, FIGURES[name].description if name in FIGURES else ""])
    return _table(rows)


def _capacity(run: Run, awake: Run | None) -> str:
    """How many jobs a second take one core of Redis. With cores awake if measured: those of a busy server are."""
    rows = [["kind of job", "Redis µs per job", "of which in scripts", "commands per job", "jobs/s that fill one core"]]
    for name, kind in CAPACITY.items():
        source = awake if _value(awake, name + "_redis_cpu") else run
        medians = {suffix: _value(source, name + suffix) for suffix in ("_redis_cpu", "_script_time", "_commands")}
        if cpu := medians["_redis_cpu"]:
            costs = [number(value) if value is not None else "" for value in medians.values()]
            rows.append([kind, *costs, f"{round(1e6 / cpu, -2):,.0f}"])
    return _table(rows)


def _advice(run: Run) -> str:
    rows = [["advice", "factor", "from … to"]]
    for text, (cheap, dear) in ADVICE.items():
        fast, slow = _value(run, cheap), _value(run, dear)
        if fast and slow:
            rows.append([text, number(fast / slow), f"{number(slow)} … {number(fast)} jobs/s"])
    return _table(rows)


def _rival_tables(run: Run) -> dict[str, str]:
    """By the names of their marks; those of a run with cores kept awake end with _awake."""
    suffix = "_awake" if run["machine"]["idle cores"] == "kept awake" else ""
    return {
        f"rivals{suffix}": f"{_machine(run)}\n\n{_beside(run)}",
        f"rivals_costs{suffix}": _costs(run),
        f"faster{suffix}": _faster(run),
        "contenders": _contenders(run),
    }


def _beside(run: Run) -> str:
    """A line for each work, a column for each contender."""
    names = list(run["contenders"])
    rows = [["work", "unit", *(CONTENDERS[name].title for name in names), "to the best of the others"]]
    for work in run["works"].values():
        cells = [_median_of(work, name) for name in names]
        rows.append([work["description"], work["unit"], *cells, _ratio_to_best(work)])
    return _table(rows)


def _costs(run: Run) -> str:
    """CPU of Python and Redis, for each work in which it was measured."""
    names = list(run["contenders"])
    rows = [["work", *(CONTENDERS[name].title for name in names)]]
    for work in run["works"].values():
        cells = []
        for name in names:
            found = work["contenders"].get(name)
            costs = [found["python_cpu"], found["redis_cpu"], found["commands"]] if found else []
            cells.append(" / ".join(map(number, costs)) if costs and None not in costs else "")
        if any(cells):
            rows.append([work["description"], *cells])
    return _table(rows)


def _faster(run: Run) -> str:
    """The works in which another queue was faster."""
    lines = []
    for work in run["works"].values():
        ours = work["contenders"].get(OURS)
        if not ours:
            continue
        for name, found in work["contenders"].items():
            factor = gain(work["unit"], found["median"], ours["median"])
            if name not in {OURS, FLOOR} and factor > 1:
                lines.append(f"- {CONTENDERS[name].title}, {work['description']}: {number(factor)} times as fast")
    return "\n".join(lines) or "In none of these works."


def _contenders(run: Run) -> str:
    rows = [["queue", "versions", "settings", "when a worker is killed"]]
    for name, contender in run["contenders"].items():
        wanted = [re.split(r"[\[<>=]", package)[0] for package in CONTENDERS[name].packages]
        found = {key.lower(): value for key, value in contender["versions"].items()}
        named = [package for package in (*wanted, "django-rtq", "django") if package.lower() in found]
        versions = ", ".join(f"{package} {found[package.lower()]}" for package in dict.fromkeys(named))
        rows.append([contender["title"], versions, contender["how"], contender["on_kill"]])
    return _table(rows)


def _ratio_to_best(work: Mapping[str, Any]) -> str:
    """How many times as fast we are as the best of the others. The bare pushes are no queue."""
    ours = work["contenders"].get(OURS)
    others = [found["median"] for name, found in work["contenders"].items() if name not in {OURS, FLOOR}]
    if not ours or not others or work["unit"] not in SPEEDS:
        return ""
    best = max(others) if work["unit"] == "jobs/s" else min(others)
    return number(gain(work["unit"], ours["median"], best))


def _median_of(work: Mapping[str, Any], name: str) -> str:
    found = work["contenders"].get(name)
    return number(found["median"]) if found else ""


def _value(run: Run | None, name: str) -> float | None:
    figure = run["figures"].get(name) if run else None
    return float(figure["median"]) if figure else None


def _median(run: Run | None, name: str) -> str:
    value = _value(run, name)
    return "" if value is None else number(value)


def _target(figure: Mapping[str, Any]) -> str:
    if not figure["target"]:
        return ""
    return str(figure["target"]) + ("" if figure["met"] else ", missed")


def _table(rows: list[list[str]]) -> str:
    head, *others = rows
    lines = ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *others)]
    return "\n".join(lines).replace("|  |", "| |").replace("|  |", "| |")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Count the instructions of Redis for each script, and of Python for each of some scenes:

    python -m benchmarks.instructions [--write | --check]

Callgrind counts what EVALSHA executes, so neither the load of the machine nor its speed changes the figures; another
build of Redis or Python does. Each script gets the call that its tests send. The scenes are in scenes.py, and the
baseline may have figures of several Pythons. Needs valgrind, and takes some minutes; each run of the scenes 40 seconds
of CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BASELINE = Path(__file__).with_name("instructions.json")
MOST_MORE = 0.05  # beyond which a script has become more expensive
MOST_MORE_OF_PYTHON = 0.03  # beyond which a scene has
TRIES = 2  # of each call; the least counts, as the first has to warm up
MORE_TRIES = 4  # of what seems to take more, each in a new server, because hash tables have a random seed there
MORE_SCENES = 3  # runs of the scenes of which the least counts: before it is written, or when one seems to take more
WRAPPER = """#!/bin/sh
exec valgrind --tool=callgrind --collect-atstart=no --toggle-collect={function} --callgrind-out-file={folder}/out \\
  {options} {server} "$@" --hz 1
"""


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description="Count the instructions of Redis for each script.")
    parser.add_argument("--write", action="store_true", help=f"write {BASELINE.name}")
    parser.add_argument(
        "--check", action="store_true", help="exit with code 1 if a script takes 5 %% more than there, or a scene 3 %%"
    )
    parser.add_argument("--only", nargs="+", metavar="SCRIPT", default=[], help='"python": the scenes')
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        print("Install valgrind: apt-get install valgrind", file=sys.stderr)
        return 2
    before: dict[str, Any] = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    before = {"redis": "", "scripts": {}, "python": {}, **before}
    scripts_are_fine = options.only == ["python"] or examine_scripts(before, options)
    scenes_are_fine = bool(options.only and "python" not in options.only) or examine_scenes(before, options)
    if options.write:
        BASELINE.write_text(json.dumps(before, indent=1) + "\n")
    return 0 if (scripts_are_fine and scenes_are_fine) or not options.check else 1


def examine_scripts(before: dict[str, Any], options: argparse.Namespace) -> bool:
    """Count what scripts take, and compare it. Returns whether none takes more; writes it into the dictionary."""
    version = redis_version()
    with tempfile.TemporaryDirectory() as folder, slow_server(Path(folder)) as server:
        same_server = before["redis"] == version
        counted = count(server, Path(folder), options.only)
        for _ in range(MORE_TRIES if options.check and same_server else 0):
            if again := more_than(before["scripts"], counted):
                server.restart()
                counted |= {name: min(counted[name], n) for name, n in count(server, Path(folder), again).items()}
    for name, instructions in counted.items():
        known = before["scripts"].get(name)
        change = f"{instructions / known - 1:+.1%}" if known and same_server else ""
        print(f"{name:24}{instructions:12,} {change}")
    if options.write:
        scripts = {**(before["scripts"] if same_server else {}), **counted}
        before |= {"redis": version, "scripts": dict(sorted(scripts.items()))}
    if not same_server:
        print(f"not compared: the figures are of {before['redis'] or 'no server'}, and this is {version}")
        return True
    worse = more_than(before["scripts"], counted)
    for name in worse:
        took = before["scripts"][name]
        print(f"{name} takes {counted[name]:,} instructions, and took {took:,}. If it has to: make baseline")
    return not worse


def more_than(known: Mapping[str, int], counted: Mapping[str, int], most_more: float = MOST_MORE) -> list[str]:
    """The scripts or scenes that have become more expensive."""
    return [name for name, n in counted.items() if n > known.get(name, n) * (1 + most_more)]


def examine_scenes(before: dict[str, Any], options: argparse.Namespace) -> bool:
    """The same for what scenes take of Python."""
    build = f"{platform.python_version()} {platform.python_compiler()}"
    known: dict[str, int] = before["python"].get(build, {})
    counted = count_scenes()
    for _ in range(MORE_SCENES):  # threads and batches may have met in another order
        if options.write or (options.check and more_than(known, counted, MOST_MORE_OF_PYTHON)):
            counted = {name: min(n, counted[name]) for name, n in count_scenes().items()}
    for name, instructions in counted.items():
        change = f"{instructions / known[name] - 1:+.1%}" if name in known else ""
        print(f"{name:24}{instructions:12,} {change}")
    if options.write:
        before["python"][build] = counted
    elif not known:
        print(f"not compared: there are no figures of Python {build}. For those: make baseline")
    worse = more_than(known, counted, MOST_MORE_OF_PYTHON)
    for name in worse:
        print(f"{name}: {counted[name]:,} instructions, and it took {known[name]:,}. If it has to: make baseline")
    return not worse


def count_scenes() -> dict[str, int]:
    """Instructions of Python for one job, by scene."""
    from benchmarks.scenes import JOBS
    from testproject.redis_server import PrivateRedis

    counted = {}
    with tempfile.TemporaryDirectory() as name, PrivateRedis() as server:
        folder = Path(name)
        tool = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/out"]
        told = {"PYTHONHASHSEED": "0", "RTQ_BENCH_REDIS": server.url, "DJANGO_SETTINGS_MODULE": "benchmarks.settings"}
        with subprocess.Popen(
            [*tool, sys.executable, "-m", "benchmarks.scenes"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env={**os.environ, **told},
        ) as process:  # fmt: skip
            assert process.stdin is not None
            for line in process.stdout or ():
                tell(process.pid, "instrumentation", "on")
                with counting(process.pid, folder) as figures:
                    print(file=process.stdin, flush=True)
                    (process.stdout or iter(())).__next__()
                tell(process.pid, "instrumentation", "off")
                counted[line.strip()] = sum(figures) // JOBS
                print(file=process.stdin, flush=True)
        if process.returncode:
            raise SystemExit("The scenes failed: python -m benchmarks.scenes")
    return counted


def redis_version() -> str:
    """What tells builds of the server apart."""
    from testproject.redis_server import find_server

    told = subprocess.run([find_server().rpartition("/")[2], "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"v=(\S+).*malloc=(\S+).*build=(\S+)", told.stdout)
    return " ".join(found.groups()) if found else told.stdout.strip()


@contextmanager
def slow_server(folder: Path) -> Iterator[Any]:
    """A private server that runs under callgrind."""
    from testproject.redis_server import PrivateRedis

    with callgrind(folder, "evalShaCommand"), PrivateRedis() as server:
        yield server


@contextmanager
def callgrind(folder: Path, function: str, options: str = "") -> Iterator[None]:
    """Servers that start meanwhile run under callgrind, which counts what this function of theirs executes."""
    from testproject.redis_server import find_server

    wrapper = folder / "redis-server"
    wrapper.write_text(WRAPPER.format(folder=folder, function=function, options=options, server=find_server()))
    wrapper.chmod(0o755)
    path, os.environ["PATH"] = os.environ["PATH"], f"{folder}:{os.environ['PATH']}"
    try:
        yield
    finally:
        os.environ["PATH"] = path


def count(server: Any, folder: Path, only: Sequence[str]) -> dict[str, int]:
    """Instructions by the name of the script."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "testproject.settings"
    import django
    from django.conf import settings

    django.setup()
    settings.RTQ = {**settings.RTQ, "REDIS": server.url, "SOCKET_TIMEOUT": 60.0, "LEASE_SECONDS": 600.0}
    import redis

    from django_rtq.core.broker.brokers import open_broker
    from django_rtq.core.broker.redis.commands import command_hooks
    from django_rtq.core.broker.scripts import SCRIPTS
    from tests.protocol.model.script_calls import SCRIPT_CALLS

    client, broker, counted = redis.Redis(port=server.port, protocol=2), open_broker("", role="worker"), {}
    for script in SCRIPTS.values():
        client.script_load(script.text)
    for name, call in SCRIPT_CALLS.items():
        if only and name not in only:
            continue
        figures = []
        for _ in range(TRIES):
            client.flushall()
            seeded = call.seed(broker)
            client.eval("collectgarbage()", 0)  # else some calls pay for the garbage of others
            meter = _Meter(name, server.pid, folder)
            command_hooks.append(meter)
            try:
                call.act(broker, seeded)
            finally:
                command_hooks.remove(meter)
            figures += meter.figures[:1]
        if figures:
            counted[name] = min(figures)
    broker.close()
    return counted


class _Meter:
    """A hook of commands: counts the instructions of round trips that call a script."""

    def __init__(self, script: str, pid: int, folder: Path) -> None:
        self._name, self._pid, self._folder = f"EVALSHA {script}", pid, folder
        self.figures: list[int] = []

    def __call__(self, names: Sequence[str]) -> Any:
        return self._count() if self._name in names else _nothing()

    @contextmanager
    def _count(self) -> Iterator[None]:
        with counting(self._pid, self._folder) as figures:
            yield
        self.figures += figures


@contextmanager
def counting(pid: int, folder: Path) -> Iterator[list[int]]:
    """Adds the instructions of a server meanwhile to the list."""
    figures: list[int] = []
    tell(pid, "zero")
    yield figures
    before = set(folder.glob("out.*"))
    tell(pid, "dump", "one")
    for path in set(folder.glob("out.*")) - before:
        found = re.search(r"^(?:totals|summary): (\d+)", path.read_text(), re.MULTILINE)
        figures.append(int(found[1]) if found else 0)
        path.unlink()


def tell(pid: int, *words: str) -> None:
    """Send a command to the callgrind under which a server runs."""
    command = ["vgdb", f"--pid={pid}", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)


@contextmanager
def _nothing() -> Iterator[None]:
    yield


if __name__ == "__main__":
    sys.exit(main())

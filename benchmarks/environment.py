"""What benchmarks run in: a private Redis server, Django set up in this process, and worker processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import redis

from benchmarks.counters import clear_counters, make_counters
from testproject.redis_server import PrivateRedis

ROOT = Path(__file__).resolve().parent.parent
STOP_SECONDS = 10.0
COMPILED = {"PYTHONDONTWRITEBYTECODE": ""}  # as users have it: else each start compiles all modules
Calls = Iterable[tuple[tuple[Any, ...], dict[str, Any]]]


class MeasurementFailed(RuntimeError):
    """A worker died, or a step took far too long. The message has the end of the worker's log."""


class Environment:
    """A context manager. At its end no process is left running. For one thread."""

    def __init__(self, *, is_quick: bool) -> None:
        self.is_quick = is_quick
        self.is_awake = False
        self.server = PrivateRedis()
        self._children: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Environment:
        self.server.start()
        self.redis = redis.Redis(port=self.server.port)
        self.counters = make_counters(self.server.directory / "counters")
        os.environ["RTQ_BENCH_REDIS"] = self.server.url
        os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.settings"
        import django

        django.setup()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C would leave a worker running
        for child in list(self._children):
            self._end(child)
        self.redis.close()
        self.server.stop()

    def clear(self) -> None:
        """Empty Redis, and set all counters and marks to 0."""
        self.redis.flushall()
        clear_counters()

    def keep_awake(self) -> None:
        """Keep the cores from halting, until the end."""
        self.is_awake = True
        for core in os.sched_getaffinity(0):
            self._children.append(
                self._popen([sys.executable, "-m", "benchmarks.awake", str(core)], {"PYTHONPATH": str(ROOT)})
            )

    # -- processes

    @contextmanager
    def process(
        self, *arguments: str, python: str | Path = sys.executable, variables: Mapping[str, str] | None = None
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Another Python process of this project, stopped at the end of the block."""
        child = self._popen([str(python), *arguments], variables or {})
        self._children.append(child)
        try:
            yield child
        finally:
            self._end(child)

    @contextmanager
    def worker(self, *options: str, url: str = "", settings: str = "") -> Iterator[subprocess.Popen[bytes]]:
        """rtq_worker with one process and one slot, unless the options say otherwise."""
        variables = {"RTQ_BENCH_REDIS": url} if url else {}
        if settings:
            variables["DJANGO_SETTINGS_MODULE"] = settings
        with self.process("-m", "django", "rtq_worker", "-v", "0", *options, variables=variables) as child:
            yield child

    def wait_until(
        self,
        condition: Callable[[], object],
        what: str,
        child: subprocess.Popen[bytes],
        *,
        seconds: float = 60,
        every: float = 0.0005,
    ) -> None:
        """Poll every half millisecond. Raises MeasurementFailed on a timeout or when the process has exited."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise MeasurementFailed(f"Not within {seconds:g} s: {what}.\n{self.log()}")
            if child.poll() is not None and not condition():
                raise MeasurementFailed(f"Ended with code {child.returncode} before {what}.\n{self.log()}")
            time.sleep(every)

    def finish(self, child: subprocess.Popen[bytes], *, seconds: float = 30) -> None:
        """Wait for a worker in burst mode to exit with code 0. Raises MeasurementFailed."""
        try:
            code = child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise MeasurementFailed(f"The worker did not end within {seconds:g} s.\n{self.log()}") from None
        if code:
            raise MeasurementFailed(f"The worker ended with code {code}.\n{self.log()}")

    def _popen(self, command: list[str], variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
        with self._log_path.open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **COMPILED, "PYTHONPATH": str(ROOT), **variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C goes to this process only, which stops the child
            )

    @property
    def _log_path(self) -> Path:
        return self.server.directory / "process.log"

    def log(self) -> str:
        """The last lines that the processes have printed."""
        return "\n".join(self._log_path.read_text(errors="replace").splitlines()[-20:])

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        if child.poll() is None:
            child.terminate()
            try:
                child.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        if child in self._children:
            self._children.remove(child)


def print_progress(text: str, stream: TextIO = sys.stderr) -> None:
    """Print progress to stderr, apart from the table and the JSON."""
    print(text, file=stream, flush=True)

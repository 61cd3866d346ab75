"""Where it is measured: a Redis of one's own, the project in this process, and workers in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import redis

from benchmarks.notes import make_notes
from testproject.redis_server import PrivateRedis

ROOT = Path(__file__).resolve().parent.parent
STOP_SECONDS = 10.0
Calls = Iterable[tuple[tuple[Any, ...], dict[str, Any]]]


class MeasurementFailed(RuntimeError):
    """A worker died, or something took far longer than it may. The message has the end of the worker's log."""


class Stage:
    """From `with` to its end; then nothing is left running. For one thread."""

    def __init__(self, *, is_quick: bool) -> None:
        self.is_quick = is_quick
        self.server = PrivateRedis()
        self._children: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Stage:
        self.server.start()
        self.redis = redis.Redis(port=self.server.port)
        self.notes = make_notes(self.server.directory / "notes")
        os.environ["RTQ_BENCH_REDIS"] = self.server.url
        os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.settings"
        import django

        django.setup()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # an impatient second Ctrl-C would leave a worker behind
        for child in list(self._children):
            self._end(child)
        self.redis.close()
        self.server.stop()

    def clear(self) -> None:
        """An empty Redis, and notes full of zeros."""
        self.redis.flushall()
        for slot in range(len(self.notes)):
            self.notes[slot] = 0

    # -- processes

    @contextmanager
    def process(self, *arguments: str, url: str = "") -> Iterator[subprocess.Popen[bytes]]:
        """Another Python of this project, ended with the block."""
        with self._log_path.open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), "RTQ_BENCH_REDIS": url or self.server.url},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for us; we end it
            )
        self._children.append(child)
        try:
            yield child
        finally:
            self._end(child)

    @contextmanager
    def worker(self, *options: str, url: str = "") -> Iterator[subprocess.Popen[bytes]]:
        """manage.py rtq_worker, one process of one slot unless the options say otherwise."""
        with self.process("-m", "django", "rtq_worker", "-v", "0", *options, url=url) as child:
            yield child

    def wait_until(
        self, is_so: Callable[[], object], what: str, child: subprocess.Popen[bytes], *, seconds: float = 60
    ) -> None:
        """Look every half millisecond. Raises MeasurementFailed when it takes too long or the process has ended."""
        deadline = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > deadline:
                raise MeasurementFailed(f"Not within {seconds:g} s: {what}.\n{self.log()}")
            if child.poll() is not None and not is_so():
                raise MeasurementFailed(f"Ended with code {child.returncode} before {what}.\n{self.log()}")
            time.sleep(0.0005)

    def finish(self, child: subprocess.Popen[bytes], *, seconds: float = 30) -> None:
        """A burst is over: it has to end by itself, and well. Raises MeasurementFailed."""
        try:
            code = child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise MeasurementFailed(f"The worker did not end within {seconds:g} s.\n{self.log()}") from None
        if code:
            raise MeasurementFailed(f"The worker ended with code {code}.\n{self.log()}")

    @property
    def _log_path(self) -> Path:
        return self.server.directory / "process.log"

    def log(self) -> str:
        """The end of what the processes have printed."""
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


def say(text: str, stream: TextIO = sys.stderr) -> None:
    """Progress, beside the table and the JSON."""
    print(text, file=stream, flush=True)

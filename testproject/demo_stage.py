"""What the demos play on: a Redis, a database and the worker, all gone when it is over."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import django
from django.core.management import call_command

from testproject.redis_server import PrivateRedis

MANAGE = Path(__file__).resolve().parent / "manage.py"
STOP_SECONDS = 15.0


class StageError(RuntimeError):
    """Something on the stage broke down. The message says what, with the end of its log."""


class Stage:
    """Owns the server, the files and the processes of a demo, from ``with`` to the end of it."""

    def __init__(self, *, appendonly: bool = False) -> None:
        self._redis = PrivateRedis(appendonly=appendonly)
        self._directory = Path(tempfile.mkdtemp(prefix="rtq-demo-"))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Stage:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _leave)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # shells switch it off for what runs with &
        try:
            self._redis.start()
            os.environ["RTQ_REDIS_URL"] = self._redis.url
            os.environ["RTQ_DATABASE"] = str(self._directory / "shop.sqlite3")
            os.environ["DJANGO_SETTINGS_MODULE"] = "testproject.settings"
            django.setup()
            call_command("migrate", verbosity=0)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @property
    def redis_url(self) -> str:
        return self._redis.url

    def run(self, *arguments: str) -> None:
        """Start ``manage.py …`` beside us. It ends with the stage."""
        name = arguments[0]
        with self._log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, str(MANAGE), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C is for us; we end them in order
            )

    def check(self) -> None:
        """Raises StageError when a process that should run does not."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise StageError(f"{name} ended with {process.returncode}.\n{self.log_of(name)}")

    def log_of(self, name: str, *, lines: int = 15) -> str:
        """The last lines of what it said."""
        log = self._log(name)
        said = log.read_text(errors="replace").splitlines() if log.exists() else []
        return "\n".join(f"    {line}" for line in said[-lines:])

    def stop(self, name: str) -> int:
        """End a process as its supervisor would. Returns its exit code."""
        process = self._processes.pop(name)
        process.terminate()
        try:
            return process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            return -signal.SIGKILL
        finally:
            with suppress(ProcessLookupError):  # its children, should it have left any
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def close(self) -> None:
        """End everything, the users of Redis before Redis. May be called twice."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # an impatient second Ctrl-C must not leave anything behind
        for name in list(self._processes):
            self.stop(name)
        self._redis.stop()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"


class Progress:
    """A bar on a terminal; a line for every tenth elsewhere."""

    WIDTH = 30

    def __init__(self, label: str, total: int) -> None:
        self._label, self._total = label, total
        self._is_terminal = sys.stdout.isatty()
        self._last = -1
        self._started = time.monotonic()

    def show(self, done: int, note: str = "") -> None:
        tenth = 10 * done // max(1, self._total)
        line = f"  {self._label} {done:>5,}/{self._total:,} {note}"
        if self._is_terminal:
            filled = self.WIDTH * done // max(1, self._total)
            bar = "#" * filled + "." * (self.WIDTH - filled)
            print(f"\r  [{bar}]{line}\x1b[K", end="", flush=True)
        elif tenth != self._last:
            print(line, flush=True)
        self._last = tenth

    def end(self) -> None:
        if self._is_terminal:
            print()
        print(f"  after {time.monotonic() - self._started:.1f} s")


def _leave(number: int, frame: FrameType | None) -> Any:
    raise SystemExit(128 + number)

"""What the demos run in: a private Redis server, a database and processes, all removed at the end."""

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


class DemoError(RuntimeError):
    """A process of the demo failed. The message has the end of its log."""


class DemoEnvironment:
    """Owns the server, files and processes of a demo. A context manager."""

    def __init__(self, *, appendonly: bool = False) -> None:
        self._redis = PrivateRedis(appendonly=appendonly)
        self._directory = Path(tempfile.mkdtemp(prefix="rtq-demo-"))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> DemoEnvironment:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _exit_on_signal)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it in processes started with &
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
        """Start ``manage.py …``. It is stopped at the end of the demo."""
        name = arguments[0]
        with self._log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, str(MANAGE), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C goes to this process only, which stops the others in order
            )

    def check(self) -> None:
        """Raise DemoError if a process has exited."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise DemoError(f"{name} exited with {process.returncode}.\n{self.log_of(name)}")

    def log_of(self, name: str, *, lines: int = 15) -> str:
        """The last lines of its log."""
        log = self._log(name)
        said = log.read_text(errors="replace").splitlines() if log.exists() else []
        return "\n".join(f"    {line}" for line in said[-lines:])

    def stop(self, name: str) -> int:
        """Stop a process as a service manager would. Returns its exit code."""
        process = self._processes.pop(name)
        process.terminate()
        try:
            return process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            return -signal.SIGKILL
        finally:
            with suppress(ProcessLookupError):  # kills child processes that are left
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def close(self) -> None:
        """Stop all processes, then Redis. May be called twice."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C must not interrupt this
        for name in list(self._processes):
            self.stop(name)
        self._redis.stop()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"


class Progress:
    """A progress bar on a terminal, or else a line for every tenth."""

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


def _exit_on_signal(number: int, frame: FrameType | None) -> Any:
    raise SystemExit(128 + number)

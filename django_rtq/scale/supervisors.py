"""One rtq_worker for several shards: a supervisor for each, in a process of its own.

A supervisor and its processes serve one Redis, with claims, leases and recovery of their own. So a shard that is down
or hangs holds up no other one, and within a shard all is as without shards. The parent only passes on stop signals,
replaces a supervisor that was killed, and touches the health file.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from django.core.management.base import CommandError

from django_rtq.core.broker.task_backends import shard_of
from django_rtq.core.worker.operating_system import stop_signals
from django_rtq.core.worker.options import EXIT_CANNOT_START, EXIT_OK
from django_rtq.core.worker.supervisor.process_pool import fork
from django_rtq.core.worker.supervisor.supervisor import TOUCH_SECONDS, Wakeup
from django_rtq.exceptions import RTQError

logger = logging.getLogger("django_rtq")

RESTART_SECONDS = 1.0  # until a supervisor that was killed is replaced
IDLE_SECONDS = 60.0  # between two looks for what has no signal
FRESH_SECONDS = 3 * TOUCH_SECONDS  # for so long the file of a supervisor counts after it was touched
Serve = Callable[[str, str], int]  # of a place, with the path of a health file; returns an exit code


def run_in_each(places: Sequence[str], serve: Serve, *, health_file: str = "") -> int:
    """Run a supervisor for each place until all have ended. Returns the worst of their exit codes."""
    return _Supervisors(places, serve, health_file).run()


class _Supervisors:
    def __init__(self, places: Sequence[str], serve: Serve, health_file: str) -> None:
        self._places, self._serve, self._health_file = places, serve, health_file
        self._wakeup = Wakeup()
        self._passed_on = 0  # stop signals
        self._sent = set[int]()  # signals that stop supervisors
        self._is_stopping = False
        self._alive: dict[int, str] = {}  # process id -> place
        self._due = dict.fromkeys(places, 0.0)  # when a supervisor is to be forked, on time.monotonic()
        self._touched: dict[str, tuple[float, float]] = {}  # health file -> when, by its clock and on time.monotonic()
        self._worst = EXIT_OK

    def run(self) -> int:
        with self._wakeup.install_handlers():
            while self._alive or self._due:
                for place in [place for place, at in self._due.items() if at <= time.monotonic()]:
                    del self._due[place]
                    life = partial(self._run_child, place)
                    self._alive[fork(life, stop_signals(), dies_by=signal.SIGTERM)] = place
                self._wakeup.sleep(self._check_seconds())
                for signum in self._wakeup.signals[self._passed_on :]:
                    self._stop(signum)
                    self._passed_on += 1
                self._reap()
                self._touch()
        return self._worst

    def _check_seconds(self) -> float:
        """How long to sleep: signals and the end of a process end it."""
        if self._due:
            return RESTART_SECONDS / 4
        if self._health_file:
            return TOUCH_SECONDS
        return IDLE_SECONDS

    def _run_child(self, place: str) -> int:
        """The life of a supervisor."""
        for signum in stop_signals():
            signal.signal(signum, signal.SIG_DFL)
        os.setpgid(0, 0)  # Ctrl-C signals a whole group, and the parent passes it on
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stop_signals())
        try:
            return self._serve(place, self._health_file_of(place))
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
        except (CommandError, RTQError) as error:
            sys.stderr.write(f"{_name(place)}: {error}\n")
            return getattr(error, "returncode", EXIT_CANNOT_START)

    def _reap(self) -> None:
        for pid, place in list(self._alive.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self._alive[pid]
                self._on_exit(place, os.waitstatus_to_exitcode(status))

    def _on_exit(self, place: str, code: int) -> None:
        """`code` is negative after a signal."""
        if code < 0 and not self._is_stopping:
            logger.error("the supervisor of %s was killed by signal %d, and is replaced", _name(place), -code)
            self._due[place] = time.monotonic() + RESTART_SECONDS
            return
        if code and not self._is_stopping:
            logger.error("the supervisor of %s exited with code %d: all others stop, too", _name(place), code)
            self._stop(signal.SIGTERM)
        if -code not in self._sent:  # else it was stopped while it started
            self._worst = max(self._worst, code if code >= 0 else 128 - code)

    def _stop(self, signum: int) -> None:
        self._is_stopping = True
        self._sent.add(signum)
        self._due.clear()
        for pid in self._alive:
            os.kill(pid, signum)

    def _health_file_of(self, place: str) -> str:
        return self._health_file and f"{self._health_file}.{shard_of(place)}"

    def _touch(self) -> None:
        """Touch the health file while one of the supervisors does: a shard that is down must not end the others."""
        if self._health_file and any([self._is_fresh(self._health_file_of(place)) for place in self._places]):
            with suppress(OSError):
                Path(self._health_file).touch()

    def _is_fresh(self, path: str) -> bool:
        try:
            touched = Path(path).stat().st_mtime
        except OSError:
            return False
        if touched != self._touched.get(path, (0.0, 0.0))[0]:
            self._touched[path] = touched, time.monotonic()
        return time.monotonic() - self._touched[path][1] < FRESH_SECONDS


def _name(place: str) -> str:
    return f"shard {shard_of(place)}"

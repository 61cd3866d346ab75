"""Forking children, and telling how they ended."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NoReturn

from django_rtq import database_connections
from django_rtq.broker.broker import Broker
from django_rtq.conf import Config
from django_rtq.worker.exit_codes import EXIT_DONE, EXIT_FAILED, EXIT_RECYCLED
from django_rtq.worker.options import WorkerOptions
from django_rtq.worker.process.process import Child
from django_rtq.worker.shared_memory import SharedState

_PR_SET_PDEATHSIG, _PR_GET_CHILD_SUBREAPER = 1, 37  # prctl(2)
_WNOTHREAD = 0x20000000 if sys.platform == "linux" else 0  # waitid(2)
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)


@dataclass(slots=True, eq=False)
class ChildProcess:
    """A child as its parent sees it."""

    pid: int
    page: SharedState
    overdue: list[str] = field(default_factory=list)  # jobs for whose time limit we killed it
    terminated: list[str] = field(default_factory=list)  # jobs that somebody wanted stopped at any price
    is_given_up: bool = False  # we killed it because it had no time left

    def kill(self, signum: int) -> None:
        """Send a signal. It is our child and not reaped yet, so the process id is its own."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signum)

    def is_well_over(self, status: int) -> bool:
        """Whether it left as it should."""
        return os.WIFEXITED(status) and os.WEXITSTATUS(status) in (EXIT_DONE, EXIT_RECYCLED) and not self.page.started()

    def is_old(self, status: int) -> bool:
        """Whether it left because it was old."""
        return os.WEXITSTATUS(status) == EXIT_RECYCLED

    @property
    def was_killed_by_us(self) -> bool:
        """For a job that did not heed us, or because time was up."""
        return bool(self.is_given_up or self.overdue or self.terminated)

    def cause_of_death(self, status: int) -> str:
        """In words."""
        if os.WIFSIGNALED(status):
            signum = os.WTERMSIG(status)
            hint = " (out of memory?)" if signum == signal.SIGKILL and not self.was_killed_by_us else ""
            return f"was killed by {signal.Signals(signum).name}{hint}"
        return f"exited with code {os.WEXITSTATUS(status)}"


class ProcessPool:
    """The children of one supervisor. For its main thread, but for pages()."""

    def __init__(self, config: Config, options: WorkerOptions) -> None:
        self._config = config
        self._options = options
        self.children: list[ChildProcess] = []
        self.is_quiet = False  # children claim nothing, by order
        self._adopts = _adopts_orphans()

    def prepare(self) -> None:
        """Before the first fork: a heap that the children need not copy to count in."""
        database_connections.close_all()
        gc.collect()
        gc.freeze()

    def pages(self) -> Sequence[tuple[int, SharedState]]:
        """Process ids and pages of the living. Any thread."""
        return [(child.pid, child.page) for child in list(self.children)]

    def fork(self) -> None:
        """One child more. Raises OSError."""
        page = SharedState(self._options.concurrency)
        page.is_quiet = self.is_quiet
        parent = os.getpid()
        # No child works on a connection of ours, and nothing of ours waits in a buffer that it would write once more.
        database_connections.close_all()
        database_connections.close_pools()
        _flush()
        # A signal that comes before the child has handlers of its own must not end up in ours.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            with warnings.catch_warnings():
                # Python warns of forks beside threads. Ours hold no lock now that a child would need.
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if pid == 0:
                self._be_the_child(page, parent)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.children.append(ChildProcess(pid, page))

    def reap(self) -> list[tuple[ChildProcess, int]]:
        """Children that have ended, each with its status."""
        ended = []
        for child in list(self.children):
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                self.children.remove(child)
                ended.append((child, status))
        if self._adopts:
            self._reap_orphans()
        return ended

    def _reap_orphans(self) -> None:
        """What jobs have started and left behind, and what has become ours because we are process 1 (or the like)."""
        own = {child.pid for child in self.children}
        with suppress(OSError):  # there is none, or the system cannot tell
            # Not those of other threads: a receiver there may have started a program, and wait for it.
            while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT | _WNOTHREAD):
                if found.si_pid in own:
                    return  # it has ended just now; its turn comes first
                os.waitpid(found.si_pid, os.WNOHANG)

    def _be_the_child(self, page: SharedState, parent: int) -> NoReturn:
        code = EXIT_FAILED
        try:
            code = self._live(page, parent)
        finally:
            os._exit(code)

    def _live(self, page: SharedState, parent: int) -> int:
        """The child, from its first line to its exit code."""
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            die_with_parent(signal.SIGKILL)
            if os.getppid() != parent:
                return EXIT_FAILED  # it was quicker
            child = Child(Broker(self._config, role="worker"), page, self._options, parent=parent)
            child.listen()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            return child.work()
        except BaseException:  # noqa: BLE001 - the top of a process
            traceback.print_exc()
            return EXIT_FAILED
        finally:
            _flush()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # it is closed, its reader has left, or there is none
            stream.flush()


def die_with_parent(signum: int) -> None:
    """Get this signal when the parent dies: nobody would renew the lease of an orphan. Linux only; see also Child."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signum, 0, 0, 0)


def _adopts_orphans() -> bool:
    """Whether processes become our children when their parent dies."""
    if os.getpid() == 1:
        return True
    answer = ctypes.c_int(0)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0)
    return answer.value != 0

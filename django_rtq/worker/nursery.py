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

from django.db import connections

from django_rtq.broker.broker import Broker
from django_rtq.conf import Config
from django_rtq.worker.child import EXIT_DONE, EXIT_RECYCLED, Child
from django_rtq.worker.crew import EXIT_FAILED
from django_rtq.worker.options import WorkerOptions
from django_rtq.worker.page import Page

_PR_SET_PDEATHSIG = 1  # prctl(2)
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)


@dataclass(slots=True, eq=False)
class ChildProcess:
    """A child as its parent sees it."""

    pid: int
    page: Page
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


class Nursery:
    """The children of one supervisor. For its main thread, but for pages()."""

    def __init__(self, config: Config, options: WorkerOptions) -> None:
        self._config = config
        self._options = options
        self.children: list[ChildProcess] = []
        self.is_quiet = False  # children claim nothing, by order

    def prepare(self) -> None:
        """Before the first fork: no connection to share, and a heap that the children need not copy to count in."""
        connections.close_all()
        gc.collect()
        gc.freeze()

    def pages(self) -> Sequence[tuple[int, Page]]:
        """Process ids and pages of the living. Any thread."""
        return [(child.pid, child.page) for child in list(self.children)]

    def fork(self) -> None:
        """One child more."""
        page = Page(self._options.concurrency)
        page.is_quiet = self.is_quiet
        parent = os.getpid()
        # Nothing of ours waits in a buffer that the child would write once more.
        sys.stdout.flush()
        sys.stderr.flush()
        # A signal that comes before the child has handlers of its own must not end up in ours.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        with warnings.catch_warnings():
            # Python warns of forks beside threads. Ours hold no lock now: the supervisor has all that they take.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            os._exit(self._live(page, parent))
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
        return ended

    def _live(self, page: Page, parent: int) -> int:
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
            sys.stdout.flush()
            sys.stderr.flush()


def die_with_parent(signum: int) -> None:
    """Get this signal when the parent dies: nobody would renew the lease of an orphan. Linux only; see also Child."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signum, 0, 0, 0)

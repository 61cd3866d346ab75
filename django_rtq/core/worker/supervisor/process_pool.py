"""Forks worker processes, reaps them, and says why they exited."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import NoReturn

from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.worker_broker import WorkerBroker, WorkerInfo
from django_rtq.core.conf.config import Config
from django_rtq.core.tasks.registry import batch_tasks
from django_rtq.core.threads import close_connection_pools, close_database_connections
from django_rtq.core.worker.options import EXIT_DONE, EXIT_FAILED, EXIT_RECYCLED, WorkerOptions
from django_rtq.core.worker.process.process import WorkerProcess, runner_class
from django_rtq.core.worker.run import make_metrics
from django_rtq.core.worker.shared_memory import CrashingClients, SharedState

_PR_SET_PDEATHSIG, _PR_GET_CHILD_SUBREAPER = 1, 37  # prctl(2)
_WNOTHREAD = 0x20000000 if sys.platform == "linux" else 0  # waitid(2)
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)


@dataclass(slots=True, eq=False)
class ChildProcess:
    """A worker process, as the supervisor sees it."""

    pid: int
    shared: SharedState
    overdue: list[str] = field(default_factory=list)  # we killed it: these jobs ignored their time limits
    terminated: list[str] = field(default_factory=list)  # we killed it: these jobs were to be terminated
    killed_at_shutdown: bool = False  # we killed it: a second signal, or the drain time was over

    def kill(self, signum: int) -> None:
        """Send a signal. Until it is reaped, its process id is not reused."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signum)

    def exited_cleanly(self, status: int) -> bool:
        """Whether it stopped by itself, and left no job running."""
        return (
            os.WIFEXITED(status) and os.WEXITSTATUS(status) in (EXIT_DONE, EXIT_RECYCLED) and not self.shared.running()
        )

    @property
    def was_killed_by_us(self) -> bool:
        """Whether the supervisor killed it."""
        return bool(self.killed_at_shutdown or self.overdue or self.terminated)

    def exit_reason(self, status: int) -> str:
        """Why it exited, as the end of a sentence."""
        if os.WIFSIGNALED(status):
            signum = os.WTERMSIG(status)
            hint = " (out of memory?)" if signum == signal.SIGKILL and not self.was_killed_by_us else ""
            return f"was killed by {signal.Signals(signum).name}{hint}"
        return f"exited with code {os.WEXITSTATUS(status)}"


class ProcessPool:
    """The worker processes of one supervisor. For its main thread, except shared_states()."""

    def __init__(self, config: Config, options: WorkerOptions) -> None:
        self._config = config
        self._options = options
        self.processes: list[ChildProcess] = []
        self.is_quiet = False  # processes are to claim nothing
        self.worker_info: Callable[[int, SharedState], WorkerInfo] = lambda pid, shared: {}  # for other people
        self.crashing_clients = CrashingClients()
        self._is_subreaper = _adopts_orphans()

    @cached_property
    def _broker(self) -> WorkerBroker:
        """For the processes, which connect it: made once, because it takes most of the time of a start."""
        return WorkerBroker(self._config, role="worker", backend=self._options.backend)

    def prepare(self) -> None:
        """Make what all processes need, and freeze the heap: garbage collection in processes then copies less of it.

        Without a collection before: it takes time, finds little, and new objects would fill the holes that it leaves in
        pages which the processes share.
        """
        runner_class(self._options.concurrency)
        _ = self._broker, _libc(), make_metrics(), SCRIPTS["sign_on"].sha, SCRIPTS["claim"].sha
        close_database_connections()
        gc.freeze()
        gc.enable()  # rtq_worker has disabled it while it started

    def shared_states(self) -> Sequence[tuple[int, SharedState]]:
        """Process id and shared memory of each running process. Any thread."""
        return [(process.pid, process.shared) for process in list(self.processes)]

    def fork(self) -> None:
        """Fork one process. Raises OSError."""
        together = max(batch_tasks.values(), default=1)
        shared = SharedState(self._options.concurrency, self.crashing_clients, together=together)
        shared.is_quiet = self.is_quiet
        pid = fork(partial(self._run_child, shared, os.getpid()), _SIGNALS, dies_by=signal.SIGKILL)
        self.processes.append(ChildProcess(pid, shared))
        self._choose_tries()

    def reap(self) -> list[tuple[ChildProcess, int]]:
        """Processes that have exited, each with its wait status."""
        exited = []
        for process in list(self.processes):
            pid, status = os.waitpid(process.pid, os.WNOHANG)
            if pid:
                self.processes.remove(process)
                exited.append((process, status))
        if exited:
            self._choose_tries()
        if self._is_subreaper:
            self._reap_orphans()
        return exited

    def _choose_tries(self) -> None:
        """Of each four processes, one claims jobs of crashing clients while others have jobs."""
        few = max(1, len(self.processes) // 4)
        for number, process in enumerate(self.processes):
            process.shared.tries_crashing = number < few

    def _reap_orphans(self) -> None:
        """Reap processes that jobs have started and left, and that are ours because we are process 1 or a subreaper."""
        pids = {process.pid for process in self.processes}
        with suppress(OSError):  # there are none, or waitid() is not available
            # Not the children of other threads: a signal receiver there may wait for a program that it has started.
            while exited := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT | _WNOTHREAD):
                if exited.si_pid in pids:
                    return  # one of ours has exited just now: the next reap() returns it
                os.waitpid(exited.si_pid, os.WNOHANG)

    def _run_child(self, shared: SharedState, parent: int) -> int:
        """The life of a process."""
        info = partial(self.worker_info, os.getpid(), shared)
        process = WorkerProcess(self._broker, shared, self._options, parent=parent, info=info)
        process.install_handlers()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        return process.run()


def fork(life: Callable[[], int], signals: Collection[int], *, dies_by: int) -> int:
    """Fork a process that calls this, and exits with the code that it returns. Returns its id. Raises OSError.

    It gets this signal when we die. `signals` are blocked in it until it has handlers of its own: with ours they would
    be lost.
    """
    parent = os.getpid()
    # The process must not share our connections, nor write our buffered output a second time.
    close_database_connections()
    close_connection_pools()
    _flush()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        with warnings.catch_warnings():
            # Python warns about forks beside threads. Our threads hold no lock that the process needs.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            _run_fork(life, parent, dies_by)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid


def _run_fork(life: Callable[[], int], parent: int, dies_by: int) -> NoReturn:
    code = EXIT_FAILED
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        kill_with_parent(dies_by)
        if os.getppid() == parent:  # else it died before prctl()
            code = life()
    except BaseException:  # noqa: BLE001 - the top of a process
        traceback.print_exc()
    finally:
        try:
            _flush()
        finally:
            os._exit(code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, a broken pipe, or None
            stream.flush()


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def kill_with_parent(signum: int) -> None:
    """Have the kernel send this signal when the parent dies: nobody renews the lease of an orphan.

    Linux only. Elsewhere a WorkerProcess checks its parent from time to time.
    """
    if sys.platform == "linux":
        _libc().prctl(_PR_SET_PDEATHSIG, signum, 0, 0, 0)


def _adopts_orphans() -> bool:
    """Whether orphaned processes become our children."""
    if os.getpid() == 1:
        return True
    answer = ctypes.c_int(0)
    if sys.platform == "linux":
        _libc().prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0)
    return answer.value != 0

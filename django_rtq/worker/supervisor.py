"""The life of a supervisor, the parent of the processes that run jobs.

1. load what the children share, then fork them
2. keep their leases (heartbeat), queue what is due (scheduler)
3. when a child dies: take back its jobs at once, and fork another
4. kill a child whose job does not heed its time limit
5. first signal: the children finish what runs; second signal, or time over: kill them, give back their jobs

It runs no job and has no database connection: nothing that a job does can keep it from its work.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

from django_rtq import logs
from django_rtq.broker.broker import Broker
from django_rtq.broker.errands import Order
from django_rtq.loop import HURRIED_STOP_SECONDS, STOP_SECONDS, Loop, stop_all
from django_rtq.scheduler.scheduler import Scheduler
from django_rtq.worker.bereavement import Bereavement
from django_rtq.worker.errands import Errands
from django_rtq.worker.heartbeat import Heartbeat
from django_rtq.worker.nursery import ChildProcess, Nursery
from django_rtq.worker.options import WorkerOptions
from django_rtq.worker.watchdog import Watchdog

logger = logging.getLogger("django_rtq")

LOOK_SECONDS = 0.5  # between two looks at the time limits of jobs
MOST_FALSE_STARTS = 10  # children in a row that died before they asked for work

EXIT_OK, EXIT_CANNOT_START = 0, 1


class Supervisor:
    """One `rtq_worker`. run() needs the main thread, because of the signals."""

    def __init__(self, broker: Broker, options: WorkerOptions) -> None:
        self._options = options
        self._nursery = Nursery(broker.config, options)
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._bereavement = Bereavement(broker, options.queues, self._wake)
        self._errands = Errands(broker, options, self._nursery.pages, self._wake)
        heartbeat = Heartbeat(
            broker,
            options.queues,
            self._nursery.pages,
            promotes=options.scheduler,
            supervisor=self._errands.supervisor,
            tell_asked=self._errands.tell,
        )
        watchdog = Watchdog(broker, options.queues, self._nursery.pages)
        self._loops: list[Loop] = [heartbeat, self._errands, self._bereavement, watchdog]
        if options.scheduler:
            self._loops.append(Scheduler(broker, options.queues))
        self._signals: list[int] = []
        self._drain_until: float | None = None
        self._false_starts = 0

    def run(self) -> int:
        """Work until told to stop, or until a burst is over. Returns the exit code."""
        with self._listening():
            logs.connect()
            logger.info("worker %s starts: %s", self._options.name, _describe(self._options))
            self._nursery.prepare()
            for _ in range(self._options.processes):
                self._fork()
            for loop in self._loops:
                loop.start()
            try:
                code = self._watch()
            finally:
                stop_all(self._loops, seconds=self._stop_seconds())
            logger.info("worker %s has stopped", self._options.name)
            return code

    def _watch(self) -> int:
        while self._nursery.children or self._bereavement.is_pending:
            self._sleep(LOOK_SECONDS)
            for child, status in self._nursery.reap():
                self._lost(child, status)
            self._kill_overdue()
            self._heed_people()
            self._heed_signals()
            if self._false_starts >= MOST_FALSE_STARTS:
                logger.error("worker %s gives up: its processes die before they ask for work", self._options.name)
                self._kill_all()
                return EXIT_CANNOT_START
        return self._exit_code()

    # -- children

    def _fork(self) -> None:
        with ExitStack() as stack:
            for loop in self._loops:  # no child inherits a half-done round trip
                stack.enter_context(loop.busy)
            self._nursery.fork()

    def _lost(self, child: ChildProcess, status: int) -> None:
        if child.is_well_over(status):
            self._bereavement.add(child.page, guilty=[])
            if self._wants_successor(child, status):
                self._fork()
            return
        jobs_done, claimed_at = child.page.notes()
        self._false_starts = 0 if claimed_at else self._false_starts + 1
        overdue = child.overdue
        # Who was killed by us for a time limit, or because time is up, did nothing wrong. But what may run
        # only once is not given back half done.
        guilty = child.page.started_once() if child.was_killed_by_us else child.page.started()
        logger.log(
            logging.WARNING if child.is_given_up or child.terminated else logging.ERROR,
            "process %d of worker %s %s after %d jobs; it was running: %s",
            child.pid, child.page.worker, child.cause_of_death(status), jobs_done,
            ", ".join(child.page.started()) or "nothing",
        )  # fmt: skip
        self._bereavement.add(child.page, guilty=guilty, overdue=overdue)
        if not self._is_draining:
            if self._false_starts:
                self._sleep(min(0.1 * 2**self._false_starts, 5.0))
            self._fork()

    def _wants_successor(self, child: ChildProcess, status: int) -> bool:
        if self._is_draining or self._signals:
            return False
        # One that left unasked, and not because a burst is over, was told to by somebody else.
        return child.is_old(status) or not self._options.burst

    def _kill_overdue(self) -> None:
        now = time.monotonic()
        for child in self._nursery.children:
            overdue = child.page.overdue(now)
            if overdue and not child.overdue:
                child.overdue = overdue
                logger.error("process %d is killed: job %s does not heed its time limit", child.pid, ", ".join(overdue))
                child.kill(signal.SIGKILL)

    def _heed_people(self) -> None:
        if self._errands.order is Order.STOP and not self._signals:
            self._signals.append(signal.SIGTERM)
        is_quiet = self._errands.order is Order.QUIET
        if is_quiet is not self._nursery.is_quiet:
            self._nursery.is_quiet = is_quiet
            logger.info(
                "worker %s %s", self._options.name, "is quiet: it claims nothing" if is_quiet else "works again"
            )
        for child in self._nursery.children:
            if child.page.is_quiet is not is_quiet:
                child.page.is_quiet = is_quiet
                child.kill(signal.SIGUSR1)
            self._errands.stop_jobs(child)

    def _kill_all(self) -> None:
        for child in self._nursery.children:
            child.is_given_up = True
            child.kill(signal.SIGKILL)

    # -- signals

    @property
    def _is_draining(self) -> bool:
        return self._drain_until is not None

    def _heed_signals(self) -> None:
        if self._signals and not self._is_draining:
            self._drain_until = time.monotonic() + self._options.drain_seconds
            logger.info(
                "worker %s stops: running jobs have %g s; a second signal gives them back at once",
                self._options.name, self._options.drain_seconds,
            )  # fmt: skip
        if self._is_draining:
            for child in self._nursery.children:
                child.kill(signal.SIGTERM)
        is_over = self._drain_until is not None and time.monotonic() >= self._drain_until
        if is_over or len(self._signals) > 1:
            self._kill_all()

    def _stop_seconds(self) -> float:
        """How long the ticks that run may take to end."""
        is_hurried = len(self._signals) > 1 or any(loop.is_hanging for loop in self._loops)
        return HURRIED_STOP_SECONDS if is_hurried else STOP_SECONDS

    def _exit_code(self) -> int:
        return 128 + self._signals[1] if len(self._signals) > 1 else EXIT_OK

    def _listening(self) -> ExitStack:
        """Handlers that take note and wake us, until the stack is closed."""
        stack = ExitStack()
        for end in (self._wake_reader, self._wake_writer):
            end.setblocking(False)
            stack.callback(end.close)
        before = signal.set_wakeup_fd(self._wake_writer.fileno(), warn_on_full_buffer=False)
        stack.callback(signal.set_wakeup_fd, before)

        def note(signum: int, frame: object) -> None:
            self._signals.append(signum)

        handlers: dict[int, Callable[[int, object], None]] = {
            signal.SIGTERM: note,
            signal.SIGINT: note,
            signal.SIGCHLD: lambda signum, frame: None,
        }
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # the terminal was closed, and there is no nohup
            handlers[signal.SIGHUP] = note
        for signum, handler in handlers.items():
            stack.callback(signal.signal, signum, signal.signal(signum, handler))
        return stack

    def _wake(self) -> None:
        """End a sleep, from another thread."""
        with suppress(OSError):  # it is awake, or over
            self._wake_writer.send(b"\0")

    def _sleep(self, seconds: float) -> None:
        """Until a signal comes, a child's death among them, or for so long."""
        ready, _, _ = select.select([self._wake_reader], [], [], seconds)
        if ready:
            with suppress(BlockingIOError):
                while self._wake_reader.recv(4096):
                    pass


def _describe(options: WorkerOptions) -> str:
    parts = [f"queues {', '.join(options.queues)}", f"{options.processes} process(es) of {options.concurrency} slot(s)"]
    if options.burst:
        parts.append("until the queues are empty")
    return f"{'; '.join(parts)}; Python {sys.version_info.major}.{sys.version_info.minor}, pid {os.getpid()}"

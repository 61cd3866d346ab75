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
import signal
import sys
import time

from django_rtq import logs
from django_rtq.broker.broker import Broker
from django_rtq.broker.control import WorkerCommand
from django_rtq.loop import Loop, pause_loops, stop_all
from django_rtq.scheduler.scheduler import Scheduler
from django_rtq.worker.exit_codes import EXIT_CANNOT_START, EXIT_OK
from django_rtq.worker.options import WorkerOptions
from django_rtq.worker.supervisor.control import ControlListener
from django_rtq.worker.supervisor.crash_recovery import CrashRecovery
from django_rtq.worker.supervisor.fork_schedule import ForkSchedule
from django_rtq.worker.supervisor.heartbeat import Heartbeat
from django_rtq.worker.supervisor.process_pool import ChildProcess, ProcessPool
from django_rtq.worker.supervisor.wakeup import Wakeup
from django_rtq.worker.supervisor.watchdog import Watchdog

logger = logging.getLogger("django_rtq")

LOOK_SECONDS = 0.5  # between two looks at the time limits of jobs
SHORT_LOOK_SECONDS = 0.05  # while a fork waits
REST_SECONDS = 0.1  # for which a fork waits at a time; nothing else is done meanwhile


class Supervisor:
    """One `rtq_worker`. run() needs the main thread, because of the signals; that thread never waits for Redis."""

    def __init__(self, broker: Broker, options: WorkerOptions) -> None:
        self._options = options
        self._process_pool = ProcessPool(broker.config, options)
        self._fork_schedule = ForkSchedule(options.processes)
        self._wakeup = Wakeup()
        self._crash_recovery = CrashRecovery(broker, options.queues, self._wakeup.wake)
        self._control = ControlListener(broker, options, self._process_pool.pages, self._wakeup.wake)
        self._heartbeat = Heartbeat(
            broker,
            options.queues,
            self._process_pool.pages,
            promotes=options.scheduler,
            supervisor=self._control.supervisor,
            tell_asked=self._control.tell,
        )
        watchdog = Watchdog(broker, options.queues, self._process_pool.pages)
        self._loops: list[Loop] = [self._heartbeat, self._control, self._crash_recovery, watchdog]
        if options.scheduler:
            self._loops.append(Scheduler(broker, options.queues))
        self._drain_until: float | None = None
        self._has_given_up = False

    def run(self) -> int:
        """Work until told to stop, or until a burst is over. Returns the exit code."""
        with self._wakeup.listening():
            logs.connect()
            logger.info("worker %s starts: %s", self._options.name, _describe(self._options))
            self._process_pool.prepare()
            self._fork_missing()
            for loop in self._loops:
                loop.start()
            try:
                self._watch()
            finally:
                stop_all(self._loops, is_urgent=len(self._signals) > 1)
            logger.info("worker %s has stopped", self._options.name)
            return self._exit_code()

    def _watch(self) -> None:
        while self._process_pool.children or self._fork_schedule.count or self._crash_recovery.is_pending:
            self._wakeup.sleep(SHORT_LOOK_SECONDS if self._fork_schedule.are_due else LOOK_SECONDS)
            for child, status in self._process_pool.reap():
                self._lost(child, status)
            self._kill_overdue()
            self._heed_people()
            self._heed_signals()
            self._fork_missing()

    # -- children

    def _fork_missing(self) -> None:
        # A signal that came just now stops these as well: whoever is forked would only have to be told.
        while self._fork_schedule.are_due and not self._signals and self._fork():
            pass

    def _fork(self) -> bool:
        """Fork one child, if that can be done now."""
        with pause_loops(self._loops, seconds=REST_SECONDS) as are_all_paused:
            # A child that inherits a lock from a thread that it has not would wait for it for ever. But a tick
            # that takes so long waits for Redis, and has no lock that a child would need.
            if not are_all_paused and not self._fork_schedule.has_waited():
                return False
            try:
                self._process_pool.fork()
            except OSError as error:
                logger.error("worker %s cannot fork a process, and tries again: %s", self._options.name, error)
                self._fork_schedule.refused()
                return False
        self._fork_schedule.filled()
        self._heartbeat.interrupt()  # it does not know the child yet
        return True

    def _lost(self, child: ChildProcess, status: int) -> None:
        if child.is_well_over(status):
            self._crash_recovery.add(child.page, guilty=[])
            # One that left unasked, and not because a burst is over, was told to by somebody else.
            if child.is_old(status) or not self._options.burst:
                self._fork_schedule.open()
            return
        jobs_done, claimed_at = child.page.notes()
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
        self._crash_recovery.add(child.page, guilty=guilty, overdue=overdue)
        self._fork_schedule.note_death(has_worked=claimed_at > 0, answered_at=self._heartbeat.last_success_at)
        self._fork_schedule.open()

    def _kill_overdue(self) -> None:
        now = time.monotonic()
        for child in self._process_pool.children:
            overdue = child.page.overdue(now)
            if overdue and not child.overdue:
                child.overdue = overdue
                logger.error("process %d is killed: job %s does not heed its time limit", child.pid, ", ".join(overdue))
                child.kill(signal.SIGKILL)

    def _heed_people(self) -> None:
        if self._control.order is WorkerCommand.STOP and not self._signals:
            self._signals.append(signal.SIGTERM)
        is_quiet = self._control.order is WorkerCommand.QUIET
        if is_quiet is not self._process_pool.is_quiet:
            self._process_pool.is_quiet = is_quiet
            logger.info(
                "worker %s %s", self._options.name, "is quiet: it claims nothing" if is_quiet else "works again"
            )
        for child in self._process_pool.children:
            if child.page.is_quiet is not is_quiet:
                child.page.is_quiet = is_quiet
                child.kill(signal.SIGUSR1)
            self._control.stop_jobs(child)

    # -- stopping

    @property
    def _signals(self) -> list[int]:
        return self._wakeup.received

    @property
    def _is_draining(self) -> bool:
        return self._drain_until is not None

    def _heed_signals(self) -> None:
        if self._signals and not self._is_draining:
            logger.info(
                "worker %s stops: running jobs have %g s; a second signal gives them back at once",
                self._options.name, self._options.drain_seconds,
            )  # fmt: skip
            self._drain()
        if self._fork_schedule.are_hopeless and not self._is_draining:
            logger.error("worker %s gives up: its processes die before they ask for work", self._options.name)
            self._has_given_up = True
            self._drain()
        if self._is_draining:
            self._fork_schedule.close()
            for child in self._process_pool.children:
                child.kill(signal.SIGTERM)
        is_over = self._drain_until is not None and time.monotonic() >= self._drain_until
        if is_over or len(self._signals) > 1:
            self._kill_all()

    def _drain(self) -> None:
        self._drain_until = time.monotonic() + self._options.drain_seconds

    def _kill_all(self) -> None:
        for child in self._process_pool.children:
            child.is_given_up = True
            child.kill(signal.SIGKILL)

    def _exit_code(self) -> int:
        if len(self._signals) > 1:
            return 128 + self._signals[1]
        return EXIT_CANNOT_START if self._has_given_up else EXIT_OK


def _describe(options: WorkerOptions) -> str:
    parts = [f"queues {', '.join(options.queues)}", f"{options.processes} process(es) of {options.concurrency} slot(s)"]
    if options.burst:
        parts.append("until the queues are empty")
    return f"{'; '.join(parts)}; Python {sys.version_info.major}.{sys.version_info.minor}, pid {os.getpid()}"

"""The supervisor: the parent of the worker processes, which run the jobs.

1. load the code that the processes share, then fork them
2. renew their leases (heartbeat), queue due jobs (scheduler)
3. when a process dies: reclaim its jobs at once, and fork a replacement
4. kill a process whose job ignores its time limit
5. at the first signal: let running jobs finish; at a second one, or after the drain time: kill the processes and give
   their jobs back (D13)

The main thread never waits for Redis (D52).

It runs no jobs, so a job cannot block it. Only the relay of an outbox opens database connections, in its own thread
and for one tick each.
"""

from __future__ import annotations

import logging
import math
import os
import secrets
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from django_rtq.core import logs
from django_rtq.core.broker.control import WorkerCommand
from django_rtq.core.broker.redis.blocking_reader import BlockingReader
from django_rtq.core.broker.redis.commands import Argument
from django_rtq.core.broker.task_backends import shard_of
from django_rtq.core.broker.worker_broker import CancelRequests, WorkerBroker
from django_rtq.core.jobs.job import about_jobs
from django_rtq.core.scheduler.scheduler import scheduler_loops
from django_rtq.core.threads import Loop, pause_loops, stop_all
from django_rtq.core.worker.operating_system import stop_signals
from django_rtq.core.worker.options import EXIT_CANNOT_START, EXIT_OK, EXIT_RECYCLED, WorkerOptions
from django_rtq.core.worker.shared_memory import Revoked
from django_rtq.core.worker.supervisor.crash_recovery import STOP_REPLY_TIMEOUT_SECONDS, CrashRecovery
from django_rtq.core.worker.supervisor.fork_schedule import ForkSchedule
from django_rtq.core.worker.supervisor.heartbeat import Heartbeat, LiveProcesses
from django_rtq.core.worker.supervisor.process_pool import ChildProcess, ProcessPool
from django_rtq.core.worker.supervisor.watchdog import Watchdog

TOUCH_SECONDS = 2.0  # between two touches of the health file
logger = logging.getLogger("django_rtq")

CHECK_SECONDS = 0.5  # between two checks of time limits
DOZE_SECONDS = 15.0  # the same at most while no job runs: a process that claims jobs wakes the main thread
FORK_CHECK_SECONDS = 0.05  # the same, while a fork is due
MAX_CONTROL_SECONDS = 60.0  # between two checks whether the connection of the control leads to the master
PAUSE_SECONDS = 0.1  # how long one try to fork waits for the loops to pause; it blocks the main thread


class Wakeup:
    """The sleep of the main thread, ended by signals, exits of processes and other threads. Collects stop signals."""

    def __init__(self) -> None:
        self.signals: list[int] = []  # stop signals, in the order of their arrival
        self._reader, self._writer = socket.socketpair()

    def install_handlers(self) -> ExitStack:
        """Install the signal handlers until the stack is closed."""
        stack = ExitStack()
        for end in (self._reader, self._writer):
            end.setblocking(False)
            stack.callback(end.close)
        before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        stack.callback(signal.set_wakeup_fd, before)

        def note(signum: int, frame: object) -> None:
            if signum != signal.SIGCHLD:
                self.signals.append(signum)

        for signum in (*stop_signals(), signal.SIGCHLD):
            stack.callback(signal.signal, signum, signal.signal(signum, note))
        return stack

    def wake(self) -> None:
        """End a sleep. Any thread."""
        with suppress(OSError):  # the buffer is full, so it wakes anyway; or it is closed
            self._writer.send(b"\0")

    def sleep(self, seconds: float) -> bool:
        """Sleep for so long, or until a signal (SIGCHLD as well) or wake(). Returns whether it was woken."""
        ready, _, _ = select.select([self._reader], [], [], seconds)
        if ready:
            with suppress(BlockingIOError):
                while self._reader.recv(4096):
                    pass
        return bool(ready)


class HealthFile:
    """The file that rtq_worker touches while it lives, for probes. Main thread only. Does nothing without a path.

    Whether Redis answers does not matter: a probe would restart all workers, and a restart does not mend Redis.
    """

    def __init__(self, path: str, *, pool: ProcessPool, forks: ForkSchedule) -> None:
        self._path = Path(path) if path else None
        self._pool, self._forks = pool, forks
        self._next_touch = 0.0  # time.monotonic()
        self._has_failed = False

    def update(self) -> None:
        """Touch the file, every few seconds, if all processes are there, and none is frozen."""
        now, processes = time.monotonic(), self._pool.processes
        if self._path is None or now < self._next_touch or not processes or self._forks.pending:
            return
        if any(process.shared.revoked is Revoked.ALL for process in processes):
            return
        self._next_touch = now + TOUCH_SECONDS
        try:
            self._path.touch()
        except OSError as error:
            if not self._has_failed:
                logger.warning("the health file %s cannot be written: %s", self._path, error)
            self._has_failed = True

    def remove(self) -> None:
        """Delete the file: at the start, where a killed worker may have left it, and at the end."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()


class ControlListener(Loop):
    """Remote control: cancel requests for jobs of the supervisor, and the commands quiet, work and stop.

    Its thread waits for a control signal: a blocking read in Redis. Then it reads the requests and the command, and
    wakes the main thread, which applies them. A control signal may get lost: they are stored in Redis, and the
    heartbeat reads the requests as well.
    """

    name = "control"

    def __init__(
        self, broker: WorkerBroker, options: WorkerOptions, processes: LiveProcesses, wake: Callable[[], None]
    ) -> None:
        super().__init__()
        self.supervisor = f"{options.name}:{os.getpid()}:{secrets.token_hex(4)}"
        self.command: WorkerCommand | None = None
        self._commanded_by, self._commanded_at = "", 0.0  # who sent it, and when it came, on time.monotonic()
        # One for each thread that asks Redis: a late reply to one does not revert what the other has read since.
        self._polled: CancelRequests = {}
        self._from_heartbeat: CancelRequests = {}
        self._broker = broker
        self._queues = options.queues
        self._processes = processes
        self._wake = wake
        self._reader = BlockingReader(
            broker.connection_settings,
            [broker.keys.control_signal(self.supervisor)],
            role="control",
        )

    def tick(self) -> float:
        """Read the command and the cancel requests."""
        workers = [shared.worker for _, shared in self._processes() if shared.worker]
        text, requests = self._broker.read_commands(self.supervisor, self._queues, workers)
        command, _space, by = text.partition(" ")
        if command and command != self.command:
            self.command, self._commanded_by, self._commanded_at = WorkerCommand(command), by, time.monotonic()
            self._wake()
        self._polled = requests
        if requests:
            self._wake()
        return 0.0

    def info(self) -> dict[str, Argument]:
        """Where to leave commands; for how long the processes have been told to be quiet, and by whom, if they are."""
        info: dict[str, Argument] = {"supervisor_name": self.supervisor}
        if self.command is WorkerCommand.QUIET:
            info["quiet_seconds"] = f"{time.monotonic() - self._commanded_at:.0f}"
            info["quiet_by"] = self._commanded_by
        return info

    def on_cancel_requests(self, requests: CancelRequests) -> None:
        """Take the cancel requests that the heartbeat has read."""
        self._from_heartbeat = requests
        if requests:
            self._wake()

    def wait(self, seconds: float) -> None:
        """Block until a control signal."""
        while not self._stopped.is_set() and not self._reader.wait(MAX_CONTROL_SECONDS, is_exact=False):
            pass

    def interrupt(self) -> None:
        """End the blocking read, and so the thread."""
        self._reader.interrupt()

    def close(self) -> None:
        self._reader.close()

    def cancel_jobs(self, process: ChildProcess) -> None:
        """Pass on cancel requests, or kill the process to terminate a job. Repeated: a job may just have started."""
        polled, from_heartbeat = self._polled, self._from_heartbeat
        for job_id in process.shared.running() if polled or from_heartbeat else ():
            job = (process.shared.worker, job_id)
            modes = (polled.get(job), from_heartbeat.get(job))
            if "terminate" in modes and job_id not in process.terminated:
                process.terminated.append(job_id)
                extra = about_jobs([job_id])
                logger.warning("process %d killed: job %s is to be terminated", process.pid, job_id, extra=extra)
                process.kill(signal.SIGKILL)
            elif "ask" in modes and job_id not in process.terminated:
                process.shared.request_cancel(job_id)
                process.kill(signal.SIGUSR1)


class Supervisor:
    """One `rtq_worker`. run() needs the main thread, for signal handlers. That thread never waits for Redis."""

    def __init__(self, broker: WorkerBroker, options: WorkerOptions) -> None:
        self._options = options
        self._process_pool = ProcessPool(broker.config, options)
        self._fork_schedule = ForkSchedule(options.processes)
        self._wakeup = Wakeup()
        self._signals = self._wakeup.signals
        note_crash = self._process_pool.crashing_clients.note_crash
        self._crash_recovery = CrashRecovery(broker, options.queues, self._wakeup.wake, note_crash)
        self._control = ControlListener(broker, options, self._process_pool.shared_states, self._wakeup.wake)
        self._heartbeat = Heartbeat(
            broker,
            options.queues,
            self._process_pool.shared_states,
            promotes=options.scheduler,
            on_cancel_requests=self._control.on_cancel_requests,
            supervisor_info=self._control.info,
        )
        self._heartbeat.on_mismatch = self._wakeup.wake
        self._process_pool.worker_info = self._heartbeat.worker_info
        self._health_file = HealthFile(options.health_file, pool=self._process_pool, forks=self._fork_schedule)
        self._watchdog = Watchdog(broker, options.queues, self._process_pool.shared_states)
        self._loops: list[Loop] = [self._heartbeat, self._control, self._crash_recovery, self._watchdog]
        if options.scheduler:
            self._loops += scheduler_loops(broker, options.queues)
        self._drain_until: float | None = None
        self._cannot_start = False
        self._idle_since = math.inf  # time.monotonic() of the first of the last checks that saw no job run

    def run(self) -> int:
        """Run until a stop signal or command, or the end of a burst. Returns the exit code.

        Raises BrokerError, before it starts, for what waiting for Redis does not fix.
        """
        self._heartbeat.begin()
        with self._wakeup.install_handlers():
            logs.connect()
            logger.info("worker %s starting: %s", self._options.name, _describe(self._options))
            self._process_pool.prepare()
            self._health_file.remove()
            self._fork_missing()
            for loop in self._loops:
                loop.start()
            try:
                self._main_loop()
            finally:
                self._health_file.remove()
                stop_all(self._loops, is_urgent=len(self._signals) > 1 or not self._crash_recovery.is_done)
            logger.info("worker %s stopped", self._options.name)
            if len(self._signals) > 1:
                return 128 + self._signals[1]
            return EXIT_CANNOT_START if self._cannot_start else EXIT_OK

    def _main_loop(self) -> None:
        while self._process_pool.processes or self._fork_schedule.pending or self._crash_recovery.is_pending:
            self._note_idle(was_woken=self._wakeup.sleep(self._check_seconds()))
            for process, status in self._process_pool.reap():
                self._on_exit(process, status)
            self._kill_overdue()
            self._watchdog.wake_if_busy()
            self._apply_commands()
            self._handle_signals()
            self._fork_missing()
            self._heartbeat.tell_crash_loop(self._fork_schedule.crash_loop)
            self._health_file.update()

    def _check_seconds(self) -> float:
        """How long the main thread may sleep."""
        if self._drain_until is None:
            longest = TOUCH_SECONDS if self._options.health_file else DOZE_SECONDS
            idle_seconds = max(CHECK_SECONDS, min(longest, time.monotonic() - self._idle_since))
            return min(idle_seconds, max(FORK_CHECK_SECONDS, self._fork_schedule.seconds))
        # Once the processes are killed, only Redis is waited for.
        left = self._drain_until - time.monotonic() if self._process_pool.processes else 0.0
        return min(CHECK_SECONDS, max(FORK_CHECK_SECONDS, left))

    def _note_idle(self, *, was_woken: bool) -> None:
        """If no job runs, tell processes to wake this thread when they claim some. A process that looked before it was
        told has until the next check to run its job: it comes after as long a time as it has been idle."""
        processes = self._process_pool.processes
        has_work = self._fork_schedule.pending or any(process.shared.is_running for process in processes)
        is_idle = not was_woken and not has_work
        self._idle_since = min(self._idle_since, time.monotonic()) if is_idle else math.inf
        for process in processes:
            process.shared.is_supervisor_dozing = is_idle

    # -- processes

    def _fork_missing(self) -> None:
        # After a stop signal nothing is forked: it would have to be stopped again. In a burst a new process waits until
        # the jobs of a crashed one are queued again: it would find nothing, and end the burst without them.
        while self._fork_schedule.is_due and not self._signals:
            if (self._options.burst and not self._crash_recovery.is_done) or not self._fork():
                return

    def _fork(self) -> bool:
        """Fork one process, if that is possible now. Returns whether it was."""
        with pause_loops(self._loops, seconds=PAUSE_SECONDS) as are_all_paused:
            # A fork copies locks but no threads: what another thread has locked stays locked in the new process.
            # But a tick that takes very long waits for Redis, and holds no lock that the process needs.
            if not are_all_paused and not self._fork_schedule.waited_long_enough():
                return False
            try:
                self._process_pool.fork()
            except OSError as error:
                logger.error("worker %s cannot fork a process, retrying: %s", self._options.name, error)
                self._fork_schedule.on_fork_failed()
                return False
        self._fork_schedule.on_forked()
        self._heartbeat.interrupt()  # its lease has to be renewed from the start
        return True

    def _on_exit(self, process: ChildProcess, status: int) -> None:
        if process.exited_cleanly(status):
            self._crash_recovery.add(process.shared, crashed=[])
            # Without a burst, it exited because somebody else sent it a SIGTERM.
            if os.WEXITSTATUS(status) == EXIT_RECYCLED or not self._options.burst:
                self._fork_schedule.add()
            return
        # In a process that we killed, for a time limit or at the end of the drain time, no job counts a crash, except
        # jobs with max_crashes=0 that have started: these must not run again.
        crashed = process.shared.running_once() if process.was_killed_by_us else process.shared.running()
        _log_death(process, status)
        committed = process.shared.committed()  # neither failed nor crashed: the next run finds their rows
        self._crash_recovery.add(
            process.shared,
            crashed=[job_id for job_id in crashed if job_id not in committed],
            overdue=[job_id for job_id in process.overdue if job_id not in committed],
            blamed=process.overdue if process.was_killed_by_us else crashed,
        )
        if process.was_killed_by_us:
            self._fork_schedule.add()
            return
        shared, reason = process.shared, process.exit_reason(status)
        jobs_done, claimed_at = shared.last_claim()
        was_loop = self._fork_schedule.crash_loop
        self._fork_schedule.on_crash(
            reason,
            lived_seconds=time.monotonic() - shared.made_at,
            has_claimed=claimed_at > 0,
            has_run=bool(jobs_done or shared.running() or shared.finished()),
            redis_answered_at=self._heartbeat.last_success_at,
        )
        if self._fork_schedule.crash_loop and not was_loop:
            logger.error(
                "worker %s: processes keep crashing before they run a job (%s); replacements are delayed, each time "
                "for longer",
                self._options.name, reason,
            )  # fmt: skip

    def _kill_overdue(self) -> None:
        now = time.monotonic()
        for process in self._process_pool.processes:
            overdue = process.shared.overdue(now)
            if overdue and not process.overdue:
                process.overdue = overdue
                logger.error(
                    "process %d killed: job %s ignores its time limit", process.pid, ", ".join(overdue),
                    extra=about_jobs(overdue),
                )  # fmt: skip
                process.kill(signal.SIGKILL)

    def _apply_commands(self) -> None:
        if self._control.command is WorkerCommand.STOP and not self._signals:
            self._signals.append(signal.SIGTERM)
        is_quiet = self._control.command is WorkerCommand.QUIET
        if is_quiet is not self._process_pool.is_quiet:
            self._process_pool.is_quiet = is_quiet
            logger.info(
                "worker %s %s",
                self._options.name,
                "is quiet: it claims no more jobs" if is_quiet else "claims jobs again",
            )
        for process in self._process_pool.processes:
            if process.shared.is_quiet is not is_quiet:
                process.shared.is_quiet = is_quiet
                process.kill(signal.SIGUSR1)
            self._control.cancel_jobs(process)

    # -- stopping

    def _handle_signals(self) -> None:
        if self._drain_until is None:
            if not self._must_stop():
                return
            self._drain_until = time.monotonic() + self._options.drain_seconds
        self._fork_schedule.clear()
        for process in self._process_pool.processes:
            process.kill(signal.SIGTERM)
        if time.monotonic() >= self._drain_until or len(self._signals) > 1:
            self._crash_recovery.reply_timeout_seconds = STOP_REPLY_TIMEOUT_SECONDS
            for process in self._process_pool.processes:
                process.killed_at_shutdown = True
                process.kill(signal.SIGKILL)

    def _must_stop(self) -> bool:
        """Whether there is a reason to stop, which is logged."""
        if self._signals:
            logger.info(
                "worker %s stopping: running jobs have %g s to finish; a second signal gives them back at once",
                self._options.name, self._options.drain_seconds,
            )  # fmt: skip
            return True
        if self._fork_schedule.should_give_up:
            logger.error("worker %s gives up: its processes die before they claim jobs", self._options.name)
            self._cannot_start = True
        elif self._heartbeat.mismatch:
            logger.error("worker %s stops: %s", self._options.name, self._heartbeat.mismatch)
            self._cannot_start = True
        return self._cannot_start


def _describe(options: WorkerOptions) -> str:
    parts = [f"queues {', '.join(options.queues)}", f"{options.processes} process(es) of {options.concurrency} slot(s)"]
    if options.backend or shard_of("") is not None:
        shard = shard_of(options.backend)
        parts.append(f"backend {options.backend}" if shard is None else f"shard {shard}")
    if options.burst:
        parts.append("burst: until the queues are empty")
    return f"{'; '.join(parts)}; Python {sys.version_info.major}.{sys.version_info.minor}, pid {os.getpid()}"


def _log_death(process: ChildProcess, status: int) -> None:
    shared, is_expected = process.shared, process.killed_at_shutdown or process.terminated
    logger.log(
        logging.WARNING if is_expected else logging.ERROR,
        "process %d of worker %s %s; jobs run before: %d; running then: %s",
        process.pid, shared.worker, process.exit_reason(status), shared.last_claim()[0],
        ", ".join(shared.running()) or "nothing", extra=about_jobs(shared.running()),
    )  # fmt: skip

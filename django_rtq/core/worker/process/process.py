"""The worker process: claims jobs and runs them.

1. sign on
2. settle finished jobs and claim the next ones, in one round trip
3. run them; if there are none, block until there is work: the wait and the claim are one packet (D43)
4. at a stop signal, or when the process is to be replaced: settle, release jobs that have not started, sign off

While Redis is unreachable it retries. What it finishes meanwhile is settled afterwards.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from django_rtq.core import signals
from django_rtq.core.broker.redis.blocking_reader import BlockingReader
from django_rtq.core.broker.worker_broker import ClaimResult, WorkerBroker, WorkerInfo
from django_rtq.core.extension import parts, required
from django_rtq.core.tasks import registry
from django_rtq.core.threads import ReconnectDelay, log_trouble
from django_rtq.core.worker.operating_system import ignore_signal, install_handlers, memory_bytes
from django_rtq.core.worker.options import EXIT_DONE, EXIT_RECYCLED, WorkerOptions
from django_rtq.core.worker.process.running.batch import MAX_ACK_DELAY_SECONDS
from django_rtq.core.worker.process.running.runner import Runner, exit_out_of_memory
from django_rtq.core.worker.process.session import WorkerSession
from django_rtq.core.worker.run import Run, runs_of
from django_rtq.core.worker.shared_memory import SharedState
from django_rtq.exceptions import BrokerError

logger = logging.getLogger("django_rtq")
T = TypeVar("T")

IDLE_SECONDS = 5.0  # between two signs of life; while jobs run, also between two claims, should a work signal get lost
MAX_SETTLE_TRIES = 3  # to release jobs that have not started, before it exits
_SLICE_SECONDS = 0.1
_MAX_PAUSE_SECONDS = 0.5  # between two tries to settle, before it exits


def runner_class(slots: int) -> type[Runner]:
    """What runs one job at a time in the main thread, or several in threads."""
    if slots == 1:
        return Runner
    from django_rtq.core.worker.process.running.threaded_runner import ThreadedRunner  # most workers have one slot

    return ThreadedRunner


class WorkSignalReader(BlockingReader):
    """Takes work signals. Each is there for one idle worker: who takes it and does other work has to put it back."""

    def __init__(self, broker: WorkerBroker, queues: Sequence[str], *, on_connect: Callable[[], None]) -> None:
        self._broker = broker
        self._queues = {broker.keys.of(queue).work_signal: queue for queue in queues}
        super().__init__(broker.connection_settings, list(self._queues), role="worker-wait", on_connect=on_connect)

    def return_signal(self, fetched: ClaimResult, queues: Sequence[str]) -> None:
        """Put back the signal that was taken last, if the claim from these queues did not come to its queue."""
        key, self.token_key = self.token_key, None
        if key is not None and fetched.claimed:
            queue, last = self._queues[key], fetched.claimed[-1].queue
            if queues.index(queue) > queues.index(last):
                with suppress(BrokerError):  # the next heartbeat sets it, too
                    self._broker.return_work_signal(queue)

    def leave(self) -> None:
        """Stop waiting: leave signals to other workers, also one that has just come."""
        with suppress(BrokerError):
            if self.is_waiting and self.wait(0) and self.token_key is not None:
                self._broker.return_work_signal(self._queues[self.token_key])
        self.token_key = None
        self.close()


class _Wake(BaseException):
    """Raised by a signal handler to end a blocking wait, and at no other time."""


class WorkerProcess:
    """Runs jobs until it has to stop. Uses the main thread; the runner and the session have their own threads."""

    def __init__(
        self,
        broker: WorkerBroker,
        shared: SharedState,
        options: WorkerOptions,
        *,
        parent: int,
        info: Callable[[], WorkerInfo] = dict,
    ) -> None:
        self._broker = broker
        self._shared = shared
        self._options = options
        self._parent = parent
        self._session = WorkerSession(broker, shared, options.queues, base_name=options.name, info=info)
        self._runner = runner_class(options.concurrency)(broker.config, shared, self._session)
        # Between two signs of life: well within a lease.
        self._longest_seconds = min(IDLE_SECONDS, broker.config.lease_seconds / 3)
        self._reader = WorkSignalReader(broker, options.queues, on_connect=self._session.reconcile_soon)
        # A replica may be promoted meanwhile, where the master may move.
        self._backoff = ReconnectDelay(5.0 if broker.connection_settings.service is None else 1.0)
        self._is_stopping = False
        self._is_waiting = False
        self._jobs_done = 0
        self._gatherer: Any = None

    def install_handlers(self) -> None:
        """Install the signal handlers. The runner restores them after jobs that replace them."""
        self._runner.handlers = [
            (signal.SIGTERM, self.on_stop_signal),
            (signal.SIGUSR1, self.on_control_signal),
            (signal.SIGINT, ignore_signal),  # Ctrl-C signals the whole process group; the supervisor sends SIGTERM
        ]
        install_handlers(self._runner.handlers)

    def on_stop_signal(self, signum: int = 0, frame: object = None) -> None:
        """Signal handler: claim no more jobs. Sets a flag, and ends a wait.

        The supervisor sends the signal repeatedly: an exception raised during the finalisation of an object is lost.
        """
        self._is_stopping = True
        self._runner.hurry(is_stopping=True)
        if self._is_waiting:
            raise _Wake

    def on_control_signal(self, signum: int = 0, frame: object = None) -> None:
        """Signal handler: apply what the supervisor wrote to shared memory. Ends a wait, or interrupts a job."""
        if self._shared.is_quiet:
            self._runner.hurry(is_stopping=False)
            if self._is_waiting:
                raise _Wake
        self._runner.cancel_jobs()

    def run(self) -> int:
        """Steps 1 to 4. Returns the exit code of the process."""
        if self._broker.config.job_logs is not None:
            for collect in parts("job_logs"):
                self._session.logs = collect(self._broker.config, self._session.send_logs)
        try:
            self._retry_until_connected(self._session.sign_on)
            while not self._is_stopping and not self._must_recycle() and not self._is_orphan():
                if self._shared.is_quiet:
                    self._stay_quiet()
                    continue
                fetched = self._retry_until_connected(self._fetch)
                if fetched is None:
                    continue
                if not self._run_fetched(fetched) and not self._wait_for_more():
                    break
        except MemoryError:
            exit_out_of_memory(self._session)
        self._shut_down()
        return EXIT_RECYCLED if self._must_recycle() and not self._is_stopping else EXIT_DONE

    # -- claiming

    def _fetch(self) -> ClaimResult:
        self._session.reconcile()
        self._runner.clear_finished_flag()
        wanted = self._runner.wanted()
        if self._options.max_jobs is not None:
            wanted = min(wanted, self._options.max_jobs - self._jobs_done)
        queues, is_woken = self._options.order(), self._reader.token_key is not None
        idle = self._options.concurrency if self._runner.is_idle else 0
        fetched = self._session.fetch(wanted, idle=idle, queues=queues, is_woken=is_woken)
        if wanted:
            self._reader.return_signal(fetched, queues)
        if fetched.error is not None and not fetched.found:
            raise fetched.error
        self._shared.record_claim(jobs_done=self._jobs_done, claimed_at=time.monotonic())
        return fetched

    def _run_fetched(self, fetched: ClaimResult) -> bool:
        """Run what was claimed. Returns False if there was nothing, and there is nothing more to claim now."""
        if "unknown" in fetched.statuses:
            self._retry_until_connected(self._take_new_name)
            return True
        # Where there are limits no job is claimed ahead: it would count for them, though it does not run yet.
        has_limits = any(claimed.has_limits for claimed in fetched.claimed)
        self._runner.note_claim(0 if has_limits else fetched.found, is_suspect_next="suspect" in fetched.statuses)
        if fetched.found:
            if self._shared.is_supervisor_dozing and not self._is_orphan():
                os.kill(self._parent, signal.SIGCHLD)
            if self._reader.is_waiting and fetched.found >= self._runner.wanted():
                self._reader.leave()  # there is no free slot
            worker = self._session.worker
            runs = [run for claimed in fetched.claimed for run in runs_of(claimed, worker)]
            if registry.batch_tasks:
                runs = self._gather(runs)
            # Released jobs do not count: a process is replaced after so many runs.
            self._jobs_done += self._runner.run(runs)
        return fetched.found > 0 or "more" in fetched.statuses

    def _gather(self, runs: list[Run]) -> list[Run]:
        """Put jobs together that one call gets, and claim what is missing."""
        if self._gatherer is None:
            self._gatherer = required("batches").CallGatherer(self._session, self._broker.config)
        room = self._shared.room - len(runs)
        if self._options.max_jobs is not None:
            room = min(room, self._options.max_jobs - self._jobs_done - len(runs))
        gathered: list[Run] = self._gatherer.gather(runs, room=max(0, room))
        return gathered

    def _take_new_name(self) -> None:
        """Our lease has expired. Settle, as far as Redis still accepts it, and sign on under a new name."""
        logger.warning("worker %s lost its lease, and continues under a new name", self._session.worker)
        self._runner.release_waiting()
        self._session.settle()
        self._session.sign_on()

    # -- waiting

    def _wait_for_more(self) -> bool:
        """Wait until there may be something to claim. False: the burst is over."""
        if self._session.needs_reconcile:
            return True  # first: the next claim may block in the server for long
        if not self._runner.is_settled or not self._runner.wanted():
            self._wait_beside_jobs()
            return True
        if self._options.burst:
            return bool(self._retry_until_connected(self._promote))
        self._wait_for_work()
        return True

    def _wait_beside_jobs(self) -> None:
        """Wait until a job is over, there is work for a free slot, or it is time to claim again."""
        until = time.monotonic() + IDLE_SECONDS
        try:
            while not self._is_stopping and not self._shared.is_quiet and time.monotonic() < until:
                self._shared.set_alive(time.monotonic())
                if self._runner.wait(MAX_ACK_DELAY_SECONDS if self._runner.wanted() else self._longest_seconds):
                    return
                if self._runner.wanted() and self._reader.wait(0):
                    return
        except BrokerError as error:
            self._session.reconcile_soon()  # Redis may return with older data
            self._wait_before_retry(error)

    def _promote(self) -> bool:
        """Promote due jobs: they belong to the burst. Returns whether there may be work."""
        promoted, is_work = self._broker.promote(self._options.queues)
        signals.send_promoted(WorkerProcess, promoted)
        return is_work

    def _wait_for_work(self) -> None:
        """Block until there is work, and run it. Claims from time to time without a work signal, too."""
        try:
            fetched = self._wait_and_claim()
        except _Wake:
            self._is_waiting = False
            self._session.release(self._session.held)  # the signal may have come just after the reply to a claim
            self._session.mark_uncertain()  # or before it, while the claim is under way
        except BrokerError as error:
            self._session.mark_uncertain()
            self._wait_before_retry(error)
        else:
            if fetched is not None:
                self._run_fetched(fetched)

    def _wait_and_claim(self) -> ClaimResult | None:
        """Claim when there is work. None: the claim was rejected, or there is a reason to stop waiting."""
        queues = self._options.order()
        claim = self._broker.claim_command(self._session.worker, queues, 1)
        self._reader.connect()  # first: a new connection is a reason to reconcile
        try:
            self._is_waiting = True
            while not self._must_not_wait():
                asked_at = time.monotonic()
                self._shared.set_alive(asked_at)
                answer = self._reader.wait_and_claim(
                    claim, slice_seconds=self._longest_seconds, on_slice=self._on_slice
                )
                if answer is None:
                    return None
                fetched = ClaimResult()
                fetched.add_claim(queues, answer)
                if fetched.found:
                    self._session.hold(fetched, asked_at=asked_at)
                self._reader.return_signal(fetched, queues)
                if fetched.found or "unknown" in fetched.statuses:
                    return fetched
                self._report_while_idle()
        finally:
            self._is_waiting = False
        return None

    def _must_not_wait(self) -> bool:
        stops = self._is_stopping or self._shared.is_quiet or self._is_orphan()
        return stops or self._session.needs_reconcile or self._session.has_lost_lease

    def _report_while_idle(self) -> None:
        """Show that this process is alive, and send the metrics of its last jobs."""
        self._is_waiting = False
        self._shared.record_claim(jobs_done=self._jobs_done, claimed_at=time.monotonic())
        self._session.report_metrics()
        self._is_waiting = True

    def _on_slice(self) -> None:
        """Called every few seconds while a claim blocks. Ends the wait if there is a reason."""
        self._report_while_idle()
        if self._must_not_wait():
            raise _Wake

    def _stay_quiet(self) -> None:
        """Finish running jobs and claim nothing, until the command `quiet` is revoked."""
        self._reader.close()
        self._runner.release_waiting()
        while self._shared.is_quiet and not self._is_stopping and not self._is_orphan():
            if self._retry_until_connected(self._report_all):
                self._shared.is_resting = True  # whatever an uncertain claim took is known
            self._shared.set_alive(time.monotonic())
            time.sleep(_SLICE_SECONDS)
        self._shared.is_resting = False

    def _report_all(self) -> bool:
        self._runner.clear_finished_flag()
        self._session.report_metrics()
        # No connection is blocking, so a restart of Redis would go unnoticed.
        self._session.reconcile(max_age_seconds=self._broker.config.lease_seconds)
        return True

    # -- retrying

    def _retry_until_connected(self, act: Callable[[], T]) -> T | None:
        """Call it until Redis replies. None: the process has to stop."""
        while True:
            try:
                result = act()
            except BrokerError as error:
                self._wait_before_retry(error)
                if self._is_stopping or self._is_orphan():
                    return None
            else:
                if self._backoff.reset():
                    logger.info("worker %s reached Redis again", self._session.worker)
                return result

    def _wait_before_retry(self, error: BrokerError) -> None:
        self._runner.release_waiting()
        seconds = self._backoff.next_seconds()
        if seconds <= _SLICE_SECONDS:
            log_trouble(f"worker {self._session.worker}", error)
        until = time.monotonic() + seconds
        while not self._is_stopping and (left := until - time.monotonic()) > 0:
            self._shared.set_alive(time.monotonic())
            time.sleep(min(left, _SLICE_SECONDS))

    # -- exit

    def _is_orphan(self) -> bool:
        """Whether the supervisor is dead: then nobody renews our lease."""
        return os.getppid() != self._parent

    def _must_recycle(self) -> bool:
        options, most_mb = self._options, self._broker.config.max_memory_mb
        if options.max_jobs is not None and self._jobs_done >= options.max_jobs and not self._runner.has_waiting:
            return True
        return most_mb is not None and self._jobs_done > 0 and (memory_bytes() or 0) > most_mb * 1_048_576

    def _shut_down(self) -> None:
        """Settle what is finished, release the rest.

        After a stop signal the supervisor watches the time: it kills a process that takes too long, and reclaims the
        jobs that were not reported.
        """
        self._shared.set_alive(math.inf)
        self._reader.close()
        self._runner.release_waiting()
        self._backoff = ReconnectDelay(_MAX_PAUSE_SECONDS)
        while not self._runner.is_idle:
            self._runner.wait(_SLICE_SECONDS)
            self._runner.clear_finished_flag()
            self._try_to_settle()
        self._runner.stop()
        self._session.release(self._session.held)
        tries = 1
        # While finished jobs would run again. Those that have not started are reclaimed by the supervisor anyway.
        while not self._try_to_settle() and (
            tries < MAX_SETTLE_TRIES or (self._session.has_outcomes and not self._is_orphan())
        ):
            tries += 1
        self._session.close()
        try:
            self._session.sign_off()
        except BrokerError as error:
            logger.warning("worker %s exits without reaching Redis: %s", self._session.worker, error)
        signals.worker_process_shutdown.send_robust(WorkerProcess, worker=self._session.worker)

    def _try_to_settle(self) -> bool:
        try:
            self._session.settle()
        except BrokerError as error:
            seconds = self._backoff.next_seconds()
            if seconds <= _SLICE_SECONDS:
                log_trouble(f"worker {self._session.worker}", error, "retrying before it exits")
            time.sleep(seconds)
            return False
        return True

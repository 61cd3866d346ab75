"""The life of a child, the process that runs jobs.

1. sign on
2. settle what is done and claim what comes next, in one round trip
3. run it; or, when there is nothing, wait for a token
4. told to stop, or old: settle, give back what was not started, sign off

While Redis is away it waits, and what it finished meanwhile is settled when Redis is back.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from django_rtq import signals
from django_rtq.broker.broker import Broker, Claimed, Fetched
from django_rtq.broker.redis.blocking_reader import BlockingReader
from django_rtq.exceptions import BrokerError, BrokerUnavailable
from django_rtq.loop import ReconnectDelay
from django_rtq.worker.exit_codes import EXIT_DONE, EXIT_RECYCLED
from django_rtq.worker.memory import memory_bytes
from django_rtq.worker.options import WorkerOptions
from django_rtq.worker.os_signals import ignore
from django_rtq.worker.process.batch import MOMENT_SECONDS
from django_rtq.worker.process.run import Run
from django_rtq.worker.process.runner import Runner, make_runner, out_of_memory
from django_rtq.worker.process.session import WorkerSession
from django_rtq.worker.shared_memory import SharedState

logger = logging.getLogger("django_rtq")
T = TypeVar("T")

IDLE_SECONDS = 5.0  # a token may get lost: so often an idle worker asks without one
MOST_TRIES = 3  # to give back what was not started, before it leaves
_SLICE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 0.5  # between two tries to tell what is done, before it leaves


class _Wake(BaseException):
    """Raised by the signal handler in the middle of a wait, and nowhere else."""


class Child:
    """Runs jobs until it is told to stop. Everything happens in its main thread, but for what its crew does."""

    def __init__(self, broker: Broker, page: SharedState, options: WorkerOptions, *, parent: int) -> None:
        self._broker = broker
        self._page = page
        self._options = options
        self._parent = parent
        self._session = WorkerSession(broker, page, options.queues, base_name=options.name)
        self._runner: Runner = make_runner(broker.config, page, self._session, options.concurrency)
        # An answer may be that old, and has to come well within a lease; so has a sign of life.
        self._longest_seconds = min(IDLE_SECONDS, broker.config.lease_seconds / 3)
        self._reader = BlockingReader(
            broker.connection_settings,
            [broker.keys.of(queue).work_signal for queue in options.queues],
            role="worker-wait",
            block_seconds=self._longest_seconds,
            on_connect=self._session.compare_soon,
        )
        self._backoff = ReconnectDelay()
        self._is_stopping = False
        self._is_waiting = False
        self._jobs_done = 0

    def listen(self) -> None:
        """Take the signals of this process. Jobs run in it, so it sees to it that they stay ours."""
        self._runner.handlers.install(
            {
                signal.SIGTERM: self.stop,
                signal.SIGUSR1: self.heed,
                signal.SIGINT: ignore,  # Ctrl-C goes to all; the supervisor tells us
            }
        )

    def stop(self, signum: int = 0, frame: object = None) -> None:
        """Claim nothing more. A signal handler: takes note, and ends a wait.

        The supervisor sends it again and again: what is raised while the interpreter finalises an object gets lost.
        """
        self._is_stopping = True
        if self._is_waiting:
            raise _Wake

    def heed(self, signum: int = 0, frame: object = None) -> None:
        """Do what the supervisor has written on the page. A signal handler: ends a wait, or interrupts a job."""
        if self._page.is_quiet and self._is_waiting:
            raise _Wake
        self._runner.stop_jobs()

    def work(self) -> int:
        """The life. Returns the exit code of the process."""
        try:
            self._patiently(self._session.sign_on)
            while not self._is_stopping and not self._is_old() and not self._is_orphan():
                if self._page.is_quiet:
                    self._rest()
                    continue
                fetched = self._patiently(self._fetch)
                if fetched is None:
                    continue
                if not self._take(fetched) and not self._find_more():
                    break
        except MemoryError:
            out_of_memory(self._session)
        self._leave()
        return EXIT_RECYCLED if self._is_old() and not self._is_stopping else EXIT_DONE

    # -- claiming

    def _fetch(self) -> Fetched:
        self._session.reconcile()
        self._runner.forget_news()
        wanted = self._runner.wanted()
        if self._options.max_jobs is not None:
            wanted = min(wanted, self._options.max_jobs - self._jobs_done)
        fetched = self._session.fetch(wanted, idle=self._runner.idle_slots, queues=self._options.order())
        if fetched.error is not None and not fetched.found:
            raise BrokerUnavailable(str(fetched.error)) from fetched.error
        return fetched

    def _take(self, fetched: Fetched) -> bool:
        """Run what was claimed. Returns whether there was anything, or may be at once."""
        self._page.note(jobs_done=self._jobs_done, claimed_at=time.monotonic())
        if "unknown" in fetched.statuses:
            self._patiently(self._start_anew)
            return True
        self._runner.mind(is_suspect_next="suspect" in fetched.statuses)
        if fetched.found:
            if self._reader.is_waiting and fetched.found >= self._runner.wanted():
                self._reader.close()  # the next token is for somebody who has a slot
            worker = self._session.worker
            # Without those of a batch that was cut: a process is replaced after so many runs.
            self._jobs_done += self._runner.run([run for claimed in fetched.claimed for run in _runs(claimed, worker)])
        return fetched.found > 0 or "more" in fetched.statuses

    def _start_anew(self) -> None:
        """We were given up for dead. What we finished may still be accepted; then we are somebody else."""
        logger.warning("worker %s lost its lease; it goes on under a new name", self._session.worker)
        self._session.settle()
        self._session.sign_on()

    # -- waiting

    def _find_more(self) -> bool:
        """There was nothing to claim. Wait until there may be; False: a burst is over."""
        if self._session.is_to_be_compared:
            return True  # before the next claim, which may wait in the server for long
        if not self._runner.is_at_rest:
            self._wait_beside_jobs()
            return True
        if self._options.burst:
            return bool(self._patiently(self._promote))
        self._wait_for_work()
        return True

    def _wait_beside_jobs(self) -> None:
        """Until a job is over, a slot is wanted, or it is time to ask again."""
        until = time.monotonic() + IDLE_SECONDS
        try:
            while not self._is_stopping and not self._page.is_quiet and time.monotonic() < until:
                self._page.live(time.monotonic())
                if self._runner.wait(MOMENT_SECONDS if self._runner.wanted() else self._longest_seconds):
                    return
                if self._runner.wanted() and self._reader.wait(0):
                    return
        except BrokerError as error:
            self._session.compare_soon()  # Redis may come back with older data
            self._pause(error)

    def _promote(self) -> bool:
        """In a burst, what is due by now belongs to it."""
        _, promoted = self._broker.promote_all(self._options.queues)
        signals.send_promoted(Child, promoted)
        return any(promoted.values())

    def _wait_for_work(self) -> None:
        """Blocks until there is something to do, and takes it. After a while without a token it asks anyhow."""
        try:
            fetched = self._wait_and_claim()
        except _Wake:
            self._is_waiting = False
            self._session.release(self._session.held)  # it may have come a moment after the answer to a claim
            self._session.doubt()  # or while that is on its way
        except BrokerError as error:
            self._session.doubt()
            self._pause(error)
        else:
            if fetched is not None:
                self._take(fetched)

    def _wait_and_claim(self) -> Fetched | None:
        """What a claim has brought, at last; None when it was refused, or we are not to wait any more."""
        queues = self._options.order()
        claim = self._broker.claim_command(self._session.worker, queues, 1)
        try:
            self._is_waiting = True
            while not self._is_stopping and not self._page.is_quiet and not self._is_orphan():
                asked_at = time.monotonic()
                self._page.live(asked_at)
                answer = self._reader.wait_and_claim(claim)
                if answer is None:
                    return None
                fetched = Fetched()
                self._broker.read_claim(fetched, queues, answer)
                if fetched.found or "unknown" in fetched.statuses:
                    self._session.hold(fetched, asked_at=asked_at)
                    return fetched
                self._page.note(jobs_done=self._jobs_done, claimed_at=time.monotonic())
                self._is_waiting = False
                self._session.tell_counts()
                if self._session.is_to_be_compared:
                    return None
                self._is_waiting = True
        finally:
            self._is_waiting = False
        return None

    def _rest(self) -> None:
        """Quiet, by order: finish what runs, claim nothing, and stay."""
        self._reader.close()
        while self._page.is_quiet and not self._is_stopping and not self._is_orphan():
            self._patiently(self._tell_all)
            self._page.live(time.monotonic())
            time.sleep(_SLICE_SECONDS)

    def _tell_all(self) -> None:
        self._runner.forget_news()
        self._session.tell_counts()
        # It has no connection that waits, and would not notice that Redis was away.
        self._session.reconcile(at_least_each=self._broker.config.lease_seconds)

    # -- patience

    def _patiently(self, act: Callable[[], T]) -> T | None:
        """Try until Redis answers; None when we are told to stop meanwhile."""
        while True:
            try:
                result = act()
            except BrokerError as error:
                self._pause(error)
                if self._is_stopping or self._is_orphan():
                    return None
            else:
                if self._backoff.reset():
                    logger.info("worker %s goes on: Redis is back", self._session.worker)
                return result

    def _pause(self, error: BrokerError) -> None:
        seconds = self._backoff.next_seconds()
        if seconds <= _SLICE_SECONDS:
            logger.warning("worker %s waits for Redis: %s", self._session.worker, error)
        until = time.monotonic() + seconds
        while not self._is_stopping and (left := until - time.monotonic()) > 0:
            self._page.live(time.monotonic())
            time.sleep(min(left, _SLICE_SECONDS))

    # -- leaving

    def _is_orphan(self) -> bool:
        """Whether the supervisor is dead: nobody renews our lease any more."""
        return os.getppid() != self._parent

    def _is_old(self) -> bool:
        options, most_mb = self._options, self._broker.config.max_memory_mb
        if options.max_jobs is not None and self._jobs_done >= options.max_jobs:
            return True
        return most_mb is not None and self._jobs_done > 0 and (memory_bytes() or 0) > most_mb * 1_048_576

    def _leave(self) -> None:
        """Tell what is done, give back the rest.

        After a signal the supervisor has the clock: it kills who takes too long, and gives back what was not told.
        """
        self._page.live(math.inf)
        self._reader.close()
        self._backoff = ReconnectDelay(_LONGEST_PAUSE_SECONDS)
        while not self._runner.is_idle:
            self._runner.wait(_SLICE_SECONDS)
            self._runner.forget_news()
            self._try_to_settle()
        self._runner.stop()
        self._session.release(self._session.held)
        tries = 1
        while not self._try_to_settle() and (tries < MOST_TRIES or self._is_worth_waiting()):
            tries += 1
        self._session.close()
        try:
            self._session.sign_off()
        except BrokerError as error:
            logger.warning("worker %s leaves without Redis: %s", self._session.worker, error)

    def _is_worth_waiting(self) -> bool:
        """Whether jobs would run again that are over. What was not started is given back by the supervisor, too."""
        return self._session.has_outcomes and not self._is_orphan()

    def _try_to_settle(self) -> bool:
        try:
            self._session.settle()
        except BrokerError as error:
            seconds = self._backoff.next_seconds()
            if seconds <= _SLICE_SECONDS:
                logger.warning("worker %s waits for Redis before it leaves: %s", self._session.worker, error)
            time.sleep(seconds)
            return False
        return True


def _runs(claimed: Claimed, worker: str) -> Sequence[Run]:
    queue, now_ms, counts = claimed.queue, claimed.now_ms, claimed.counts
    return [
        Run(queue, job_id, record, worker=worker, now_ms=now_ms, counts=counts.get(place, (0, 0)))
        for place, (job_id, record) in enumerate(zip(claimed.ids, claimed.records, strict=True))
    ]

"""Reclaims the jobs of crashed processes, at once or as soon as Redis is reachable (G5).

1. the main thread of the supervisor reaps a process, and adds it here
2. this loop notes the clients whose jobs have crashed it, and reclaims its jobs, in its own thread: the main thread
   never waits for Redis
3. when all added processes are done, it sends the signals of these jobs
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django_rtq.core import signals
from django_rtq.core.broker.settlement import Report, Settlement, as_bytes
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.jobs.failure import write_failure
from django_rtq.core.jobs.job import about_jobs
from django_rtq.core.jobs.outcome import is_result_lost
from django_rtq.core.threads import Loop, log_trouble
from django_rtq.core.worker.outcome import ACKED, BURIED, COUNTED_AS, RETRIED, decide, send_failed
from django_rtq.core.worker.run import make_metrics, runs_of
from django_rtq.core.worker.shared_memory import ClientOfQueue, SharedState
from django_rtq.exceptions import BrokerError, PayloadError, TaskNotFound, TimeLimitExceeded

logger = logging.getLogger("django_rtq")

MAX_WAIT_SECONDS = 60.0
REPLY_TIMEOUT_SECONDS = 2.0  # a round trip takes milliseconds: after so long Redis hangs
STOP_REPLY_TIMEOUT_SECONDS = 0.25  # the same, once the drain time is over: the worker has to exit
MAX_BLAMED = 16  # running jobs of a process whose clients are noted
SendSignals = Callable[[], object]


@dataclass(slots=True)
class _CrashedProcess:
    worker: str
    crashed: Sequence[str]  # jobs that were running: they count a crash
    overdue: Sequence[str]  # jobs that ignored their time limits: they count a failure
    blamed: Sequence[str]  # jobs that may have caused its end
    finished: Sequence[Report]  # jobs that were over; Redis may not have their outcomes
    dumps: tuple[bytes, bytes, bytes]  # what it had counted of runs, and not sent: see SharedState.counts()
    counts: Any = None  # the one of them that applies, from make_metrics()
    unsent: dict[str, list[Any]] = field(default_factory=dict)  # what is left to send of it, by queue


class CrashRecovery(Loop):
    """Reclaims the jobs of crashed processes, in its own thread. The main thread adds them, and asks what is left."""

    name = "crash-recovery"

    def __init__(
        self,
        broker: WorkerBroker,
        queues: Sequence[str],
        wake: Callable[[], None] = lambda: None,
        note_crash: Callable[[Collection[ClientOfQueue]], None] = lambda clients: None,
    ) -> None:
        super().__init__()
        self._broker = broker
        self._queues = queues
        self._wake = wake
        self._note_crash = note_crash
        self._queued: deque[_CrashedProcess] = deque()
        self._progress_at = 0.0  # when Redis was asked, or its last reply; infinite until it is asked
        self._is_redis_away = False  # the last try failed
        #: After so long without a reply, Redis hangs, and is_pending is False.
        self.reply_timeout_seconds = REPLY_TIMEOUT_SECONDS

    def add(
        self,
        shared: SharedState,
        *,
        crashed: Sequence[str],
        overdue: Sequence[str] = (),
        blamed: Sequence[str] = (),
    ) -> None:
        """Queue the jobs of a process that has exited. Its shared memory has its worker name."""
        if shared.worker:
            if not self._queued:
                self._progress_at = math.inf
            process = _CrashedProcess(shared.worker, crashed, overdue, blamed, shared.finished(), shared.counts())
            self._queued.append(process)
            self.interrupt()

    @property
    def is_pending(self) -> bool:
        """Whether there are jobs to reclaim, and Redis seems to be reachable."""
        return (
            bool(self._queued)
            and not self._is_redis_away
            and time.monotonic() - self._progress_at < self.reply_timeout_seconds
        )

    @property
    def is_done(self) -> bool:
        """Whether the jobs of all queued processes are reclaimed."""
        return not self._queued

    def tick(self) -> float:
        """Reclaim the jobs of all queued processes."""
        send_later: list[SendSignals] = []
        try:
            while self._queued:
                self._progress_at = time.monotonic()
                self._recover(self._queued[0], send_later)
                self._queued.popleft()
            self._is_redis_away = False
        except BrokerError as error:
            if not self._is_redis_away:
                log_trouble(self.name, error, "jobs of a crashed process are reclaimed later")
            self._is_redis_away = True
            raise
        finally:
            self._wake()
            for send in send_later:
                send()
        return MAX_WAIT_SECONDS

    def _recover(self, process: _CrashedProcess, send_later: list[SendSignals]) -> None:
        held = self._broker.attempts(process.worker, self._queues)
        self._progress_at = time.monotonic()
        if process.counts is None:
            before, after, sent = process.dumps
            is_reported = sent and not any(sent in attempts for attempts in held.values())
            process.counts = make_metrics(after if is_reported else before)
        if process.blamed:
            self._blame(process, held)
        settle_finished(self._broker, self._queues, process.worker, process.finished, counts=process.counts)
        process.unsent |= process.counts.take_due() if process.counts else {}
        for queue in list(process.unsent):
            self._broker.settle(process.worker, queue, Settlement(metrics=process.unsent[queue]))
            del process.unsent[queue]
        self._progress_at = time.monotonic()
        self._record_timeouts(process, send_later)
        for queue in self._queues:
            taken = self._broker.reclaim_child(queue, process.worker, process.crashed)
            self._progress_at = time.monotonic()
            if taken:
                send_later.append(partial(signals.send_reclaimed, CrashRecovery, queue, process.worker, taken))

    def _blame(self, process: _CrashedProcess, held: Mapping[str, Collection[bytes]]) -> None:
        blamed = {job_id.encode() for job_id in process.blamed[:MAX_BLAMED]}
        clients = {
            (queue, client)
            for queue, attempts in held.items()
            if (job_ids := list(blamed.intersection(attempts)))
            for client, _ in self._broker.heads(queue, job_ids)
            if client is not None
        }
        self._note_crash(clients)
        self._progress_at = time.monotonic()

    def _record_timeouts(self, process: _CrashedProcess, send_later: list[SendSignals]) -> None:
        for job_id in process.overdue:
            try:
                self._record_timeout(process.worker, job_id, send_later)
            except BrokerError:
                raise
            except Exception:  # e.g. of the task's `backoff`: it must not keep other jobs from being reclaimed
                text = "job %s: cannot decide what follows from its time limit, so it counts a crash"
                logger.exception(text, job_id, extra=about_jobs([job_id]))
                process.crashed = [*{*process.crashed, job_id}]
            self._progress_at = time.monotonic()

    def _record_timeout(self, worker: str, job_id: str, send_later: list[SendSignals]) -> None:
        """Settle a job that was killed for its time limit as failed, as if it had raised TimeLimitExceeded."""
        claimed, config = self._broker.find_running(worker, self._queues, job_id), self._broker.config
        if claimed is None:
            return
        (run,) = runs_of(claimed, worker)
        try:
            run.open()
        except (PayloadError, ValueError, KeyError, TaskNotFound):
            return
        run.seconds = (run.time_limit(config) or 0.0) + config.kill_grace_seconds
        error = TimeLimitExceeded(
            "The job exceeded its time limit and ignored TimeLimitExceeded; its process was killed."
        )
        most = run.max_attempts(config)
        outcome = decide(run.task, error, failures=run.failures, max_attempts=most, options=run.options)
        settlement = Settlement(reports=[run.report(outcome, config)])
        if counts := make_metrics():  # the process that was to count this run was killed
            counts.add(run.queue, run.task_name, *COUNTED_AS[outcome.verb])
            settlement.metrics += counts.take_due()[run.queue]
        if not self._broker.settle(worker, run.queue, settlement):
            send_later.append(partial(send_failed, CrashRecovery, run.job, job_id, outcome))


def settle_finished(
    broker: WorkerBroker,
    queues: Sequence[str],
    worker: str,
    finished: Sequence[Report],
    *,
    counts: Any = None,
) -> None:
    """Settle jobs that a dead or blocked process has finished, as far as Redis does not have their outcomes: they must
    not run again (G2). Raises BrokerError. May be repeated.

    Their signals were sent by the process. `counts`: what a dead process had counted, without these jobs. They
    are added to it. A process that lives counts them itself.
    """
    if not finished:
        return
    for queue, attempts in broker.attempts(worker, queues).items():
        # A job whose retry was reported may run again in the same worker: then its attempt is another one.
        unreported = [job for job in finished if job.job_id in attempts and job.attempt in (0, attempts[job.job_id])]
        if not unreported:
            continue
        settlement = Settlement()
        for job in unreported:
            settlement.add(with_text(job, worker))
        heads = [] if counts is None else broker.heads(queue, [job.job_id for job in unreported])
        broker.settle(worker, queue, settlement)
        for job, (_, task) in zip(unreported, heads, strict=False):
            if counts is not None and task and job.verb in COUNTED_AS:
                counts.add(queue, task, *COUNTED_AS[job.verb])
        logger.info("settled finished jobs of worker %s: %d", worker, len(unreported))
        for job in unreported:
            if job.verb == ACKED and is_result_lost(job.text):
                job_id = as_bytes(job.job_id).decode(errors="replace")
                extra = about_jobs([job_id], queue=queue)
                logger.warning("job %s succeeded, but its result is lost", job_id, extra=extra)


def with_text(job: Report, worker: str) -> Report:
    """What became of a job that a process has finished: of a failure that was too long to keep, without it."""
    if not job.text and job.verb in (RETRIED, BURIED):
        lost = "The error is lost: its text was too long to keep, and the process was killed before it reached Redis."
        now_ms = time.time_ns() // 1_000_000
        return job._replace(text=write_failure(at=now_ms, attempt=job.attempt, worker=worker, error=lost).encode())
    return job

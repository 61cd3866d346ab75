"""Tracks the jobs that a process has claimed, and the outcomes that it still has to report. Makes its round trips."""

from __future__ import annotations

import contextvars
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import WeakSet

from django_rtq.core import signals
from django_rtq.core.broker.settlement import Report, Settlement, released
from django_rtq.core.broker.worker_broker import ClaimResult, WorkerBroker, WorkerInfo
from django_rtq.core.jobs.failure import read_failures, shorten_failure
from django_rtq.core.jobs.outcome import drop_result
from django_rtq.core.threads import Loop, ReconnectDelay
from django_rtq.core.worker.options import EXIT_FORKED
from django_rtq.core.worker.outcome import (
    ACKED,
    BURIED,
    CANCELLED,
    COUNTED_AS,
    RETRIED,
    SUSPENDED,
    UNKNOWN_TASK,
    Outcome,
    decide_unknown,
    send_failed,
    unknown_since,
)
from django_rtq.core.worker.process.progress import ProgressReports
from django_rtq.core.worker.run import Run, make_metrics
from django_rtq.core.worker.shared_memory import MAX_ID_BYTES, MAX_NAME_BYTES, TOMBSTONE_MS, Revoked, SharedState
from django_rtq.exceptions import BrokerError, BrokerUnavailable, TimeLimitExceeded

CHECK_AGAIN_SECONDS = 5.0
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")  # a script writes the name into JSON


class Reconciler(Loop):
    """Calls `reconcile` once per lease time while the worker has jobs, and at once if there is a reason.

    Redis may lose its last writes in a restart, or in a failover to a replica that lags. Then the processing list has
    jobs again that are over. The lease of this worker is renewed, so nobody else would reclaim them.

    The thread starts with the first job. Without jobs it sleeps without a timer: an idle worker costs no CPU time.
    """

    name = "reconciler"

    def __init__(self, reconcile: Callable[[], None], has_jobs: Callable[[], bool], *, lease_seconds: float) -> None:
        super().__init__()
        self._reconcile = reconcile
        self._has_jobs = has_jobs
        self._lease_seconds = lease_seconds
        self._backoff = ReconnectDelay(lease_seconds)
        self._is_asleep = True  # without a timer
        self._had_jobs = False  # since the last time
        self._is_due = False

    def note_jobs(self) -> None:
        """The worker has jobs. Called after each claim, so it does next to nothing while the thread is awake."""
        self._had_jobs = True
        if self._is_asleep:
            if self._thread is None:
                self.start()
            self.interrupt()

    def reconcile_soon(self) -> None:
        """There is a reason to compare now."""
        self._is_due = True
        self.interrupt()

    def tick(self) -> float:
        """Compare if it is time. Returns the seconds until the next comparison."""
        if self._is_due:
            self._is_due = False
            try:
                self._reconcile()
            except BrokerError:
                self._is_due = True
                return self._backoff.next_seconds()
            self._backoff.reset()
        return self._lease_seconds

    def wait(self, seconds: float) -> None:
        """Wait until it is time, or until there are jobs."""
        # A worker that had jobs will have more. If the thread slept at once, each claim would wake it.
        had_jobs, self._had_jobs = self._had_jobs, False
        self._is_asleep = True
        if self._is_due or had_jobs or self._has_jobs():  # last, because of note_jobs() in another thread
            self._is_asleep = False
        if not self._wake_event.wait(None if self._is_asleep else seconds):
            self._is_due = True


class WorkerSession:
    """The jobs of one worker name: claimed, settled, released. Any thread may use it.

    A job with max_crashes=0 is settled by itself, and never released once it has started (D26).
    """

    def __init__(
        self,
        broker: WorkerBroker,
        shared: SharedState,
        queues: Sequence[str],
        *,
        base_name: str,
        info: Callable[[], WorkerInfo] = dict,
    ) -> None:
        self._broker = broker
        self._config = broker.config
        self._shared = shared
        self._queues = list(queues)
        self._base_name = base_name
        self._info = info  # stored with each new name: a worker that was told to be quiet may be woken right after
        self._lock = threading.Lock()
        self._round_trip = threading.RLock()  # one round trip at a time: outcomes under way are in neither list
        self._settlements: dict[str, Settlement] = {}
        self._held: dict[bytes, str] = {}  # id -> queue: claimed under this name, without an outcome
        self._metrics = make_metrics()
        self._has_counts = False  # something was counted until the last round trip, and not sent
        self.logs: Any = None  # what an app brings to keep what jobs log: take() and confirm() take turns
        self._timed: set[str] = set()  # queues in which clients take turns by time
        self._perhaps_settled: set[str] = set()  # ids that were sent without a reply: they may be stale for that reason
        self._last_queue = ""  # the last one that had work
        self._is_uncertain = False
        self._next_check_at = 0.0  # time.monotonic(), while uncertain
        self._may_differ = False  # from the processing list in Redis
        self._connections_lost_seen = broker.redis.connections.connections_lost  # at the last comparison
        self._reconciled_at = time.monotonic()
        self._reconciler = Reconciler(
            self.reconcile_held, lambda: bool(self._held), lease_seconds=broker.config.lease_seconds
        )
        self._signed_on_at = 0.0
        self.is_copy = False  # this process was forked by a job
        _sessions.add(self)
        self.worker = ""

    # -- sign on, sign off

    def sign_on(self) -> None:
        """Sign on under a new name: names are never reused (rule 5). Raises BrokerUnavailable."""
        name = f"{_UNSAFE.sub('-', self._base_name)}:{os.getpid()}:{secrets.token_hex(4)}"
        with self._round_trip:
            with self._lock:
                self.worker = name[-MAX_NAME_BYTES:]
                self._held.clear()  # jobs that were claimed under another name belong to other workers now
            self._shared.set_name(self.worker)
            self._broker.sign_on(self._queues, self.worker, self._info())
            self._signed_on_at = time.monotonic()  # a heartbeat that did not know the name began before

    def sign_off(self) -> None:
        """Sign off. Call it only when no job is held. Raises BrokerUnavailable."""
        with self._round_trip:
            self.report_metrics()
            while not self._broker.sign_off(self._queues, self.worker):
                self._release_unknown()

    def close(self) -> None:
        """End the threads."""
        self._reconciler.stop()
        if self.logs is not None:
            self.logs.stop()

    # -- outcomes

    def add(self, run: Run, outcome: Outcome) -> None:
        """Record the outcome of a run, to be sent with the next claim; then send its signals.

        A run that was claimed under a former name is ignored, even if the job was claimed again here (G4).
        """
        if self.is_copy:
            os._exit(EXIT_FORKED)  # a job forked, and its copy of this process returned from the job
        if run.worker != self.worker:
            self._shared.remove_entry(run.entry)
            signals.job_stale.send_robust(WorkerSession, job_ids=[run.id], worker=run.worker)
            return
        if outcome.verb == UNKNOWN_TASK:
            outcome = self._decide_unknown_task(run, outcome)
        with self._lock:
            self._held.pop(run.job_id, None)
            settlement = self._settlements.get(run.queue)
            if settlement is None:
                settlement = self._settlements[run.queue] = Settlement()
            self._record(settlement, run, outcome)
            if self.logs is not None:
                self.logs.end(run, outcome)
            if run.queue in self._timed:
                settlement.add_time(run.job_id, run.seconds)
        if outcome.verb != ACKED or signals.job_succeeded.receivers:
            variables = contextvars.copy_context() if run.variables is None else run.variables
            variables.run(send_outcome, WorkerSession, run, outcome)
            if isinstance(outcome.error, TimeLimitExceeded):
                with self._lock:
                    self._shared.note_timeout((run.queue, run.client.decode()))

    def _decide_unknown_task(self, run: Run, outcome: Outcome) -> Outcome:
        """Tell Redis that this worker does not know the task, ask since when the job has met such workers, and decide.

        That is rare, so it is not part of a claim. If the job was requeued since then, the time starts again.
        """
        try:
            failures = self._broker.note_unknown_task(run.queue, run.job_id, run.task_name, run.worker)
            since_ms = unknown_since(read_failures(failures))
        except BrokerError:
            since_ms = None
        waited_ms = 0 if since_ms is None else run.now_ms - max(since_ms, run.ready_ms)
        longest_seconds = self._config.unknown_task_timeout
        return decide_unknown(outcome.error, waited_seconds=waited_ms / 1000, longest_seconds=longest_seconds)

    def _record(self, settlement: Settlement, run: Run, outcome: Outcome) -> None:
        """Add an outcome to a settlement of the queue of the run; tell supervisor and metrics. Needs the lock."""
        if outcome.verb != ACKED:
            report = run.report(outcome, self._config)
            settlement.add(report)
            self._finish(run, report)
            if (counted := COUNTED_AS.get(report.verb)) and self._metrics:
                self._metrics.add_failed(run, *counted)
            return
        text = outcome.text.encode()
        keep_ms = int(run.result_ttl(self._config) * 1000) if text else TOMBSTONE_MS
        has_grown = run.part is not None and run.part.has_grown
        if has_grown:  # it has added steps to its workflow: Redis takes it only with them. See finish_members.lua
            keep_ms = -1 - keep_ms
        settlement.add_ack(run.job_id, keep_ms, text)
        if not text and not has_grown:
            self._shared.finish_without_result(run.entry)
        elif not self._shared.finish(run.entry, ACKED, keep_ms, text):
            # Its result does not fit. Another job that takes it could never run without, nor may the steps get lost.
            if has_grown or (run.keeps_result and not run.may_run_once):
                self._shared.finish_without_result(run.entry, runs_again=True)
            else:
                self._finish(run, Report(ACKED, run.job_id, keep_ms, drop_result(text)))
        if self._metrics:
            self._metrics.add_done(run, run.wait_ms)

    def _finish(self, run: Run, report: Report) -> None:
        """Write the outcome to shared memory, shortened if need be: the supervisor reads it if we are killed."""
        verb, _, ms, text, counted, _ = report
        finish = partial(self._shared.finish, run.entry, verb, ms, is_counted=bool(counted), attempt=run.attempt)
        if not finish(text) and not (verb in (RETRIED, BURIED) and finish(shorten_failure(text))):
            finish()

    def release(self, job_ids: Iterable[bytes]) -> None:
        """Give these jobs back without having run them. The attempt is not counted."""
        released: dict[str, list[bytes]] = {}
        with self._lock:
            for job_id in job_ids:
                queue = self._held.pop(job_id, None)
                if queue is not None:
                    self._settlements.setdefault(queue, Settlement()).add(Report("release", job_id))
                    released.setdefault(queue, []).append(job_id)
        if signals.job_released.receivers:
            for queue, ids in released.items():
                texts = [job_id.decode(errors="replace") for job_id in ids]
                signals.job_released.send_robust(WorkerSession, job_ids=texts, queue=queue)

    def disown(self, job_ids: Iterable[bytes]) -> None:
        """Drop these jobs: the supervisor gives them back under our name. We take a new name before the next claim."""
        with self._lock:
            for job_id in job_ids:
                self._held.pop(job_id, None)
            for settlement in self._settlements.values():  # the supervisor may have settled these as well
                self._perhaps_settled.update(job_id.decode(errors="replace") for job_id in settlement.job_ids())
        self.mark_uncertain()

    @property
    def backend(self) -> str:
        """The backend in TASKS whose Redis has the jobs; "": that of RTQ["REDIS"]."""
        return self._broker.backend

    @property
    def held(self) -> list[bytes]:
        """Claimed jobs without an outcome."""
        with self._lock:
            return list(self._held)

    @property
    def has_outcomes(self) -> bool:
        """Whether there are outcomes that were not sent yet."""
        with self._lock:
            return any(settlement.any_outcome_id() for settlement in self._settlements.values())

    # -- round trips

    def fetch(
        self, wanted: int, *, idle: int, queues: Sequence[str] | None = None, is_woken: bool = False
    ) -> ClaimResult:
        """Send all outcomes, and claim. Raises BrokerUnavailable: then outcomes are kept.

        It first asks the queues up to the one that had work lately, and the others only if there is none, unless a
        work signal has come (`is_woken`): many queues must not make each claim expensive.
        """
        with self._round_trip:
            return self._fetch(wanted, self._queues if queues is None else queues, idle=idle, is_woken=is_woken)

    def _fetch(self, wanted: int, queues: Sequence[str], *, idle: int, is_woken: bool = False) -> ClaimResult:
        with self._lock:
            settlements, over = self._take(), self._shared.take_finished()
            counts = self._begin_counts(settlements)
        asked_at = time.monotonic()
        self._shared.set_alive(asked_at)
        try:
            likely = (
                queues if is_woken or self._last_queue not in queues else queues[: queues.index(self._last_queue) + 1]
            )
            fetched = self._claim(likely, queues[len(likely) :], wanted, idle=idle, settlements=settlements)
        except BrokerError:
            self._note_perhaps_settled(settlements)
            with self._lock:
                self._shared.put_back(over)
                self._put_back(settlements)
            self.mark_uncertain()
            raise
        if fetched.error is not None:
            self._note_perhaps_settled(settlements)
        with self._lock:
            if self.logs is not None:
                self.logs.confirm()
            self._shared.confirm_reported(over)
            if counts is not None:
                self._shared.confirm_counts()
                self._has_counts = bool(counts)
            self._put_back(settlements)
        if fetched.stale:
            self._on_stale(fetched.stale)
        if self._perhaps_settled and fetched.error is None:
            self._perhaps_settled.clear()
        self.hold(fetched, asked_at=asked_at)
        return fetched

    def claim_beside(self, claim: Callable[[WorkerBroker, str], ClaimResult]) -> ClaimResult:
        """Let an app claim more jobs for this worker, beside those that were just claimed. Raises BrokerUnavailable."""
        with self._round_trip:
            asked_at = time.monotonic()
            try:
                fetched = claim(self._broker, self.worker)
            except BrokerError:
                self.mark_uncertain()
                raise
            self.hold(fetched, asked_at=asked_at)
            return fetched

    def _claim(
        self,
        likely: Sequence[str],
        others: Sequence[str],
        wanted: int,
        *,
        idle: int,
        settlements: dict[str, Settlement],
    ) -> ClaimResult:
        """Claim from these queues, then from the others, and last of clients whose jobs have crashed processes: of the
        one that may claim again first, alone, then of any."""
        aside = self._shared.clients_aside() if wanted else []
        fetched = self._broker.claim(self.worker, likely, wanted, settlements=settlements, idle=idle, aside=aside)
        if not wanted or not (others or aside):
            return fetched
        tries = [(others, aside)]
        if aside:
            tries += [((*likely, *others), aside[1:]), ((*likely, *others), [])]
        for queues, left_out in tries:
            if queues and not fetched.found and fetched.statuses <= {"ok"}:
                more = self._broker.claim(self.worker, queues, wanted, idle=idle, aside=left_out)
                fetched = replace(more, stale=fetched.stale, error=fetched.error or more.error)
        return fetched

    def _take(self) -> dict[str, Settlement]:
        """What there is to send. Needs the lock."""
        for queue, calls in self._metrics.take_due().items() if self._metrics else ():
            self._settlements.setdefault(queue, Settlement()).metrics += calls
        if self.logs is not None:
            self.logs.take(self._settlements, self.worker)
        taken, self._settlements = self._settlements, {}
        return taken

    def _begin_counts(self, settlements: Mapping[str, Settlement]) -> bytes | None:
        """Put what will be counted and not sent into shared memory. None: nothing is, nor was. Needs the lock."""
        dump = self._metrics.dump() if self._metrics else b""
        if not dump and not self._has_counts:
            return None
        # Of any job whose outcome is in there, unless its id is too long for shared memory.
        job_id = next(filter(None, (settlement.any_outcome_id() for settlement in settlements.values())), b"")
        self._shared.begin_counts(dump, job_id if len(job_id) <= MAX_ID_BYTES else b"")
        return dump

    def _note_perhaps_settled(self, settlements: Mapping[str, Settlement]) -> None:
        sent = [job_id for settlement in settlements.values() for job_id in settlement.job_ids()]
        self._perhaps_settled.update(job_id.decode(errors="replace") for job_id in sent)

    def _on_stale(self, job_ids: Sequence[str]) -> None:
        """Jobs that we settled are not ours any more: others have them, or Redis has older data."""
        stale = [job_id for job_id in job_ids if job_id not in self._perhaps_settled]
        if stale:
            self.reconcile_soon()
            signals.job_stale.send_robust(WorkerSession, job_ids=stale, worker=self.worker)

    def hold(self, fetched: ClaimResult, *, asked_at: float) -> None:
        """Take the claimed jobs. Raises BrokerUnavailable if the reply is read late: this process was frozen, and its
        jobs may belong to other workers now. It is in time shortly after it was asked for, and while the lease is valid
        that our supervisor has renewed since.
        """
        now, lease_seconds = time.monotonic(), self._config.lease_seconds
        if now - asked_at > lease_seconds / 2 and now - self._shared.renewed_at > lease_seconds * 2 / 3:
            self.mark_uncertain()
            raise BrokerUnavailable(
                f"The reply to a claim was read after {now - asked_at:.1f} s, too late to be valid."
            )
        with self._lock:
            for claimed in fetched.claimed:
                (self._timed.add if claimed.has_times else self._timed.discard)(claimed.queue)
                for job_id in claimed.ids:
                    self._held[job_id] = claimed.queue
        if fetched.found:
            self._last_queue = fetched.claimed[-1].queue
            self._reconciler.note_jobs()

    def settle(self) -> None:
        """Send all outcomes, without claiming. Raises BrokerUnavailable."""
        with self._round_trip:  # outcomes that another thread is sending come back if that fails
            if self._settlements or (self.logs is not None and not self.logs.is_empty):
                fetched = self.fetch(0, idle=0)
                if fetched.error is not None:
                    raise fetched.error

    def send_logs(self, logs: Any) -> None:
        """Send what running jobs have logged, and no outcomes. Raises BrokerUnavailable."""
        settlements: dict[str, Settlement] = {}
        with self._round_trip:
            with self._lock:
                logs.take(settlements, self.worker)
            self._broker.claim(self.worker, (), 0, settlements=settlements)
            logs.confirm()

    def report_progress(self, reports: ProgressReports) -> None:
        """Write the progress of jobs, claimed under this name or a former one. Raises BrokerUnavailable."""
        for worker in {worker for worker, _, _ in reports}:
            of_worker = [(q, job, line) for (w, q, job), line in reports.items() if w == worker]
            self._broker.report_progress(worker, of_worker)

    def report_metrics(self) -> None:
        """Send outcomes and metrics now, without claiming. Raises BrokerUnavailable."""
        with self._lock:
            are_due = self._metrics and self._metrics.make_due()
        if are_due:
            self.fetch(0, idle=0)
        self.settle()

    # -- reconciling

    @property
    def has_lost_lease(self) -> bool:
        """Whether our supervisor has found since we signed on that the lease has expired, or that we were frozen."""
        return self._shared.revoked is Revoked.ALL or -self._shared.renewed_at > self._signed_on_at

    def mark_uncertain(self) -> None:
        """A reply got lost: the processing list in Redis may have more or fewer jobs than we know of."""
        self._is_uncertain = True
        self._next_check_at = 0.0

    def reconcile_soon(self) -> None:
        """Redis may have lost data, or returned with older data."""
        self._may_differ = True
        self._reconciler.reconcile_soon()

    @property
    def needs_reconcile(self) -> bool:
        """Whether reconcile() would ask Redis now."""
        if self._may_differ or self._connections_lost_seen != self._broker.redis.connections.connections_lost:
            return True
        return self._is_uncertain and time.monotonic() >= self._next_check_at

    def reconcile(self, *, max_age_seconds: float | None = None) -> None:
        """Release jobs in our processing list that we do not know of, if there is a reason to compare.

        With `max_age_seconds`, also if the last comparison is older than that. For the thread that claims, and only
        while it has no claim under way.

        A claim whose reply got lost may still be on its way to a server that hangs. So we take a new name as soon as
        we hold nothing (rule 5): under the old name such a claim is rejected. Until then we compare from time to time.
        """
        with self._round_trip:
            is_old = max_age_seconds is not None and time.monotonic() - self._reconciled_at > max_age_seconds
            if not self.needs_reconcile and not is_old:
                return
            if not self._is_uncertain:
                self._release_unknown()
                return
            self.settle()
            self._release_unknown()
            self._next_check_at = time.monotonic() + CHECK_AGAIN_SECONDS
            with self._lock:
                if self._held or self._settlements:
                    return
            self.sign_off()
            self.sign_on()
            self._is_uncertain = False

    def reconcile_held(self) -> None:
        """Release jobs of our processing list that we do not hold. Any thread may call it.

        Does nothing while no job is held: the claim of an idle worker may be blocking in the server, and its jobs would
        be released.
        """
        with self._round_trip:
            if self._held:
                self._release_unknown()

    def _release_unknown(self) -> None:
        losses, self._may_differ = self._broker.redis.connections.connections_lost, False
        try:
            for queue, job_ids in self._broker.running(self.worker, self._queues).items():
                with self._lock:  # finished meanwhile: not held any more, and not settled yet
                    done = self._settlements[queue].job_ids() if queue in self._settlements else set()
                    unknown = [job_id for job_id in job_ids if job_id not in self._held and job_id not in done]
                if unknown:
                    self._broker.settle(self.worker, queue, released(unknown))
        except BrokerError:
            self._may_differ = True
            raise
        self._connections_lost_seen, self._reconciled_at = losses, time.monotonic()

    def _put_back(self, settlements: dict[str, Settlement]) -> None:
        """Keep what could not be sent for the next round trip, before what was added meanwhile. Needs the lock."""
        for queue, settlement in settlements.items():
            settlement.logs.clear()  # the lines that were not confirmed are sent again anyway
            if settlement:
                later = self._settlements.get(queue)
                self._settlements[queue] = settlement.joined(later) if later else settlement


def send_outcome(sender: type, run: Run, outcome: Outcome) -> None:
    """Send the signal of an outcome."""
    try:
        job = run.job
    except Exception:  # noqa: BLE001 - the record cannot be read, as the outcome says
        job = None
    if outcome.verb == ACKED:
        signals.job_succeeded.send_robust(sender, job=job, seconds=run.seconds, result=outcome.text)
    elif outcome.verb in (RETRIED, BURIED):
        send_failed(sender, job, run.id, outcome)
    elif outcome.verb == CANCELLED:
        signals.job_cancelled.send_robust(sender, job_id=run.id, queue=run.queue)
    elif outcome.verb == SUSPENDED:
        signals.job_suspended.send_robust(sender, job=job, job_id=run.id, seconds=outcome.seconds)
    else:
        signals.job_expired.send_robust(sender, job=job)


def _note_copy() -> None:
    for session in _sessions:
        session.is_copy = True


_sessions: WeakSet[WorkerSession] = WeakSet()
os.register_at_fork(after_in_child=_note_copy)  # to ask for the process id after each job would cost more

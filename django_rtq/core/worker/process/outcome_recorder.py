"""Records the outcome of a run: in the settlement for Redis, in shared memory for the supervisor, in the metrics.

Sends the signals of an outcome as well.
"""

from __future__ import annotations

from functools import partial

from django_rtq.core import signals
from django_rtq.core.broker.settlement import Report, Settlement
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.conf.config import Config
from django_rtq.core.jobs.failure import read_failures, shorten_failure
from django_rtq.core.jobs.outcome import drop_result, write_cancelled, write_expired
from django_rtq.core.worker.outcome import (
    ACKED,
    BURIED,
    CANCELLED,
    COUNTED_AS,
    EXPIRED,
    RETRIED,
    SUSPENDED,
    Acked,
    Buried,
    Cancelled,
    Expired,
    Outcome,
    Retried,
    Suspended,
    UnknownTask,
    decide_unknown,
    failure_line,
    send_failed,
    unknown_since,
)
from django_rtq.core.worker.process.run import Run
from django_rtq.core.worker.run_metrics import RunMetrics
from django_rtq.core.worker.shared_memory import TOMBSTONE_MS, SharedState
from django_rtq.exceptions import BrokerError


class OutcomeRecorder:
    """Records outcomes. The caller holds the lock of the session."""

    def __init__(self, config: Config, shared: SharedState, metrics: RunMetrics) -> None:
        self._config = config
        self._shared = shared
        self._metrics = metrics

    def record(self, settlement: Settlement, run: Run, outcome: Outcome) -> None:
        """Add an outcome to a settlement of the queue of the run."""
        if type(outcome) is not Acked:
            self._record_other(settlement, run, outcome)
            return
        if run.part is not None and run.part.has_grown:
            self._record_grown(settlement, run, outcome.result.encode())
            return
        if outcome.result:
            keep_ms, text = int(run.result_ttl(self._config) * 1000), outcome.result.encode()
            settlement.add_ack(run.job_id, keep_ms, text)
            if not self._shared.finish(run.entry, ACKED, keep_ms, text):
                if run.keeps_result and not run.may_run_once:  # another job takes it, and could never run without
                    self._shared.finish_without_result(run.entry, runs_again=True)
                else:
                    self._finish(run, Report(ACKED, run.job_id, keep_ms, drop_result(text)))
        else:
            settlement.add_ack(run.job_id, TOMBSTONE_MS, b"")
            self._shared.finish_without_result(run.entry)
        self._metrics.add_done(run, run.wait_ms)

    def _record_grown(self, settlement: Settlement, run: Run, text: bytes) -> None:
        """Of a job that has added steps to its workflow: Redis takes it only with them. See finish_members.lua."""
        keep_ms = int(run.result_ttl(self._config) * 1000) if text else TOMBSTONE_MS
        settlement.add_ack(run.job_id, -1 - keep_ms, text)
        if not self._shared.finish(run.entry, ACKED, -1 - keep_ms, text):
            self._shared.finish_without_result(run.entry, runs_again=True)
        self._metrics.add_done(run, run.wait_ms)

    def _record_other(self, settlement: Settlement, run: Run, outcome: Outcome) -> None:
        report = self._report(run, outcome)
        settlement.add(report)
        self._finish(run, report)
        if counted := COUNTED_AS.get(report.verb):
            self._metrics.add_failed(run, *counted)

    def _report(self, run: Run, outcome: Outcome) -> Report:
        if isinstance(outcome, Retried | Buried):
            at_ms = run.now_ms + int(run.seconds * 1000)
            line = failure_line(
                outcome.error, at_ms=at_ms, attempt=run.attempt, worker=run.worker, seconds=run.seconds,
                together=run.together_failed,
            )  # fmt: skip
            delay_ms = int(outcome.delay_seconds * 1000) if isinstance(outcome, Retried) else 0
            verb = RETRIED if isinstance(outcome, Retried) else BURIED
            return Report(verb, run.job_id, delay_ms, line.encode(), int(outcome.is_counted))
        if isinstance(outcome, Suspended):
            return Report(SUSPENDED, run.job_id, int(outcome.seconds * 1000), outcome.waits_for.encode())
        if isinstance(outcome, Expired):
            return Report(EXPIRED, run.job_id, TOMBSTONE_MS, write_expired(run.task_name).encode())
        keep_ms = max(int(run.result_ttl(self._config) * 1000), TOMBSTONE_MS)
        return Report(CANCELLED, run.job_id, keep_ms, write_cancelled(run.task_name, run.attempt).encode())

    def _finish(self, run: Run, report: Report) -> None:
        """Write the outcome to shared memory, shortened if need be: the supervisor reads it if we are killed."""
        verb, _, ms, text, counted = report
        finish = partial(self._shared.finish, run.entry, verb, ms, is_counted=bool(counted), attempt=run.attempt)
        if not finish(text) and not (verb in (RETRIED, BURIED) and finish(shorten_failure(text))):
            finish()


def decide_unknown_task(broker: WorkerBroker, run: Run, outcome: UnknownTask) -> Retried | Buried:
    """Tell Redis that this worker does not know the task, ask since when the job has met such workers, and decide.

    That is rare, so it is not part of a claim. If the job was requeued since then, the time starts again.
    """
    try:
        failures = broker.note_unknown_task(run.queue, run.job_id, run.task_name, run.worker)
        since_ms = unknown_since(read_failures(failures))
    except BrokerError:
        since_ms = None
    waited_ms = 0 if since_ms is None else run.now_ms - max(since_ms, run.ready_ms)
    longest_seconds = broker.config.unknown_task_timeout
    return decide_unknown(outcome.error, waited_seconds=waited_ms / 1000, longest_seconds=longest_seconds)


def has_receivers(outcome: Outcome) -> bool:
    """Whether the signal of an outcome may have receivers: that of a success only if the project connects one."""
    return type(outcome) is not Acked or bool(signals.job_succeeded.receivers)


def send_outcome(sender: type, run: Run, outcome: Outcome) -> None:
    """Send the signal of an outcome."""
    try:
        job = run.job
    except Exception:  # noqa: BLE001 - the record cannot be read, as the outcome says
        job = None
    if isinstance(outcome, Acked):
        signals.job_succeeded.send_robust(sender, job=job, seconds=run.seconds, result=outcome.result)
    elif isinstance(outcome, Retried | Buried):
        send_failed(sender, job, run.id, outcome)
    elif isinstance(outcome, Cancelled):
        signals.job_cancelled.send_robust(sender, job_id=run.id, queue=run.queue)
    elif isinstance(outcome, Suspended):
        signals.job_suspended.send_robust(sender, job=run.job, job_id=run.id, seconds=outcome.seconds)
    else:
        signals.job_expired.send_robust(sender, job=job)

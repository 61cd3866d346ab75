"""Calls of append_log and report_progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.settlement import Settlement
from tests.protocol.model.outcomes import KEPT_LOGS, LIVE_MS
from tests.support.jobs import KEEP_MS, QUEUE, WORKER

if TYPE_CHECKING:
    from tests.protocol.model.parallel_run import ParallelRun

LINE = '[1,2,"INFO","shop","said"]'


def append(broker: Any, jobs: Any) -> None:
    """A worker sends a line of its first job, which is over."""
    part = (jobs[0].id, "token-1", KEEP_MS, 1, LINE)
    broker.settle(WORKER, QUEUE, Settlement(logs=[part]))


def report_progress(broker: Any, jobs: Any) -> None:
    """A worker says how far its first job is."""
    broker.report_progress(WORKER, [(QUEUE, jobs[0].id, '{"done":1,"total":2,"text":""}')])


def append_log(
    parallel: ParallelRun, queue: str, worker: str, job_id: str, part: str, *lines: str, over_ms: int | str = ""
) -> None:
    """Send lines in the model and in Redis."""
    parallel.models[queue].outcomes.append_log(worker, job_id, part, over_ms, lines)
    arguments = (LIVE_MS, KEPT_LOGS, job_id, part, over_ms, len(lines), *lines)
    command = SCRIPTS["append_log"].call(parallel.broker.keys.of(queue), arguments, worker=worker)
    parallel.same(parallel.broker.redis.execute_one(command), [])

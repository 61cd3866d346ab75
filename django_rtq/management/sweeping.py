"""Requeueing or discarding many dead letters, a limited number a call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from django_rtq.exceptions import BrokerError
from django_rtq.management.progress import ProgressLine

AT_ONCE = 100  # of one call: others wait for Redis too

#: Inspector.requeue or Inspector.discard: queue and ids in, the ids that it did out.
Act = Callable[[str, Sequence[str]], list[str]]


@dataclass(slots=True)
class BulkResult:
    """What became of a sweep. What was done before it stopped stays done."""

    done: list[str] = field(default_factory=list)  # ids
    stopped_by: BrokerError | KeyboardInterrupt | None = None  # why it did not get to its end


def sweep(act: Act, letters: Iterable[tuple[str, str]], progress: ProgressLine) -> BulkResult:
    """Act on these (queue, id) pairs. Raises nothing that would hide what was done.

    The pairs are a snapshot: a job that dies once more meanwhile is not taken twice.
    """
    by_queue: dict[str, list[str]] = {}
    for queue, job_id in letters:
        by_queue.setdefault(queue, []).append(job_id)
    swept = BulkResult()
    try:
        for queue, job_ids in by_queue.items():
            for step in _steps(job_ids):
                swept.done += act(queue, step)
                progress.show(len(swept.done))
    except (BrokerError, KeyboardInterrupt) as error:
        swept.stopped_by = error
    return swept


def sweep_ids(act: Act, queues: Iterable[str], job_ids: Sequence[str]) -> BulkResult:
    """Act on jobs of which nobody said in which of these queues they are. Raises nothing, as sweep does."""
    swept, left = BulkResult(), dict.fromkeys(job_ids)
    try:
        for queue in queues:
            for step in _steps(list(left)):
                done = act(queue, step)
                swept.done += done
                for job_id in done:
                    del left[job_id]
    except (BrokerError, KeyboardInterrupt) as error:
        swept.stopped_by = error
    return swept


def _steps(job_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (job_ids[start : start + AT_ONCE] for start in range(0, len(job_ids), AT_ONCE))

"""Finds and cancels one job: the commands and what Redis replies, for threads and for coroutines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django_rtq.broker.broker import Broker
from django_rtq.broker.control import wake_supervisor_of
from django_rtq.broker.redis.steps import Steps, checked
from django_rtq.broker.scripts import SCRIPTS
from django_rtq.exceptions import JobNotFound, WrongState
from django_rtq.inspector.details import JobDetails, read_found
from django_rtq.jobs.job import CancelAnswer
from django_rtq.jobs.outcome import CANCELLED_UNRUN

_NOT_CANCELLED = {
    "dead": "is dead: discard it instead.",
    "finished": "has finished already.",
}


def find(broker: Broker, job_id: str, queue: str | None) -> Steps[JobDetails]:
    """All that is known of a job, in any queue unless it is named. Raises JobNotFound."""
    names = yield from _names(broker, queue)
    calls = [SCRIPTS["find_job"].call(broker.keys.of(name), (job_id,)) for name in names]
    return first_found(job_id, names, checked((yield calls)))


def cancel(broker: Broker, job_id: str, queue: str | None, *, terminate: bool) -> Steps[tuple[CancelAnswer, str]]:
    """Cancel a job, or ask it to stop. Returns the queue, too, if the job was cancelled now.

    Raises JobNotFound and WrongState.
    """
    config = broker.config
    arguments = (
        config.max_results,
        job_id,
        config.cancelled_ttl_ms,
        CANCELLED_UNRUN,
        "terminate" if terminate else "ask",
    )
    for name in (yield from _names(broker, queue)):
        ((word, worker),) = checked((yield [SCRIPTS["cancel"].call(broker.keys.of(name), arguments)]))
        answer = word.decode()
        if answer == "asked":
            yield from wake_supervisor_of(broker, worker.decode())  # it need not wait for its next heartbeat
            return CancelAnswer.ASKED, ""
        if answer in ("cancelled", "already"):
            return CancelAnswer.CANCELLED, name if answer == "cancelled" else ""
        if answer != "missing":
            raise WrongState(job_id, _NOT_CANCELLED[answer])
    raise JobNotFound(job_id)


def first_found(job_id: str, queues: Sequence[str], replies: Sequence[Any]) -> JobDetails:
    """The job, from the replies of the script `find_job` for these queues. Raises JobNotFound."""
    for queue, reply in zip(queues, replies, strict=True):
        details = read_found(job_id, queue, reply)
        if details:
            return details
    raise JobNotFound(job_id)


def _names(broker: Broker, queue: str | None) -> Steps[list[str]]:
    if queue is not None:
        return [queue]
    (names,) = checked((yield [("SMEMBERS", broker.keys.queues)]))
    return sorted(name.decode() for name in names)


def why_not_now(answer: str) -> str:
    """What an answer of the script `run_now` means, behind the name of the job."""
    verb, _, first = answer.partition(" ")
    if verb == "after":
        return f"waits until job {first} has ended: only one job of the same unique key may be alive."
    if verb == "paused":
        return "waits because its task is paused. Resume the task first."
    return "has finished already." if verb == "finished" else "is not scheduled or retrying (any more)."

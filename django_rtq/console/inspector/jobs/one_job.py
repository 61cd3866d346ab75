"""Finds, awaits and cancels one job: the commands and what Redis replies, for threads and for coroutines.

A job is first looked for in the queue that the caller knows. If it is not there, it may have been requeued elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django_rtq.console.inspector.actions import ACTIONS
from django_rtq.console.inspector.details import FinishedStep, JobDetails, read_found
from django_rtq.console.inspector.jobs.queue_position import QueuePosition
from django_rtq.console.log_lines import MAX_LINES, LogLine
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.cancelling import cancel_call, wake_supervisor_of
from django_rtq.core.broker.keys import read_queue_names
from django_rtq.core.broker.redis.commands import Command, Steps, checked
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.wait import await_end, wait_for_end
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.job import CancelAnswer
from django_rtq.core.jobs.record import check_body
from django_rtq.exceptions import JobNotFound, WrongState
from django_rtq.workflows.steps.store import MAX_EVENT_BYTES, MAX_EVENTS, MAX_UNREAD, send_command


def find(broker: Broker, job_id: str, queue: str | None) -> Steps[JobDetails]:
    """All that is known of a job, in any queue; in the named one first. Raises JobNotFound."""
    check_id(job_id)
    names = yield from _names(broker, queue)
    calls = [SCRIPTS["find_job"].call(broker.keys.of(name), (job_id,)) for name in names]
    try:
        return first_found(job_id, names, checked((yield calls)))
    except JobNotFound:
        if queue is None:
            raise
    return (yield from find(broker, job_id, None))


def find_with_position(broker: Broker, job_id: str, queue: str | None) -> Steps[tuple[JobDetails, QueuePosition]]:
    """find() with its log, its finished steps, and what the job waits for if it waits. Raises JobNotFound."""
    check_id(job_id)
    names = yield from _names(broker, queue)
    calls: list[Command] = []
    for keys in map(broker.keys.of, names):
        calls += [SCRIPTS[name].call(keys, (job_id,)) for name in ("find_job", "queue_position")]
        calls.append(("LRANGE", keys.log_of(job_id), -MAX_LINES, -1))
        calls.append(("HGETALL", keys.steps + job_id.encode()))
    replies = checked((yield calls))
    try:
        details = first_found(job_id, names, replies[::4])
    except JobNotFound:
        if queue is None:
            raise
        return (yield from find_with_position(broker, job_id, None))
    place = 4 * names.index(details.queue)
    lines = [line for stored in replies[place + 2] if (line := LogLine.read(stored))]
    steps = FinishedStep.read_all(replies[place + 3])
    return replace(details, log=lines, steps=steps), QueuePosition.read(replies[place + 1])


def wait(broker: Broker, job_id: str, queue: str, timeout: float | None) -> JobDetails | None:
    """Block until a job is over, for `timeout` seconds at most: then None. Raises JobNotFound."""
    check_id(job_id)
    until = None if timeout is None else time.monotonic() + timeout
    while True:
        query = SCRIPTS["find_job"].call(broker.keys.of(queue), (job_id,))
        reply = wait_for_end(broker, queue, job_id, _left(until), query)
        details = read_found(job_id, queue, reply) if reply else None
        if details or not reply:
            return details
        queue = broker.redis.run(find(broker, job_id, None)).queue


async def await_job(broker: Broker, job_id: str, queue: str, timeout: float | None) -> JobDetails | None:
    """wait() for coroutines."""
    check_id(job_id)
    until = None if timeout is None else time.monotonic() + timeout
    while True:
        query = SCRIPTS["find_job"].call(broker.keys.of(queue), (job_id,))
        reply = await await_end(broker, queue, job_id, _left(until), query)
        details = read_found(job_id, queue, reply) if reply else None
        if details or not reply:
            return details
        queue = (await broker.async_redis.run(find(broker, job_id, None))).queue


def _left(until: float | None) -> float | None:
    return None if until is None else until - time.monotonic()


def cancel(broker: Broker, job_id: str, queue: str | None, *, terminate: bool) -> Steps[tuple[CancelAnswer, str]]:
    """Cancel a job, or ask it to stop. Returns the queue, too, if the job was cancelled now.

    Raises JobNotFound and WrongState.
    """
    check_id(job_id)
    has_finished = False
    for name in (yield from _names(broker, queue)):
        call = cancel_call(broker.keys.of(name), broker.config, job_id, "terminate" if terminate else "ask")
        ((word, worker),) = checked((yield [call]))
        answer = word.decode()
        if answer == "asked":
            yield from wake_supervisor_of(broker.keys, worker.decode())  # it need not wait for its next heartbeat
            return CancelAnswer.ASKED, ""
        if answer in ("cancelled", "already"):
            return CancelAnswer.CANCELLED, name if answer == "cancelled" else ""
        if answer == "dead":
            raise WrongState(job_id, ACTIONS["cancel"].why_not(answer))
        has_finished = has_finished or answer == "finished"  # or it was requeued in one of the other queues
    place = queue and (yield from _other_place(broker, job_id, queue))
    if place:
        return (yield from cancel(broker, job_id, place, terminate=terminate))
    raise WrongState(job_id, ACTIONS["cancel"].why_not("finished")) if has_finished else JobNotFound(job_id)


def send(broker: Broker, job_id: str, queue: str | None, event: str, token: str, value: str) -> Steps[str]:
    """Give a job an event. Returns its queue. Raises JobNotFound and WrongState."""
    check_id(job_id)
    has_finished = False
    for name in (yield from _names(broker, queue)):
        (word,) = checked((yield [send_command(broker.keys.of(name), job_id, event, token, value)]))
        answer = word.decode()
        if answer == "sent":
            return name
        if answer in _NOT_SENT:
            raise WrongState(job_id, _NOT_SENT[answer].format(event=event))
        has_finished = has_finished or answer == "finished"
    place = queue and (yield from _other_place(broker, job_id, queue))
    if place:
        return (yield from send(broker, job_id, place, event, token, value))
    raise WrongState(job_id, "is over: it gets no event any more.") if has_finished else JobNotFound(job_id)


_NOT_SENT = {
    "late": "has gone on without event {event!r}: its time-out is over.",
    "full": f"has {MAX_UNREAD} events that it has not read, or has got {MAX_EVENTS:,}: it takes no more.",
    "large": f"has got events of {MAX_EVENT_BYTES:,} bytes: it takes no more.",
}


def _other_place(broker: Broker, job_id: str, queue: str) -> Steps[str]:
    """The other queue in which a job is; "" if there is none."""
    try:
        place = (yield from find(broker, job_id, None)).queue
    except JobNotFound:
        return ""
    return "" if place == queue else place


def first_found(job_id: str, queues: Sequence[str], replies: Sequence[Any]) -> JobDetails:
    """The job, from the replies of the script `find_job` for these queues. Raises JobNotFound."""
    for queue, reply in zip(queues, replies, strict=True):
        details = read_found(job_id, queue, reply)
        if details:
            return details
    raise JobNotFound(job_id)


def check_id(job_id: Any) -> None:
    """Raises JobNotFound for what is no text, and for half a surrogate pair, which Redis cannot store."""
    if not isinstance(job_id, str):
        raise JobNotFound(job_id)
    try:
        job_id.encode()
    except UnicodeEncodeError as error:
        raise JobNotFound(job_id) from error


def _names(broker: Broker, queue: str | None) -> Steps[list[str]]:
    if queue is not None:
        return [queue]
    (names,) = checked((yield [("SMEMBERS", broker.keys.queues)]))
    return read_queue_names(names)


def changed_body(job: JobDetails, args: Sequence[Any], kwargs: Mapping[str, Any], *, most_bytes: int) -> str:
    """The record of a job with other arguments, without its header. Raises Unserializable and PayloadTooLarge."""
    call = {"args": list(args), "kwargs": dict(kwargs), "headers": job.headers}
    given = {name: value for name, value in call.items() if value}
    body = serializer.dumps({"task": job.task, **given, **job.options}, what=f"the call of {job.task}")
    check_body(job.task, body, most_bytes)
    return body

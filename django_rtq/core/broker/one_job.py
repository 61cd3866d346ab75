"""Finds, awaits and cancels one job: the commands and what Redis replies, for threads and for coroutines.

A job is first looked for in the queue that the caller knows. If it is not there, it may have been requeued elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from functools import partial
from typing import Any, NamedTuple

from asgiref.sync import sync_to_async

from django_rtq.core import signals
from django_rtq.core.broker.broker import MAX_WAIT_SECONDS, Broker
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.control import NOT_CANCELLED, cancel_call, wake_supervisor_of
from django_rtq.core.broker.keys import read_queue_names
from django_rtq.core.broker.redis.commands import Command, Steps, Token, arun_steps, checked, run_steps
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.extension import parts, required
from django_rtq.core.jobs.details import JobDetails, read_found
from django_rtq.core.jobs.job import CancelAnswer, is_member, new_job_id
from django_rtq.exceptions import BrokerUnavailable, JobNotFound, ResultTimeout, WrongState

MAX_LOSSES = 2  # of connections, in a row: one to ask and one to wait, which a proxy or a failover ends


class JobAccess:
    """What handles ask of a broker. Any thread may use it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def find(self, job_id: str, queue: str | None = None) -> JobDetails:
        """All that is known of a job, in any queue; in the named one first. Raises JobNotFound."""
        return self._broker.redis.run(find(self._broker, job_id, queue))

    async def afind(self, job_id: str, queue: str | None = None) -> JobDetails:
        """find() for coroutines."""
        return await self._broker.async_redis.run(find(self._broker, job_id, queue))

    def wait(self, job_id: str, queue: str, timeout: float | None) -> JobDetails:
        """Block until the job is over, for `timeout` seconds at most. Raises JobNotFound, ResultTimeout."""
        return run_steps(until_over(self._broker, job_id, queue, timeout), partial(_take_step, self._broker))

    async def await_end(self, job_id: str, queue: str, timeout: float | None) -> JobDetails:
        """wait() for coroutines. Those of one event loop share a connection while they wait."""
        return await arun_steps(until_over(self._broker, job_id, queue, timeout), partial(_atake_step, self._broker))

    def cancel(self, job_id: str, queue: str | None = None, *, terminate: bool = False) -> CancelAnswer:
        """Cancel a waiting job; ask a running job to stop, or with `terminate` have its process killed.

        Raises JobNotFound, and WrongState for a job that is finished or dead.
        """
        answer, cancelled_in = self._broker.redis.run(cancel(self._broker, job_id, queue, terminate=terminate))
        if cancelled_in:
            signals.job_cancelled.send_robust(type(self), job_id=job_id, queue=cancelled_in)
            self._tell_apps(cancelled_in, job_id)
        return answer

    async def acancel(self, job_id: str, queue: str | None = None, *, terminate: bool = False) -> CancelAnswer:
        """cancel() for coroutines."""
        steps = cancel(self._broker, job_id, queue, terminate=terminate)
        answer, cancelled_in = await self._broker.async_redis.run(steps)
        if cancelled_in:
            await signals.job_cancelled.asend_robust(type(self), job_id=job_id, queue=cancelled_in)
            if is_member(job_id):
                await sync_to_async(self._tell_apps)(cancelled_in, job_id)
        return answer

    def _tell_apps(self, queue: str, job_id: str) -> None:
        if is_member(job_id):
            for workflows in parts("workflows"):
                workflows.tell_cancelled(self._broker, queue, job_id)

    def send(
        self, job_id: str, event: str, value: Any = None, *, queue: str | None = None, token: str | None = None
    ) -> None:
        """Give a job an event, for which it waits now or later: see JobHandle.send()."""
        self._broker.redis.run(required("send_event")(self._broker, job_id, queue, event, value, token))

    async def asend(
        self, job_id: str, event: str, value: Any = None, *, queue: str | None = None, token: str | None = None
    ) -> None:
        """send() for coroutines."""
        await self._broker.async_redis.run(required("send_event")(self._broker, job_id, queue, event, value, token))


def access_to_jobs(place: str) -> JobAccess:
    """That of a broker of this process, for a backend in TASKS or a shard; "": for RTQ["REDIS"]."""
    broker = get_broker(place)
    of_tests: JobAccess | None = getattr(broker, "access", None)
    return JobAccess(broker) if of_tests is None else of_tests


def find(broker: Broker, job_id: str, queue: str | None) -> Steps[JobDetails]:
    """All that is known of a job, in any queue; in the named one first. Raises JobNotFound."""
    check_id(job_id)
    names = yield from names_to_ask(broker, queue)
    replies = checked((yield [SCRIPTS["find_job"].call(broker.keys.of(name), (job_id,)) for name in names]))
    for name, reply in zip(names, replies, strict=True):
        if details := read_found(job_id, name, reply):
            return details
    if queue is None:
        raise JobNotFound(job_id)
    return (yield from find(broker, job_id, None))


def cancel(broker: Broker, job_id: str, queue: str | None, *, terminate: bool) -> Steps[tuple[CancelAnswer, str]]:
    """Cancel a job, or ask it to stop. Returns the queue, too, if the job was cancelled now.

    Raises JobNotFound and WrongState.
    """
    check_id(job_id)
    has_finished = False
    for name in (yield from names_to_ask(broker, queue)):
        call = cancel_call(broker.keys.of(name), broker.config, job_id, "terminate" if terminate else "ask")
        ((word, worker),) = checked((yield [call]))
        answer = word.decode()
        if answer == "asked":
            yield from wake_supervisor_of(broker.keys, worker.decode())  # it need not wait for its next heartbeat
            return CancelAnswer.ASKED, ""
        if answer in ("cancelled", "already"):
            return CancelAnswer.CANCELLED, name if answer == "cancelled" else ""
        if answer == "dead":
            raise WrongState(job_id, NOT_CANCELLED[answer])
        has_finished = has_finished or answer == "finished"  # or it was requeued in one of the other queues
    place = queue and (yield from other_place(broker, job_id, queue))
    if place:
        return (yield from cancel(broker, job_id, place, terminate=terminate))
    raise WrongState(job_id, NOT_CANCELLED["finished"]) if has_finished else JobNotFound(job_id)


def other_place(broker: Broker, job_id: str, queue: str) -> Steps[str]:
    """The other queue in which a job is; "" if there is none."""
    try:
        place = (yield from find(broker, job_id, None)).queue
    except JobNotFound:
        return ""
    return "" if place == queue else place


def check_id(job_id: Any) -> None:
    """Raises JobNotFound for what is no text, and for half a surrogate pair, which Redis cannot store."""
    if not isinstance(job_id, str):
        raise JobNotFound(job_id)
    try:
        job_id.encode()
    except UnicodeEncodeError as error:
        raise JobNotFound(job_id) from error


def names_to_ask(broker: Broker, queue: str | None) -> Steps[list[str]]:
    """The named queue, or all."""
    if queue is not None:
        return [queue]
    (names,) = checked((yield [("SMEMBERS", broker.keys.queues)]))
    return read_queue_names(names)


# -- waiting for the end of a job, in any process, without polling


class _Wait(NamedTuple):
    """Instead of commands: wait for the end of a job. The reply says whether it came, or why that is unknown."""

    token: Token
    seconds: float


def until_over(
    broker: Broker, job_id: str, queue: str, timeout: float | None
) -> Generator[_Wait | Sequence[Command], Any, JobDetails]:
    """Wait until a job is succeeded, dead, cancelled, expired or forgotten.

    Goes on when connections are lost, MAX_LOSSES in a row. Raises JobNotFound, BrokerError; ResultTimeout, which says
    where the job is, and why it waits.
    """
    check_id(job_id)
    until, losses = None if timeout is None else time.monotonic() + timeout, 0
    while True:
        query = SCRIPTS["find_job"].call(broker.keys.of(queue), (job_id,))
        left = MAX_WAIT_SECONDS if until is None else min(MAX_WAIT_SECONDS, until - time.monotonic())
        token = _token(broker, queue, job_id, int(left * 1000) + 1000 if left > 0 else 0)
        answer, reply = yield [token.put, query]
        if answer == b"wait":
            if left <= 0:
                break
            answer = yield _Wait(token, left)
            (reply,) = (yield [query]) if answer is True else (None,)
        if isinstance(answer, BrokerUnavailable) and losses < MAX_LOSSES:
            losses += 1
            continue
        checked([answer, reply])
        losses = 0
        if answer is False:
            continue
        if details := read_found(job_id, queue, reply):
            return details
        queue = (yield from find(broker, job_id, None)).queue
    if not timeout:
        raise ResultTimeout(job_id, "is not over after 0 s.")
    details, reason = (yield from find(broker, job_id, queue)), ""
    for explain in parts("waiting_reason"):
        reason = yield from explain(broker, details)
    if not details.state.is_final:
        where = f"it is {details.state} in {details.queue}.{reason and ' '}{reason}"
        raise ResultTimeout(job_id, f"is not over after {timeout:g} s: {where}")
    return details


def _take_step(broker: Broker, step: _Wait | Sequence[Command]) -> Any:
    if not isinstance(step, _Wait):
        return broker.redis.execute_each(step, resend=True)
    try:
        return broker.waits.wait(step.token, step.seconds)
    except BrokerUnavailable as error:
        return error


async def _atake_step(broker: Broker, step: _Wait | Sequence[Command]) -> Any:
    if not isinstance(step, _Wait):
        return await broker.async_redis.execute_each(step)
    try:
        return await await_token(broker, step.token, step.seconds)
    except BrokerUnavailable as error:
        return error


async def await_token(broker: Broker, token: Token, seconds: float) -> bool:
    """Wait for a token, for so many seconds at most. Returns whether it came. Raises BrokerError."""

    def own_token() -> Token:  # of a job that there is not: it is over
        return _token(broker, broker.config.default_queue, new_job_id(), int(MAX_WAIT_SECONDS * 1000))

    return await broker.async_redis.wait(token, seconds, own_token)


def _token(broker: Broker, queue: str, job_id: str, wait_ms: int) -> Token:
    """What comes at the end of a job."""
    keys = broker.keys.of(queue)
    return Token(keys.finished_signal + job_id.encode(), SCRIPTS["register_waiter"].call(keys, (job_id, wait_ms)))

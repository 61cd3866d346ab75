"""Blocks until a job finishes, in any process, without polling.

Register, block, read: one packet on a connection that is kept. If the job is over, the script leaves a token, so that
nothing blocks. Asking first would be a round trip more for each job that is not over, which is the usual case.
"""

from __future__ import annotations

import time
from typing import Any

from django_rtq.core.broker.broker import MAX_WAIT_SECONDS, Broker
from django_rtq.core.broker.redis.commands import Command, Token
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.jobs.job import new_job_id
from django_rtq.exceptions import BrokerError, BrokerFull, BrokerUnavailable

FULL_SERVER_SECONDS = 1.0  # between two questions while a full server refuses blocking commands


def wait_for_end(broker: Broker, queue: str, job_id: str, timeout: float | None, query: Command) -> Any:
    """Block until a job is succeeded, dead, cancelled, expired or forgotten. Returns the reply to `query`, sent then.

    None: `timeout` seconds have passed. Mostly all of this is one round trip. Reconnects once when the connection is
    lost. Raises BrokerError.
    """
    until = None if timeout is None else time.monotonic() + timeout
    is_second_try = False
    while True:
        left = MAX_WAIT_SECONDS if until is None else min(MAX_WAIT_SECONDS, until - time.monotonic())
        if left <= 0:
            status, reply = broker.redis.execute([_register(broker, queue, job_id, 0), query], resend=True)
            return reply if status == b"over" else None
        try:
            is_over, reply = _block(broker, queue, job_id, left, query)
        except BrokerFull:
            time.sleep(min(left, FULL_SERVER_SECONDS))
        except BrokerUnavailable:
            if is_second_try:
                raise
            is_second_try = True  # a proxy or a failover
        else:
            if is_over:
                return reply
            is_second_try = False


async def await_end(broker: Broker, queue: str, job_id: str, timeout: float | None, query: Command) -> Any:
    """wait_for_end() for coroutines. Those of one event loop share a connection while they wait."""
    until = None if timeout is None else time.monotonic() + timeout
    is_second_try = False
    while True:
        left = MAX_WAIT_SECONDS if until is None else min(MAX_WAIT_SECONDS, until - time.monotonic())
        wait_ms = int(left * 1000) + 1000 if left > 0 else 0
        status, reply = await broker.async_redis.execute([_register(broker, queue, job_id, wait_ms), query])
        if status == b"over" or left <= 0:
            return reply if status == b"over" else None
        try:
            if await broker.token_waits.wait(_token(broker, queue, job_id), left, lambda: _own_token(broker, queue)):
                return (await broker.async_redis.execute([query]))[0]
        except BrokerUnavailable:
            if is_second_try:
                raise
            is_second_try = True  # a proxy or a failover
        else:
            is_second_try = False


async def await_token(broker: Broker, token: Token, seconds: float) -> None:
    """Wait for a token of an app, for so many seconds at most. Raises BrokerError."""
    await broker.token_waits.wait(token, seconds, lambda: _own_token(broker, broker.config.default_queue))


def _token(broker: Broker, queue: str, job_id: str) -> Token:
    key = broker.keys.of(queue).finished_signal + job_id.encode()
    return Token(key, _register(broker, queue, job_id, int(MAX_WAIT_SECONDS * 1000)))


def _own_token(broker: Broker, queue: str) -> Token:
    return _token(broker, queue, new_job_id())  # of a job that there is not: it is over


def _block(broker: Broker, queue: str, job_id: str, seconds: float, query: Command) -> tuple[bool, Any]:
    """Register, block until there is a token, and ask. Returns whether the job is over, and the reply to `query`."""
    signal = broker.keys.of(queue).finished_signal + job_id.encode()
    status, token, reply = broker.waits.execute_blocking(
        _register(broker, queue, job_id, int(seconds * 1000) + 1000),
        # The token stays for others that wait. When the job is over already, the script has put one there.
        ("BLMOVE", signal, signal, "LEFT", "LEFT", max(0.001, round(seconds, 3))),
        query,
    )
    is_over = status == b"over"
    for answer in (reply,) if is_over else (token, reply):
        if isinstance(answer, BrokerError):
            raise answer
    return is_over or token is not None, reply


def _register(broker: Broker, queue: str, job_id: str, wait_ms: int) -> Command:
    return SCRIPTS["register_waiter"].call(broker.keys.of(queue), (job_id, wait_ms))

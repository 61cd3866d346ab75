"""Waiting for the end of a job, from any process, without asking again and again."""

from __future__ import annotations

import time
from typing import Any

from redis.exceptions import RedisError

from django_rtq.broker.broker import Broker
from django_rtq.broker.scripts import SCRIPTS
from django_rtq.broker.wire import exchange, translate

SLICE_SECONDS = 30.0  # after so long it asks once more, should the token have got lost
_TOKEN_MS = 60_000  # for others who wait, and come late


def wait_for_end(broker: Broker, queue: str, job_id: str, timeout: float | None) -> bool:
    """Block until a job is over: succeeded, dead, cancelled, expired or gone. False: it took longer than `timeout`.

    Raises BrokerUnavailable.
    """
    until = None if timeout is None else time.monotonic() + timeout
    while True:
        left = SLICE_SECONDS if until is None else min(SLICE_SECONDS, until - time.monotonic())
        wait_ms = max(0, int(left * 1000))
        question = SCRIPTS["wait"].call(broker.keys.of(queue), (job_id, wait_ms + 1000))
        if broker.wire.one(question, resend=True) == b"over":
            return True
        if left <= 0:
            return False
        _block(broker, broker.keys.of(queue).over + job_id.encode(), left)


def _block(broker: Broker, key: bytes, seconds: float) -> None:
    connection: Any = broker.recipe.blocking_connection(role="wait", block_seconds=SLICE_SECONDS)
    try:
        connection.connect()
        (reply,) = exchange(connection, [("BLPOP", key, max(0.001, round(seconds, 3)))])
        if reply is not None:
            exchange(connection, [("RPUSH", key, "over"), ("PEXPIRE", key, _TOKEN_MS)])
    except (RedisError, OSError) as error:
        raise translate(error) from error
    finally:
        connection.disconnect()

"""Waiting for the end of a job, from any process, without asking again and again."""

from __future__ import annotations

import time
from typing import Any

from redis.exceptions import RedisError

from django_rtq.broker.broker import Broker
from django_rtq.broker.redis.client import exchange, translate
from django_rtq.broker.scripts import SCRIPTS
from django_rtq.exceptions import BrokerFull, BrokerUnavailable

SLICE_SECONDS = 30.0  # after so long it asks once more, should the token have got lost
FULL_SECONDS = 1.0  # and so often where a full server lets nobody wait for a token


def wait_for_end(broker: Broker, queue: str, job_id: str, timeout: float | None) -> bool:
    """Block until a job is over: succeeded, dead, cancelled, expired or gone. False: it took longer than `timeout`.

    A connection that is cut meanwhile is made anew, once. Raises BrokerUnavailable.
    """
    until = None if timeout is None else time.monotonic() + timeout
    was_cut = False
    while True:
        left = SLICE_SECONDS if until is None else min(SLICE_SECONDS, until - time.monotonic())
        wait_ms = max(0, int(left * 1000)) + 1000
        question = SCRIPTS["register_waiter"].call(broker.keys.of(queue), (job_id, wait_ms))
        if broker.redis.execute_one(question, resend=True) == b"over":
            return True
        if left <= 0:
            return False
        try:
            _block(broker, broker.keys.of(queue).finished_signal + job_id.encode(), left)
            was_cut = False
        except BrokerUnavailable:
            if was_cut:
                raise
            was_cut = True  # a proxy, or a failover: the job may be over by now, so ask first


def _block(broker: Broker, key: bytes, seconds: float) -> None:
    """Until there is a token. It stays where it is, for others who wait."""
    connection: Any = broker.connection_settings.blocking_connection(role="wait", block_seconds=SLICE_SECONDS)
    try:
        connection.connect()
        (reply,) = exchange(connection, [("BLMOVE", key, key, "LEFT", "LEFT", max(0.001, round(seconds, 3)))])
    except (RedisError, OSError) as error:
        raise translate(error) from error
    finally:
        connection.disconnect()
    if isinstance(reply, RedisError):
        refusal = translate(reply)
        if not isinstance(refusal, BrokerFull):
            raise refusal from reply
        time.sleep(min(seconds, FULL_SECONDS))

"""Blocks until a job finishes, in any process, without polling."""

from __future__ import annotations

import time

from django_rtq.broker.broker import Broker
from django_rtq.broker.redis.blocking_reader import block_once
from django_rtq.broker.scripts import SCRIPTS
from django_rtq.exceptions import BrokerFull, BrokerUnavailable

BLOCK_SECONDS = 30.0  # then it asks again, in case the token was lost
FULL_SERVER_SECONDS = 1.0  # between two questions while a full server refuses blocking commands


def wait_for_end(broker: Broker, queue: str, job_id: str, timeout: float | None) -> bool:
    """Block until a job is succeeded, dead, cancelled, expired or forgotten. False: `timeout` seconds have passed.

    Reconnects once when the connection is lost. Raises BrokerUnavailable.
    """
    until = None if timeout is None else time.monotonic() + timeout
    is_second_try = False
    while True:
        left = BLOCK_SECONDS if until is None else min(BLOCK_SECONDS, until - time.monotonic())
        wait_ms = max(0, int(left * 1000)) + 1000
        register = SCRIPTS["register_waiter"].call(broker.keys.of(queue), (job_id, wait_ms))
        if broker.redis.execute_one(register, resend=True) == b"over":
            return True
        if left <= 0:
            return False
        try:
            _block(broker, broker.keys.of(queue).finished_signal + job_id.encode(), left)
            is_second_try = False
        except BrokerUnavailable:
            if is_second_try:
                raise
            is_second_try = True  # a proxy or a failover; the job may be over by now, so ask first


def _block(broker: Broker, key: bytes, seconds: float) -> None:
    """Wait for a token, and leave it there for other waiting processes."""
    command = ("BLMOVE", key, key, "LEFT", "LEFT", max(0.001, round(seconds, 3)))
    try:
        block_once(broker.connection_settings, command, role="wait", block_seconds=BLOCK_SECONDS)
    except BrokerFull:
        time.sleep(min(seconds, FULL_SERVER_SECONDS))

"""Asks a Redis server whether it can be used, and what endangers jobs in it."""

from __future__ import annotations

from typing import NamedTuple

from django_rtq.core.broker.keys import Keys
from django_rtq.core.broker.redis.client import RedisClient, clock_ms
from django_rtq.core.broker.redis.connections import check_server_mode, check_server_version, is_too_old_for, version_in
from django_rtq.core.broker.stored_format import check_format, read_format
from django_rtq.core.extension import parts
from django_rtq.exceptions import BrokerError


class ServerInfo(NamedTuple):
    """What a server has replied."""

    info: bytes  # to INFO; b"": managed servers forbid it, and so may ACLs
    now_ms: int  # its clock

    def problems(self) -> list[str]:
        """What endangers jobs in it, in words, as far as an app knows."""
        return [problem for problems_of in parts("server_problems") for problem in problems_of(self.info)]


def ask_server(redis: RedisClient, keys: Keys) -> ServerInfo:
    """What the server says of itself, in one round trip.

    Raises ConfigurationError for a server that cannot be used, such as a Redis Cluster, FormatMismatch for data of
    another version, BrokerRefused where waiting does not help, BrokerError.
    """
    commands = [("TIME",), ("HELLO",), ("INFO",), read_format(keys)]
    time, hello, info, stored_format = redis.execute_each(commands, resend=True)
    check_server_mode(hello, redis.in_settings, in_cluster=keys.in_cluster)
    if is_too_old_for(hello):
        check_server_version(version_in(info), redis.in_settings)
    if isinstance(time, BrokerError):
        raise time
    check_format(stored_format, keys)
    return ServerInfo(b"" if isinstance(info, BrokerError) else info, clock_ms(time))

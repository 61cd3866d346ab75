"""Why no connection can be made, where the address or a file in RTQ["REDIS"] is wrong: waiting does not fix that.

It looks only after connecting has failed, and so costs nothing otherwise.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from typing import Any

import redis
from redis import exceptions as redis_exceptions
from redis.sentinel import MasterNotFoundError

PROBE_SECONDS = 0.5
_CLOSED = re.compile(r"closed by server|reset by peer|while reading from", re.IGNORECASE)
_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_ca_path")
_SSL_REQUEST = b"\0\0\0\x08\x04\xd2\x16\x2f"  # of PostgreSQL, which answers S or N


def wrong_address(pool: redis.ConnectionPool, error: Exception) -> str | None:
    """What is wrong in RTQ["REDIS"], after this error of connecting; None: nothing that is certain."""
    options = pool.connection_kwargs
    if isinstance(error, MasterNotFoundError):
        return _unknown_service(pool, str(error))
    for name in _FILES:
        if options.get(name) and not os.access(options[name], os.R_OK):
            return f'RTQ["REDIS"] has {name}={options[name]!r}, a file that does not exist or cannot be read.'
    place = f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
    if isinstance(error, redis_exceptions.InvalidResponse):
        return f'RTQ["REDIS"] leads to {place}, where no Redis answers, but another server. Check host and port.'
    if not isinstance(error, redis_exceptions.ConnectionError) or not _CLOSED.search(str(error)):
        return None
    if "path" in options or "ssl_cert_reqs" in options:
        return None  # a Unix socket, or TLS already
    if _speaks_tls(options):
        return f'RTQ["REDIS"] leads to {place}, which speaks TLS. Write rediss:// (for Sentinels "ssl": True).'
    if _is_postgresql(options):
        return f'RTQ["REDIS"] leads to {place}, where PostgreSQL answers, no Redis. Check host and port.'
    return None


def _unknown_service(pool: Any, text: str) -> str | None:
    """Whether Sentinels answer that do not know the service."""
    if text.count(" - ") >= len(pool.sentinel_manager.sentinels):
        return None  # none has answered
    for sentinel in pool.sentinel_manager.sentinels:
        try:
            names = sentinel.sentinel_masters()
        except (redis_exceptions.RedisError, OSError):
            continue
        if pool.service_name in names:
            return None
        known = ", ".join(sorted(names)) or "none"
        return f'The Sentinels do not know the service {pool.service_name!r} in RTQ["REDIS"]. They know: {known}.'
    return None


def _connect(options: Mapping[str, Any]) -> socket.socket:
    return socket.create_connection((options.get("host", "localhost"), options.get("port", 6379)), PROBE_SECONDS)


def _speaks_tls(options: Mapping[str, Any]) -> bool:
    import ssl  # a plain connection does not need it

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is sent
    try:
        with _connect(options) as plain, context.wrap_socket(plain):
            return True
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")  # it wants another version, or a certificate of ours
    except OSError:
        return False


def _is_postgresql(options: Mapping[str, Any]) -> bool:
    try:
        with _connect(options) as connection:
            connection.sendall(_SSL_REQUEST)
            return connection.recv(1) in (b"S", b"N")
    except OSError:
        return False

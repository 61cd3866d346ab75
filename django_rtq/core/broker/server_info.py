"""Whether a Redis server can be used: what it is, what endangers jobs in it, and the format of what it holds.

The format is a number in the key `<prefix>:format`, which the first user of Redis writes. Behind the number is an id of
the data, made with it. Another id later: Redis has lost its data in between.

Compared where packets are sent anyway: at the first use of a queue, at each sign-on and heartbeat. In each script it
would cost every enqueue and claim.

A change of keys or records that former versions cannot read raises FORMAT, and comes with code that takes the former
format over, or with the words in docs/redis.md#format that say what to do.
"""

from __future__ import annotations

import re
from typing import Any

from django_rtq.core.broker.keys import Keys
from django_rtq.core.broker.redis.client import LEADS_TO_CLUSTER, InSettings, RedisClient
from django_rtq.core.broker.redis.commands import Command, Steps, raised
from django_rtq.core.extension import parts
from django_rtq.core.jobs.job import made_ms, new_job_id
from django_rtq.exceptions import BrokerError, ConfigurationError, FormatMismatch

FORMAT = 2
LOSS_SECONDS = 86_400  # for so long it is known that data was lost
OLDEST_SERVER = (6, 2)  # of Redis; Valkey began with 7.2


def ask_server(redis: RedisClient, keys: Keys) -> list[str]:
    """What endangers jobs in a server, in words, as far as an app knows.

    Raises what check_server() raises; BrokerRefused where waiting does not help.
    """

    def ask() -> Steps[list[str]]:
        hello, info, stored_format = yield [("HELLO",), ("INFO",), read_format(keys)]
        yield from check_server(hello, stored_format, keys, redis.in_settings)
        told = b"" if isinstance(info, BrokerError) else info  # managed servers forbid it, and so may ACLs
        return [problem for problems_of in parts("server_problems") for problem in problems_of(told)]

    return redis.run(ask())


def check_server(hello: Any, stored_format: Any, keys: Keys, in_settings: InSettings) -> Steps[None]:
    """Check the replies to HELLO and read_format().

    Raises ConfigurationError for a server that cannot be used: an unnamed Cluster, a Sentinel, a Redis that is too old;
    FormatMismatch for data of another version, BrokerError. What the server does not say is ignored.
    """
    told = {} if isinstance(hello, BrokerError) else dict(zip(hello[::2], hello[1::2], strict=False))
    version = told.get(b"version", b"") if told.get(b"server") == b"redis" else b""  # others have numbers of their own
    if isinstance(hello, BrokerError) and "unknown command" in str(hello):  # Redis before 6.0, or a proxy
        (info,) = yield [("INFO", "server")]
        found = None if isinstance(info, BrokerError) else re.search(rb"^redis_version:(\S+)", info, re.MULTILINE)
        version = found[1] if found else b""
    numbers = tuple(int(part) for part in version.split(b".")[:2] if part.isdigit())
    if len(numbers) == 2 and numbers < OLDEST_SERVER:
        raise ConfigurationError(
            in_settings(f'RTQ["REDIS"] leads to Redis {version.decode()}, which is too old: django_rtq needs Redis ')
            + f"{'.'.join(map(str, OLDEST_SERVER))} or newer, or Valkey."
        )
    if told.get(b"mode") == b"cluster" and not keys.in_cluster:
        raise ConfigurationError(in_settings(LEADS_TO_CLUSTER))
    if told.get(b"mode") == b"sentinel":
        raise ConfigurationError(
            in_settings('RTQ["REDIS"] leads to a Sentinel, which holds no data. Write ')
            + '{"sentinels": [(host, port)], "service": …}.'
        )
    check_format(stored_format, keys)


def format_commands(keys: Keys) -> list[Command]:
    """Write the format if Redis has none, and read it. The last reply is for check_format()."""
    return [("SET", keys.format, f"{FORMAT} {new_job_id()}", "NX"), read_format(keys)]


def read_format(keys: Keys) -> Command:
    """Read the format, for check_format()."""
    return ("GET", keys.format)


def check_format(reply: Any, keys: Keys) -> str:
    """The id of the data; "": Redis has none yet, or is too full for it. Raises FormatMismatch, BrokerError."""
    number, _, data_id = (raised(reply) or b"").decode(errors="replace").partition(" ")
    if number in ("", str(FORMAT)):
        return data_id
    is_newer = number.isdigit() and int(number) > FORMAT
    cure = "Upgrade django_rtq here" if is_newer else 'See "Format" in docs/redis.md'
    raise FormatMismatch(
        f"Redis holds data in format {number} (key {keys.format.decode()}), and this version of django_rtq uses format "
        f'{FORMAT}. {cure}, or set another RTQ["PREFIX"].'
    )


def note_loss(redis: RedisClient, keys: Keys, data_id: str) -> None:
    """Note that Redis has lost its data, for a day. `data_id` is that of the new data, and says when it began."""
    redis.execute_one(("SET", keys.data_lost, made_ms(data_id), "EX", LOSS_SECONDS), resend=True)

"""The format of what Redis holds: a number in the key `<prefix>:format`, which the first user of Redis writes.

Behind the number is an id of the data, made with it. Another id later: Redis has lost its data in between.

Compared where packets are sent anyway: at the first use of a queue, at each sign-on and heartbeat. In each script it
would cost every enqueue and claim.

A change of keys or records that former versions cannot read raises FORMAT, and comes with code that takes the former
format over, or with the words in docs/redis.md#format that say what to do.
"""

from __future__ import annotations

from typing import Any

from django_rtq.core.broker.keys import Keys
from django_rtq.core.broker.redis.client import RedisClient
from django_rtq.core.broker.redis.commands import Command
from django_rtq.core.jobs.job import made_ms, new_job_id
from django_rtq.exceptions import BrokerError, FormatMismatch

FORMAT = 2
LOSS_SECONDS = 86_400  # for so long it is known that data was lost


def format_commands(keys: Keys) -> list[Command]:
    """Write the format if Redis has none, and read it. The last reply is for check_format()."""
    return [("SET", keys.format, f"{FORMAT} {new_job_id()}", "NX"), read_format(keys)]


def read_format(keys: Keys) -> Command:
    """Read the format, for check_format()."""
    return ("GET", keys.format)


def check_format(reply: Any, keys: Keys) -> str:
    """The id of the data; "": Redis has none yet, or is too full for it. Raises FormatMismatch, BrokerError."""
    if isinstance(reply, BrokerError):
        raise reply
    number, _, data_id = (reply or b"").decode(errors="replace").partition(" ")
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

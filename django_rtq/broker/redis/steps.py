"""Operations as generators, which yield commands and are sent the replies: sync and async clients run the same ones.

`replies = yield commands`: one round trip, which may be repeated when its reply was lost. A command that was refused
has its BrokerError in its place.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeVar

from django_rtq.broker.redis.commands import Command
from django_rtq.exceptions import BrokerError

T = TypeVar("T")
Steps = Generator[Sequence[Command], list[Any], T]


def checked(replies: list[Any]) -> list[Any]:
    """The replies. Raises the first BrokerError among them."""
    for reply in replies:
        if isinstance(reply, BrokerError):
            raise reply
    return replies

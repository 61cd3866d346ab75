"""Sums of counters that never go back, for Prometheus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django_rtq.core.broker.keys import QueueKeys
from django_rtq.core.broker.redis.client import as_dict
from django_rtq.core.broker.redis.commands import Command
from django_rtq.core.broker.scripts import SCRIPTS

KINDS = ("update", "this_hour", "next_hour", "totals")  # of the commands


def totals_commands(keys: QueueKeys, hour: int) -> tuple[Command, ...]:
    """The commands that bring the totals of a queue up to date, and then read them and what is not in them.

    While a clock that was put back catches up, the present counters may be those of the hour behind `hour`. Reading
    very many counters takes several times as long in a script.
    """
    hours: list[Command] = [("HGETALL", keys.tasks + b"%d" % each) for each in (hour, hour + 1)]
    return SCRIPTS["update_totals"].call(keys, ()), *hours, ("HGETALL", keys.totals)


def read_totals(hour: int, replies: Sequence[Any]) -> list[Any]:
    """Lists of counters that together are the sums, from the replies to totals_commands().

    The totals say themselves which minutes and hours are in them: others may have added some between two commands. A
    present minute or hour counts only if all before it are added, so that no sum goes back.
    """
    (minute, of_minute), this_hour, next_hour, totals = replies
    first_left = as_dict(totals)  # empty if the queue was forgotten meanwhile
    present = [(b"minute", minute, of_minute), (b"hour", hour, this_hour), (b"hour", hour + 1, next_hour)]
    return [totals, *(counters for name, at, counters in present if first_left.get(name) == b"%d" % at)]

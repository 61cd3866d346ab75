"""Text that is safe and useful on a terminal: what jobs brought along, numbers, durations."""

from __future__ import annotations

import json
from datetime import time
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder


def one_line(text: object, most: int | None = None) -> str:
    """The text on one line, with all that does not print escaped; cut to `most` characters.

    What lies in Redis came from users and from failures: it must not move the cursor, or write lines
    of its own.
    """
    whole = str(text)
    # Cut first as well: a message may be a megabyte long.
    short = whole if most is None else whole[: most + 1]
    if not short.isprintable():
        short = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in short)
    return short if most is None or len(short) <= most else short[: most - 3] + "..."


def number(value: int) -> str:
    """1234 as 1,234."""
    return f"{value:,}"


def count(value: int, singular: str, plural: str | None = None) -> str:
    """A number and its noun: 1 job, 1,234 jobs."""
    return f"{number(value)} {singular if value == 1 else plural or singular + 's'}"


def duration(seconds: float | None) -> str:
    """How long, in the unit that a person would take; "-" for None."""
    if seconds is None:
        return "-"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    for most, size, unit in ((119.5, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < most:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:,.0f} d"


def as_json(value: Any) -> str:
    """The value on one line of JSON; dates, decimals and the like as Django writes them."""
    return json.dumps(value, cls=_Encoder)


class _Encoder(DjangoJSONEncoder):
    def default(self, o: Any) -> Any:
        # Django refuses a time with a zone; an argument may be one.
        return o.isoformat() if isinstance(o, time) else super().default(o)

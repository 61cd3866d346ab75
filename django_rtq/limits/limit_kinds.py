"""The limits of queues and clients: their values in settings, in commands, and as they are stored.

What is set at run time is stored in Redis, holds for all workers at once, and wins over RTQ["QUEUES"].
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from django_rtq.core.conf.option import Kind
from django_rtq.core.validation import did_you_mean, gettext_noop

_REFUSAL = gettext_noop("%(text)s is not %(allowed)s, 'none' or 'settings'.")
_REFUSAL_OF_NONE = gettext_noop("%(text)s is not %(allowed)s, or 'settings'.")


def _number_or_text(text: str) -> int | float | str:
    for read in (int, float):
        with suppress(ValueError):
            return read(text)
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitKind:
    """A limit of a queue or of a client: which values it may have, and how they are stored."""

    name: str
    #: What it may be, as a part of a sentence.
    allowed: str
    #: How a value is stored, without spaces. Raises TypeError or ValueError for a wrong one.
    encode: Callable[[Any], str]
    decode: Callable[[str], Any]
    #: Whether None is a value, too: no limit.
    may_be_none: bool = True
    #: What else it may be in Python.
    in_python: str = ""

    def text(self, value: Any) -> str:
        """The value as it is stored; None: no limit. Raises ValueError, with what it may be."""
        if value is None and self.may_be_none:
            return f"{self.name}=none"
        try:
            return f"{self.name}={self.encode(value)}"
        except (TypeError, ValueError):
            end = ", or None for no limit." if self.may_be_none else "."
            raise ValueError(f"{self.allowed}{self.in_python}{end}") from None

    def parse(self, text: str) -> Any:
        """The value in a text that a person has entered: "5", "100/s", "none" or "settings". Raises ValueError."""
        value = "settings" if text == "settings" else None if text == "none" else _number_or_text(text)
        try:
            if value != "settings":
                self.text(value)
        except ValueError:
            raise ValueError(self.refusal(text)) from None
        return value

    def refusal(self, text: str, say: Callable[[str], str] = str) -> str:
        """Says that a text is no value, and what is one. `say` translates."""
        sentence = _REFUSAL if self.may_be_none else _REFUSAL_OF_NONE
        return say(sentence) % {"text": repr(text), "allowed": say(self.allowed)}


def _whole_number(value: Any) -> str:
    if type(value) is not int or value < 0:
        raise ValueError
    return str(value)


def _burst(value: Any) -> str:
    if value == 0:
        raise ValueError
    return _whole_number(value)


_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000}  # ms
_RATE = re.compile(r"([0-9]{1,9})/([0-9]{1,9}(?:\.[0-9]{1,3})?)?([smhd])")
_MOST_PER_MS = 100  # a start moves a rate on by an interval, and times in Redis are exact to 0.25 µs


def encode_rate(value: Any) -> str:
    """ "100/s", "100/30s" or (100, timedelta(seconds=1)), as starts and ms."""
    if isinstance(value, str):
        if not (parts := _RATE.fullmatch(value)):
            raise ValueError
        starts, period_ms = int(parts[1]), round(float(parts[2] or 1) * _UNITS[parts[3]])
    else:
        starts, period = value
        if not isinstance(period, timedelta):
            raise TypeError
        period_ms = round(period / timedelta(milliseconds=1))
    if type(starts) is not int or not 0 < starts <= period_ms * _MOST_PER_MS:
        raise ValueError
    return f"{starts}/{period_ms}"


def _decode_rate(text: str) -> str:
    starts, period_ms = map(int, text.split("/"))
    for unit, ms in _UNITS.items():
        if period_ms % ms == 0:
            return f"{starts}/{'' if period_ms == ms else period_ms // ms}{unit}"
    return f"{starts}/{period_ms / 1000:.3f}".rstrip("0") + "s"


def _weight(value: Any) -> str:
    if isinstance(value, bool) or not 0.01 <= value <= 1000:
        raise ValueError
    return f"{value:g}"


def _fair_by(value: Any) -> str:
    if value not in ("jobs", "seconds"):
        raise ValueError
    return str(value)


_KINDS = (
    LimitKind(name="max_running", allowed=gettext_noop("a whole number from 0 on"), encode=_whole_number, decode=int),
    LimitKind(
        name="rate",
        allowed=gettext_noop('"100/s" or the like, with s, m, h or d, like "100/30s", and at most 100,000 a second'),
        in_python=", or (100, timedelta(seconds=30))",
        encode=encode_rate,
        decode=_decode_rate,
    ),
    LimitKind(name="burst", allowed=gettext_noop("a whole number from 1 on"), encode=_burst, decode=int),
    LimitKind(name="max_waiting", allowed=gettext_noop("a whole number from 0 on"), encode=_whole_number, decode=int),
    LimitKind(
        name="weight",
        allowed=gettext_noop("a number from 0.01 to 1,000"),
        encode=_weight,
        decode=lambda text: int(text) if text.isdecimal() else float(text),
        may_be_none=False,
    ),
    LimitKind(
        name="fair_by", allowed=gettext_noop('"jobs" or "seconds"'), encode=_fair_by, decode=str, may_be_none=False
    ),
)
LIMIT_KINDS = {kind.name: kind for kind in _KINDS}


# -- as they are stored


def limit_values(text: str) -> dict[str, str]:
    """The values in a stored text, by name. The first of a name holds."""
    values: dict[str, str] = {}
    for pair in text.split():
        name, _, value = pair.partition("=")
        values.setdefault(name, value)
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit in force, and where it comes from."""

    value: Any  # as in RTQ["QUEUES"]; None: no limit
    is_from_settings: bool  # and not set at run time


Limits: TypeAlias = Mapping[str, Limit]  # by name, like "max_running"


def limits_text(known: Collection[str], limits: Mapping[str, Any]) -> str:
    """The limits as they are stored. Raises ValueError for one that is not known here, or a wrong value."""
    if not limits:
        raise ValueError(f"Which limit? Give at least one of: {', '.join(known)}.")
    for name in limits:
        if name not in known:
            hint = did_you_mean(name, known, otherwise=f" Known are: {', '.join(known)}.")
            raise ValueError(f"{name!r} is not a limit here.{hint}")
    return " ".join(
        f"{name}=" if value == "settings" else Kind("", LIMIT_KINDS[name].text).checked(name, value, ValueError)
        for name, value in limits.items()
    )


def read_limits(text: str, at_run_time: str) -> Limits:
    """The limits in a stored text, and those of them that were set at run time."""
    set_names, values = limit_values(at_run_time), limit_values(text)
    return {
        name: Limit(
            value=None if value == "none" else LIMIT_KINDS[name].decode(value),
            is_from_settings=name not in set_names,
        )
        for name, value in values.items()
        if name in LIMIT_KINDS  # a later version may have stored others
    }

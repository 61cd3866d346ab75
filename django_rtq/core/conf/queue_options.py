"""The names of queues, and their options in RTQ["QUEUES"]."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeGuard

from django_rtq.core.conf.option import FLAG, Kind, accepts, check_options, number, one_of, option, options_of
from django_rtq.exceptions import ConfigurationError, InvalidTask

_QUEUE_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")


def is_queue_name(value: object) -> TypeGuard[str]:
    """Whether a queue may have this name: it becomes a part of keys in Redis."""
    return isinstance(value, str) and _QUEUE_NAME.fullmatch(value) is not None


QUEUE_NAME = accepts(is_queue_name, "1 to 100 of the letters A-Z and a-z, digits, '.', '_' and '-'")


def check_queue_name(name: object) -> None:
    """Raises InvalidTask for what is_queue_name() refuses."""
    if not is_queue_name(name):
        raise InvalidTask(f"{name!r} is not a queue name: use {QUEUE_NAME.says}.")


def gettext_noop(text: str) -> str:
    """Mark a text for makemessages. Django's own needs the settings, and this module is read with them."""
    return text


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
        """The value as it is stored; None: no limit. Raises ValueError."""
        if value is None and self.may_be_none:
            return f"{self.name}=none"
        try:
            return f"{self.name}={self.encode(value)}"
        except (TypeError, ValueError):
            raise ValueError(f"{self.name} is {value!r}, but has to be {self.cure}") from None

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

    @property
    def cure(self) -> str:
        """What a value may be, as the end of a sentence."""
        allowed = self.allowed + self.in_python
        return f"{allowed}, or None for no limit." if self.may_be_none else f"{allowed}."

    @property
    def kind(self) -> Kind:
        """Which values options of this limit may have."""
        return Kind(self.cure, self._read)

    def _read(self, value: Any) -> Any:
        try:
            self.text(value)
        except ValueError:
            raise ValueError from None  # the text names the limit, and so does that of the option
        return value


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


def _decode_weight(text: str) -> int | float:
    return int(text) if text.isdecimal() else float(text)


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
        decode=_decode_weight,
        may_be_none=False,
    ),
    LimitKind(
        name="fair_by", allowed=gettext_noop('"jobs" or "seconds"'), encode=_fair_by, decode=str, may_be_none=False
    ),
)
LIMIT_KINDS = {kind.name: kind for kind in _KINDS}
_LIMITS = ("max_running", "rate", "burst", "max_waiting")
QUEUE_LIMITS = (*_LIMITS, "fair_by")  # what a queue may have
CLIENT_LIMITS = (*_LIMITS, "weight")  # what a client may have


_CLIENT_KINDS = {name: LIMIT_KINDS[name].kind for name in CLIENT_LIMITS}


def check_client_limits(where: str, limits: Any) -> None:
    """Raises ConfigurationError for limits that a client cannot have. `where` names them."""
    check_options(where, limits, _CLIENT_KINDS, like='{"max_running": 2}', noun="limit")


def _limit(name: str, default: Any = None) -> Any:
    return option(default, LIMIT_KINDS[name].kind)


def _is_one_or_none(value: Any) -> bool:
    return value is None or (type(value) is int and value == 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueConfig:
    """The options of one queue in RTQ["QUEUES"]."""

    #: Delayed jobs that have become due go ahead of the others of their priority.
    delayed_first: bool = option(False, FLAG)
    #: How many of its jobs may run at once, on all machines together. None: any number.
    max_running: int | None = _limit("max_running")
    #: How many of its jobs may start in a time: "100/s", "500/m", "3/h", or (500, timedelta(minutes=1)).
    rate: str | tuple[int, timedelta] | None = _limit("rate")
    #: How many of them may start at once. None: as many as in a tenth of a second, at least 1.
    burst: int | None = _limit("burst")
    #: How many of its jobs may wait, for a worker or for their time. None: any number.
    max_waiting: int | None = _limit("max_waiting")
    #: 1: the queue as a whole is in one shard, so that its limits are exact. None: its clients are spread over all.
    shards: int | None = option(None, accepts(_is_one_or_none, "1: the queue as a whole is in one shard"))
    #: What delay() does with a job that does not fit: "raise" QueueFull, or "wait" for room first.
    on_full: str = option("raise", one_of("raise", "wait"))
    #: For how many seconds it waits.
    on_full_timeout: float = option(5.0, number("a number of seconds", above=0, most=3600))
    #: Whether clients get equal numbers of starts, "jobs", or equal times of workers, "seconds".
    fair_by: str = _limit("fair_by", "jobs")
    #: Limits of each client: {"max_running": 2}.
    client: Mapping[str, Any] = option({})
    #: Limits of single clients: name -> the same.
    clients: Mapping[str, Mapping[str, Any]] = option({})

    @property
    def limits(self) -> dict[str, Any]:
        """The limits of the queue itself, by name."""
        return {name: value for name in QUEUE_LIMITS if (value := getattr(self, name)) not in (None, "jobs")}

    @property
    def has_limits(self) -> bool:
        """Whether the settings have any for the queue or its clients."""
        return bool(self.limits or self.client or any(self.clients.values()))


_OPTIONS = {name: declared.kind for name, declared in options_of(QueueConfig).items()}


def check_queues(queues: Mapping[str, Any]) -> None:
    """Check the value of RTQ["QUEUES"]. Raises ConfigurationError."""
    for name, options in queues.items():
        where = f'RTQ["QUEUES"][{name!r}]'
        if not is_queue_name(name):
            raise ConfigurationError(f"{where}: {name!r} is not the name of a queue.")
        check_options(where, options, _OPTIONS, like='{"delayed_first": True}')
        if "on_full_timeout" in options and options.get("on_full") != "wait":
            raise ConfigurationError(f"{where} has 'on_full_timeout', which needs 'on_full': \"wait\".")
        if "client" in options:
            check_client_limits(f"{where}['client']", options["client"])
        clients = options.get("clients", {})
        if not isinstance(clients, Mapping) or not all(isinstance(client, str) for client in clients):
            raise ConfigurationError(
                f'{where}[\'clients\'] has to be a dictionary of clients, like {{"acme": {{"max_running": 5}}}}.'
            )
        for client, limits in clients.items():
            check_client_limits(f"{where}['clients'][{client!r}]", limits)

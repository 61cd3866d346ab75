"""How long to wait before the next attempt.

A backoff is called with the number of failures so far, 1 after the first, and answers seconds or a
timedelta. If it has a second parameter without a default, or one named ``error``, it gets the exception, too:

    def patient(failures, error):
        return 3600 if isinstance(error, QuotaExceeded) else 10 * failures
"""

from __future__ import annotations

import inspect
import logging
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from django_rtq.exceptions import InvalidTask

logger = logging.getLogger("django_rtq")

Backoff: TypeAlias = Callable[..., float | timedelta]

#: The longest wait, in seconds. Ends in a date that Redis' scores and Python's datetimes can hold.
TEN_YEARS = 10 * 365 * 86_400.0

# The system's source, so that neither random.seed(0) in a project nor a fork of workers makes many
# processes draw the same numbers and retry at the same moment.
_random = random.SystemRandom()


def constant(seconds: float | timedelta) -> Constant:
    """Always wait as long. Raises InvalidTask unless it is from 0 seconds to ten years."""
    return Constant(_definition("constant", seconds))


def steps(seconds: Sequence[float | timedelta]) -> Steps:
    """Wait the first time after the first failure, and so on; the last one is repeated.

    Raises InvalidTask if the list is empty, or has anything but 0 seconds to ten years in it.
    """
    if not seconds:
        raise InvalidTask("steps() needs at least one time to wait, in seconds.")
    return Steps(tuple(_definition("steps", item) for item in seconds))


def exponential(base: float = 2, cap: float | timedelta = 600, jitter: bool = True) -> Exponential:
    """Wait up to ``base ** failures`` seconds, but never over ``cap``.

    With ``jitter`` the wait is anywhere between nothing and that, at random, so that jobs that failed
    together do not come back together. Without, it is exactly that. Raises InvalidTask for a base
    below 1, or a cap that is not from 0 seconds to ten years.
    """
    if not _is_number(base) or not 1 <= base < math.inf:
        raise InvalidTask(f"exponential(base={base!r}): the base has to be a number, 1 or more.")
    return Exponential(base, _definition("exponential", cap), bool(jitter))


@dataclass(frozen=True, slots=True, repr=False)
class Constant:
    """What constant() makes."""

    seconds: float

    def __call__(self, failures: int) -> float:
        return self.seconds

    def __repr__(self) -> str:
        return f"constant({self.seconds!r})"


@dataclass(frozen=True, slots=True, repr=False)
class Steps:
    """What steps() makes."""

    seconds: tuple[float, ...]

    def __call__(self, failures: int) -> float:
        return self.seconds[min(max(failures, 1), len(self.seconds)) - 1]

    def __repr__(self) -> str:
        return f"steps({list(self.seconds)!r})"


@dataclass(frozen=True, slots=True, repr=False)
class Exponential:
    """What exponential() makes."""

    base: float
    cap: float  # seconds
    jitter: bool

    def __call__(self, failures: int) -> float:
        try:
            wait = min(float(self.base) ** max(failures, 1), self.cap)
        except OverflowError:
            wait = self.cap
        # "Full jitter" spreads best and costs the least work in the comparison of Marc Brooker,
        # "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
        return _random.uniform(0, wait) if self.jitter else wait

    def __repr__(self) -> str:
        return f"exponential(base={self.base!r}, cap={self.cap!r}, jitter={self.jitter!r})"


def as_backoff(value: Any) -> Backoff:
    """Turn what a task may name as its backoff into one.

    A number of seconds or a timedelta is a constant, a list or tuple is steps, and a function stays as
    it is. Raises InvalidTask for all else, and for functions that cannot be called as a backoff is.
    """
    if isinstance(value, list | tuple):
        return steps(value)
    if isinstance(value, timedelta) or _is_number(value):
        return constant(value)
    if not callable(value):
        raise InvalidTask(
            f"backoff={value!r} makes no sense. Write seconds, a timedelta, a list of these, "
            "exponential(), or a function of the number of failures."
        )
    _check_callable(value)
    return value  # type: ignore[no-any-return]


def delay_seconds(backoff: Backoff, failures: int, error: BaseException | None) -> float:
    """Ask the backoff, and survive its answer: from 0 to ten years.

    If it raises, or answers what is not a time to wait, the default decides and a warning is logged:
    a mistake in a backoff must not lose the job.
    """
    try:
        answer = backoff(failures, error) if _takes_error(backoff) else backoff(failures)
        return float(min(_seconds(answer), TEN_YEARS))
    except (Exception, SystemExit):
        logger.warning(
            "The backoff %r failed after %s failures; %r decides instead.",
            backoff,
            failures,
            DEFAULT,
            exc_info=True,
        )
        return DEFAULT(failures)


def _check_callable(function: Callable[..., Any]) -> None:
    if function in (constant, steps, exponential):
        name = function.__name__
        raise InvalidTask(f"backoff={name} is the function that makes one. Call it: backoff={name}(…).")
    if inspect.iscoroutinefunction(function):
        raise InvalidTask(f"backoff={function!r} is async, but a backoff is called without waiting for it.")
    try:
        signature = inspect.signature(function)
        signature.bind(1, None) if _takes_error(function) else signature.bind(1)
    except TypeError as error:
        raise InvalidTask(
            f"backoff={function!r} cannot be called with the number of failures, "
            f"or with that and the exception: {error}."
        ) from error
    except ValueError:
        return  # Written in C, and does not say what it takes.


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _takes_error(function: Callable[..., Any]) -> bool:
    """Whether it wants the exception. A default such as ``base=2`` must not be overwritten by one."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return False
    _, second, *_ = [p for p in parameters if p.kind in _POSITIONAL] + [None, None]
    if second is None:
        return any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return second.default is second.empty or second.name == "error"


def _definition(maker: str, value: Any) -> float:
    """Seconds as they were written, for a good repr. Raises InvalidTask."""
    try:
        seconds = _seconds(value)
    except (TypeError, ValueError) as error:
        raise InvalidTask(f"{maker}({value!r}): {error}") from None
    if seconds > TEN_YEARS:
        raise InvalidTask(f"{maker}({value!r}): more than ten years is no time to wait.")
    return seconds


def _seconds(value: Any) -> float:
    """Raises TypeError or ValueError unless it is a time from 0 on. May be a huge integer."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if not _is_number(value):
        raise TypeError(f"a time to wait is a number of seconds or a timedelta, not {value!r}.")
    if not 0 <= value < math.inf:
        raise ValueError(f"a time to wait is 0 seconds or more, not {value!r}.")
    return value  # type: ignore[no-any-return]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


#: For tasks that name none, and for backoffs that fail.
DEFAULT = exponential()

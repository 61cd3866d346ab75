"""Retry delays: how long a job waits before its next attempt.

A backoff is a function of the number of failures so far, 1 after the first. It returns seconds or a timedelta. If it
has a second parameter without a default, or one named ``error``, it gets the exception as well:

    def by_error(failures, error):
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
from functools import lru_cache
from typing import Any, TypeAlias

from django_rtq.core.validation import TEN_YEARS, is_number
from django_rtq.exceptions import InvalidTask

logger = logging.getLogger("django_rtq")

Backoff: TypeAlias = Callable[..., float | timedelta]

# The random source of the system: after random.seed(0) in a project, or in forked processes, Python's would give all
# processes the same numbers, and they would retry at the same moment.
_random = random.SystemRandom()


def constant(seconds: float | timedelta) -> Steps:
    """Always wait this long. Raises InvalidTask unless it is from 0 seconds to ten years."""
    return Steps((_definition("constant", seconds),))


def steps(seconds: Sequence[float | timedelta]) -> Steps:
    """Wait for the first delay after the first failure, and so on; the last delay is repeated.

    Raises InvalidTask if the list is empty, or a delay is not from 0 seconds to ten years.
    """
    if not seconds:
        raise InvalidTask("steps() needs at least one delay, in seconds.")
    return Steps(tuple(_definition("steps", item) for item in seconds))


def exponential(base: float = 2, cap: float | timedelta = 600, jitter: bool = True) -> Exponential:
    """Exponential backoff: wait up to ``base ** failures`` seconds, and at most ``cap``.

    With ``jitter`` the delay is random, between 0 and that value, so that jobs that failed together are not retried
    together. Without, it is exactly that value. Raises InvalidTask for a base below 1, or a cap that is not from 0
    seconds to ten years.
    """
    if not is_number(base) or not 1 <= base < math.inf:
        raise InvalidTask(f"exponential(base={base!r}): the base has to be a number, 1 or more.")
    return Exponential(base, _definition("exponential", cap), bool(jitter))


@dataclass(frozen=True, slots=True, repr=False)
class Steps:
    """Made by steps(), and by constant() of one delay."""

    seconds: tuple[float, ...]

    def __call__(self, failures: int) -> float:
        return self.seconds[min(max(failures, 1), len(self.seconds)) - 1]

    def __repr__(self) -> str:
        return f"steps({list(self.seconds)!r})" if self.seconds[1:] else f"constant({self.seconds[0]!r})"


@dataclass(frozen=True, slots=True, repr=False)
class Exponential:
    """Made by exponential()."""

    base: float
    cap: float  # seconds
    jitter: bool

    def __call__(self, failures: int) -> float:
        try:
            wait = min(float(self.base) ** max(failures, 1), self.cap)
        except OverflowError:
            wait = self.cap
        # "Full jitter": see Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
        return _random.uniform(0, wait) if self.jitter else wait

    def __repr__(self) -> str:
        return f"exponential(base={self.base!r}, cap={self.cap!r}, jitter={self.jitter!r})"


def as_backoff(value: Any) -> Backoff:
    """The backoff for an option of a task: a number or timedelta is constant(), a list steps(), a function is returned.

    Raises InvalidTask for anything else, and for functions that cannot be called with the number of failures.
    """
    if isinstance(value, list | tuple):
        return steps(value)
    if isinstance(value, timedelta) or is_number(value):
        return constant(value)
    if not callable(value):
        raise InvalidTask(
            f"backoff={value!r} is invalid. Write seconds, a timedelta, a list of these, "
            "exponential(), or a function of the number of failures."
        )
    _check_callable(value)
    return value  # type: ignore[no-any-return]


def as_json(backoff: Backoff) -> Any:
    """The backoff for the record of a job: read_json() makes it again. Raises InvalidTask for a function."""
    if isinstance(backoff, Steps):
        return list(backoff.seconds) if backoff.seconds[1:] else backoff.seconds[0]
    if isinstance(backoff, Exponential):
        return {"base": backoff.base, "cap": backoff.cap, "jitter": backoff.jitter}
    raise InvalidTask(
        f"backoff={backoff!r} is a function, which cannot be stored with a job. Give it to @task, or use seconds, a "
        "list of these, or exponential()."
    )


def read_json(value: Any) -> Backoff:
    """The backoff in the record of a job. Raises InvalidTask or TypeError if it is none."""
    return exponential(**value) if isinstance(value, dict) else as_backoff(value)


def delay_seconds(backoff: Backoff, failures: int, error: BaseException | None) -> float:
    """Call the backoff. Returns 0 to ten years, in seconds.

    If it raises, or returns anything else, the default backoff is used and a warning logged: a mistake in a backoff
    must not lose the job.
    """
    try:
        delay = backoff(failures, error) if _takes_error(backoff) else backoff(failures)
        return float(min(_seconds(delay), TEN_YEARS))
    except (Exception, SystemExit):
        logger.warning(
            "backoff %r failed after %s failures; using %r instead",
            backoff,
            failures,
            DEFAULT,
            exc_info=True,
        )
        return DEFAULT(failures)


def _check_callable(function: Callable[..., Any]) -> None:
    if function in (constant, steps, exponential):
        name = function.__name__
        raise InvalidTask(f"backoff={name} is a function that makes a backoff. Call it: backoff={name}(…).")
    if inspect.iscoroutinefunction(function):
        raise InvalidTask(f"backoff={function!r} is an async function, but it is called without await.")
    try:
        signature = inspect.signature(function)
        signature.bind(1, None) if _takes_error(function) else signature.bind(1)
    except TypeError as error:
        raise InvalidTask(
            f"backoff={function!r} cannot be called with the number of failures, "
            f"or with that and the exception: {error}."
        ) from error
    except ValueError:
        return  # written in C, without a signature


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _takes_error(function: Callable[..., Any]) -> bool:
    """Whether to pass the exception: not in place of a parameter with a default, such as ``base=2``."""
    try:
        return _has_error_parameter(function)
    except TypeError:  # it is not hashable
        return _has_error_parameter.__wrapped__(function)


@lru_cache(maxsize=256)  # reading a signature takes longer than all else that follows from a failure
def _has_error_parameter(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return False
    _, second, *_ = [p for p in parameters if p.kind in _POSITIONAL] + [None, None]
    if second is None:
        return any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return second.default is second.empty or second.name == "error"


def _definition(maker: str, value: Any) -> float:
    """The seconds, as an int or float as given, for the repr. Raises InvalidTask."""
    try:
        seconds = _seconds(value)
    except (TypeError, ValueError) as error:
        raise InvalidTask(f"{maker}({value!r}): {error}") from None
    if seconds > TEN_YEARS:
        raise InvalidTask(f"{maker}({value!r}): the longest delay is ten years.")
    return seconds


def _seconds(value: Any) -> float:
    """Raises TypeError or ValueError unless it is a delay of 0 or more. May return a huge integer."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if not is_number(value):
        raise TypeError(f"a delay is a number of seconds or a timedelta, not {value!r}.")
    if not 0 <= value < math.inf:
        raise ValueError(f"a delay is 0 seconds or more, not {value!r}.")
    return value


#: The backoff of tasks without one, and in place of one that fails.
DEFAULT = exponential()

"""Checks shared by settings, task options, schedules and commands: numbers, durations, names."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import TypeGuard

# Of schedules, which rows of the database have, too:
MAX_EXPRESSION_LENGTH = 200
MAX_NAME_LENGTH = 200
MAX_MISSED = 100  # default of `cap`
MAX_CAP = 1000
TEN_YEARS = 10 * 365 * 86_400.0  # seconds; the longest duration: more is a mistake of units, and dates overflow


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str = "", quoted: bool = False) -> str:
    """A hint for an unknown name, to append to a sentence: the closest known name, or else another hint.

    Of dotted names, the last part has to be close as well: that of a module is common to all of its names.
    """
    _module, dot, last = name.rpartition(".")
    if dot:
        known = [each for each in known if difflib.get_close_matches(last, [each.rpartition(".")[2]])]
    close = difflib.get_close_matches(name, list(known), n=1)
    if not close:
        return otherwise
    return f" Did you mean {close[0]!r}?" if quoted else f" Did you mean {close[0]}?"


def gettext_noop(text: str) -> str:
    """Mark a text for makemessages. Django's own reads the settings, and some modules are read without them."""
    return text


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is an int or a float. True and False are not numbers here."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_finite(value: object) -> TypeGuard[int | float]:
    """Whether it is a number, and neither infinite nor NaN."""
    # Compared, because math.isfinite() raises for integers that are too large for a float.
    return is_number(value) and -math.inf < value < math.inf


def is_whole(value: object) -> TypeGuard[int]:
    """Whether it is an int. True and False are not numbers here."""
    return isinstance(value, int) and not isinstance(value, bool)

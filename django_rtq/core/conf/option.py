"""Options: each is declared once, as a field of a dataclass, with the kind of values that it may have.

    lease_seconds: float = option(15.0, number(above=0), unit="seconds")

So are settings (Config), the options of queues (QueueConfig) and of incidents (IncidentOptions), and those of tasks
(Task). The annotation is for type checkers. What is refused, and in which words, comes from the kind; tests compare the
docs with names, defaults and units. A table of options beside the classes would hide them from type checkers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from django_rtq.core.validation import TEN_YEARS, did_you_mean, is_finite
from django_rtq.exceptions import ConfigurationError


class Unfit(ValueError):
    """A value is refused for a reason that "has to be" does not fit. The text follows the name of the option."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Which values an option may have."""

    says: str  # what a value has to be: the end of a sentence
    #: The value to use. Raises ValueError for one that is refused: with a text, that takes the place of `says`.
    read: Callable[[Any], Any]

    def checked(self, where: str, value: Any, error: type[Exception] = ConfigurationError) -> Any:
        """The value to use. Raises the error, in a sentence that begins with `where`."""
        try:
            return self.read(value)
        except Unfit as problem:
            raise error(f"{where} {problem}") from None
        except ValueError as problem:
            said = str(problem) or self.says
            end = "" if said.endswith((".", "?")) else "."
            raise error(f"{where} is {value!r}, but has to be {said}{end}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """What is declared of an option, beside its name, type and default. The rest of it is for options of tasks."""

    kind: Kind
    unit: str = ""  # as the docs say it
    on: str = ""  # what takes it: see core/tasks/task.py
    in_record: bool = False  # stored in the records of jobs, because workers need it
    makes: str = ""  # the cached property that is made of it
    says: str = ""  # what it does, for help()


def option(default: Any, kind: Kind | None = None, **declared: Any) -> Any:
    """The field of an option. Without a kind, what is made of it checks it. `declared`: see Option."""
    metadata = {"option": Option(kind=kind or ANY, **declared)}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


def options_of(declaring: Any) -> dict[str, Option]:
    """The options that the fields of a dataclass declare, by name."""
    return {each.name: each.metadata["option"] for each in fields(declaring) if "option" in each.metadata}


def check_options(where: str, values: Any, kinds: Mapping[str, Kind], *, like: str, noun: str = "option") -> None:
    """Check a dictionary of options. Raises ConfigurationError. `like`: an example."""
    if not isinstance(values, Mapping):
        raise ConfigurationError(f"{where} is {values!r}, but has to be a dictionary of {noun}s, like {like}.")
    for name, value in values.items():
        if name not in kinds:
            raise unknown_option(where, name, kinds, noun)
        kinds[name].checked(f"{where}[{name!r}]", value)


def unknown_option(where: str, name: object, known: Iterable[str], noun: str = "option") -> ConfigurationError:
    """The error about a name that is none, with the closest one that is."""
    names = sorted(known)
    spelled = str(name).upper() if all(map(str.isupper, names)) else str(name)
    hint = did_you_mean(spelled, names, otherwise=f" Known are: {', '.join(names)}.", quoted=True)
    return ConfigurationError(f"{where} has an unknown {noun} {name!r}.{hint}")


# -- kinds


def checked_by(check: Callable[[Any], object], says: str) -> Kind:
    """The values for which a function raises neither ValueError nor ConfigurationError."""

    def read(value: Any) -> Any:
        check(value)
        return value

    return Kind(says, read)


def accepts(test: Callable[[Any], bool], says: str) -> Kind:
    """The values that pass a test."""

    def check(value: Any) -> None:
        if not test(value):
            raise ValueError

    return checked_by(check, says)


def number(
    noun: str = "",
    *,
    least: float = 0,
    above: float | None = None,
    most: float = math.inf,
    whole: bool = False,
    or_none: bool = False,
) -> Kind:
    """Finite numbers in a range. Whole ones are read as plain integers."""
    noun = noun or ("a whole number" if whole else "a number")
    if above is None and most < math.inf:
        says = f"{noun} from {least} to {most}"
    else:
        says = f"{noun}, {least} or more" if above is None else f"{noun} above {above}"
        says += f", up to {most}" if most < math.inf else ""

    def read(value: Any) -> Any:
        if value is None and or_none:
            return None
        if not is_finite(value) or value > most or (value < least if above is None else value <= above):
            raise ValueError
        if whole and not isinstance(value, int):
            raise ValueError
        return int(value) if whole else value  # redis-py cannot write an IntEnum

    return Kind(says, read)


def seconds(*, or_zero: bool = False, or_none: bool = True) -> Kind:
    """Durations of a task."""
    in_range = number(most=TEN_YEARS, or_none=or_none) if or_zero else number(above=0, most=TEN_YEARS, or_none=or_none)
    return Kind(f"seconds, {'0' if or_zero else 'more than 0'} to ten years", in_range.read)


def one_of(*values: str) -> Kind:
    """One of some words."""
    *first, last = (f'"{value}"' for value in values)
    return accepts(lambda value: value in values, f"{', '.join(first)} or {last}")


def text(most: int, *, least: int = 0, or_none: bool = False) -> Kind:
    """Texts of so many characters, all of them printable."""
    return accepts(
        lambda value: (
            (isinstance(value, str) and least <= len(value) <= most and value.isprintable())
            or (or_none and value is None)
        ),
        f"text of {f'{least} to' if least else 'at most'} {most} printable characters",
    )


def list_of_names(noun: str, example: str) -> Kind:
    """Lists of texts, read as tuples."""

    def read(value: Any) -> tuple[str, ...]:
        if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
            raise ValueError
        return tuple(value)

    return Kind(f'a list of {noun}, like ["{example}"]', read)


ANY = Kind("anything", lambda value: value)
NAME = text(100, least=1)  # of workflows and their keys, of steps of jobs, and of events
FLAG = accepts(lambda value: isinstance(value, bool), "True or False")

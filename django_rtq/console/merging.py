"""How values of several places add up. A field says it in its metadata; merge() makes one value of several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

T = TypeVar("T")
Value = TypeVar("Value")
Number = TypeVar("Number", int, float)
Way = Callable[[list[Any]], Any]  # the values of a field -> its value in the merged one


def merge(values: Iterable[Value]) -> Value:
    """One dataclass of several. Fields that do not say how they add up are those of the first."""
    first, *others = values
    if not others:
        return first
    kind: Any = type(first)
    ways = _ways(kind).items()
    return replace(first, **{name: way([getattr(each, name) for each in (first, *others)]) for name, way in ways})  # type: ignore[type-var]


@cache
def _ways(kind: type) -> dict[str, Way]:
    return {field.name: field.metadata["merge"] for field in fields(kind) if "merge" in field.metadata}


def merge_by(name: str, values: Iterable[Value]) -> list[Value]:
    """Those with the same attribute, or the same of several names, as one, sorted by it."""
    key = attrgetter(*name.split())
    return [merge(same) for _, same in sorted(grouped((key(value), value) for value in values).items())]


def grouped(pairs: Iterable[tuple[T, Value]]) -> dict[T, list[Value]]:
    """The values of each key, in their order."""
    groups: dict[T, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def by(way: Way) -> dict[str, Way]:
    """The metadata of a field that adds up in this way."""
    return {"merge": way}


def joined(lists: Iterable[Iterable[T]]) -> list[T]:
    """All items."""
    return list(chain.from_iterable(lists))


def most(values: Iterable[Number | None]) -> Number | None:
    """The largest value; None: none is known."""
    return max((value for value in values if value is not None), default=None)


def least(values: Iterable[Number | None]) -> Number | None:
    """The smallest value; None: none is known."""
    return min((value for value in values if value is not None), default=None)


def total(values: Iterable[Number | None]) -> Number | None:
    """The sum; None: none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def sum_of_counts(counts: Iterable[Mapping[T, int]]) -> dict[T, int]:
    """Histograms, or other numbers by key, as one."""
    sums: Counter[T] = Counter()
    for each in counts:
        sums.update(each)
    return dict(sums)


def united(mappings: Sequence[Mapping[T, Value]]) -> dict[T, Value]:
    """Mappings as one. What several have is that of the first."""
    return {key: value for each in reversed(mappings) for key, value in each.items()}


SUM, ANY, ONE, JOINED = by(sum), by(any), by(merge), by(joined)
MOST, LEAST, TOTAL, COUNTS = by(most), by(least), by(total), by(sum_of_counts)
FIRST = by(lambda values: next(filter(None, values), values[0]))  # that is not empty
EVERY = by(lambda lists: tuple(dict.fromkeys(chain.from_iterable(lists))))  # once
ALL = by(united)
UNION = by(lambda sets: frozenset().union(*sets))


def rows_by(name: str) -> dict[str, Way]:
    """The metadata of a list whose items are one if this attribute is the same."""
    return by(lambda lists: merge_by(name, chain.from_iterable(lists)))

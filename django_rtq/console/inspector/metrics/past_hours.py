"""Keeps what was counted in the hours that are over: it does not change any more, and is slow to read.

Redis marks each reply with the present hour and with what there is of the hours before it. It gets the marks back with
the next request, and leaves out the hours before if a mark is still right. So nothing is kept for longer than an hour.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Past = TypeVar("Past")
Replies = list[Sequence[Any]]  # those about a place, for each place; each begins with a reply that begins with a mark
#: Asks Redis, with the known marks of the places. Returns any other replies, and those about places.
Ask = Callable[[Sequence[bytes]], tuple[Sequence[Any], Replies]]


@dataclass(frozen=True, slots=True)
class _Kept(Generic[Past]):
    """What was counted before the hour of the marks, in all of the places together."""

    places: Sequence[Hashable]  # queues, or queues and tasks
    marks: Sequence[bytes]
    past: Past


class PastHours(Generic[Past]):
    """Keeps so many sums at most. Any thread may use it: what is kept is replaced, never changed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[Hashable, _Kept[Past]] = {}

    def read(
        self, key: Hashable, places: Sequence[Hashable], ask: Ask, add_up: Callable[[Replies], Past]
    ) -> tuple[Sequence[Any], Replies, Past]:
        """What ask() returned, and the sum of the hours before: that kept for `key`, or that which add_up() makes.

        Asks twice if only some of the places are still as they were.
        """
        kept, unknown = self._kept.get(key), [b""] * len(places)
        if kept is not None and kept.places != places:
            kept = None
        known = unknown if kept is None else kept.marks
        also, replies = ask(known)
        marks = _marks(replies)
        if kept is not None and marks == known:
            return also, replies, kept.past
        if any(mark == before for mark, before in zip(marks, known, strict=True)):
            also, replies = ask(unknown)
        past = add_up(replies)
        latest = [(key, _Kept(places, _marks(replies), past)), *reversed(self._kept.items())]
        self._kept = dict(reversed([pair for i, pair in enumerate(latest) if not i or pair[0] != key][: self._most]))
        return also, replies, past


def _marks(replies: Replies) -> Sequence[bytes]:
    return [of_place[0][0] for of_place in replies]

"""Unique jobs: which calls of a task are alike, so that only one of them lives at a time (G9).

Alike are calls with the same digest: of the task, and of all its arguments (unique=True), of some of them (a list of
names), or of what a function makes of them.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django_rtq.exceptions import InvalidTask, Unserializable
from django_rtq.jobs import serializer
from django_rtq.tasks.options import check_seconds
from django_rtq.tasks.signature import Signature

UniqueOption = bool | Sequence[str] | Callable[..., Any]
Until = Literal["start", "done"]
OnConflict = Literal["return", "raise", "replace", "rerun"]

DAY_SECONDS = 86_400.0
UNIQUE_OPTIONS = frozenset({"unique_until", "unique_seconds", "unique_on_conflict"})
_UNTIL = ("start", "done")
_ON_CONFLICT = ("return", "raise", "replace", "rerun")


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniqueness:
    """The options of a task about this, checked. Raises InvalidTask."""

    owner: str
    unique: UniqueOption
    until: Until
    seconds: float
    on_conflict: OnConflict
    signature: Signature

    def __post_init__(self) -> None:
        self._check_choice("unique_until", self.until, _UNTIL)
        self._check_choice("unique_on_conflict", self.on_conflict, _ON_CONFLICT)
        if self.seconds is None:
            raise InvalidTask(f"{self.owner}: unique_seconds is None, but has to be seconds: a job may get stuck.")
        check_seconds(self.owner, "unique_seconds", self.seconds, may_be_zero=False)
        if self.until == "start" and self.on_conflict == "rerun":
            raise InvalidTask(
                f'{self.owner}: unique_on_conflict is "rerun", which is about jobs that run, so unique_until has to be '
                '"done". With "start" a call that comes while one runs makes a job of its own.'
            )
        if callable(self.unique):
            if inspect.iscoroutinefunction(self.unique):
                raise InvalidTask(f"{self.owner}: unique is async, but is called without waiting for it.")
            self.signature.check_applies("unique", self.unique)
        elif isinstance(self.unique, list | tuple) and self.unique:
            self._check_names(self.unique)
        elif not isinstance(self.unique, bool):
            raise InvalidTask(
                f"{self.owner}: unique is {self.unique!r}, but has to be True or False, a list of names of arguments, "
                "or a function."
            )
        elif self.unique:
            self._check_defaults()

    @property
    def limit_ms(self) -> int:
        """For how long a job keeps others like it out at the most."""
        return max(1, round(self.seconds * 1000))

    def digest(self, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
        """The same for calls that are alike; "" when the function said None: then this one is not unique.

        Raises Unserializable for what the function makes of a call.
        """
        if callable(self.unique):
            value = self.signature.apply(self.unique, args, kwargs)
            if value is None:
                return ""
        else:
            value = self.signature.named(args, kwargs)
            if self.unique is not True:
                value = [value[name] for name in self.unique]  # type: ignore[union-attr]
        text = serializer.dumps(value, what=f"{self.owner}: what `unique` makes of this call", in_order=True)
        return hashlib.sha256(f"{self.owner}\n{text}".encode()).hexdigest()[:32]

    def _check_choice(self, name: str, value: object, choices: Sequence[str]) -> None:
        if value not in choices:
            raise InvalidTask(f"{self.owner}: {name} is {value!r}, but has to be one of: {', '.join(choices)}.")

    def _check_names(self, names: Sequence[Any]) -> None:
        known = [parameter.name for parameter in self.signature.parameters]
        for name in names:
            if name not in known:
                raise InvalidTask(
                    f"{self.owner}: unique names {name!r}, but the task has no such argument. "
                    f"It has: {', '.join(known) or 'none'}."
                )

    def _check_defaults(self) -> None:
        for parameter in self.signature.parameters:
            if parameter.default is not parameter.empty:
                try:
                    serializer.dumps(parameter.default, what=f"{self.owner}: the default of {parameter.name!r}")
                except Unserializable as error:
                    raise InvalidTask(f"{error} Name the arguments that count instead of unique=True.") from error


def uniqueness_of(task: Any, signature: Signature) -> Uniqueness | None:
    """What the options of a task, or of a copy, come to; None: its jobs are not unique. Raises InvalidTask."""
    if task.unique is False:
        said = {name for name in UNIQUE_OPTIONS if getattr(task, name) != getattr(type(task), name)}
        given = UNIQUE_OPTIONS & task.changed if task.changed else said  # a copy has the others from its task
        if given:
            raise InvalidTask(f"{task.name}: {min(given)} says how jobs are unique, but they are not: set unique, too.")
        return None
    return Uniqueness(
        owner=task.name,
        unique=task.unique,
        until=task.unique_until,
        seconds=task.unique_seconds,
        on_conflict=task.unique_on_conflict,
        signature=signature,
    )

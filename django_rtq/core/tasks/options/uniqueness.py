"""Unique jobs: computes the digest of a call. Of jobs with the same digest only one exists at a time (G9).

The digest is made of the name of the task, and of all arguments (unique=True), of some of them (a list of names), or of
what a function returns for them.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django_rtq.core.jobs import serializer
from django_rtq.core.tasks.calls import Signature
from django_rtq.exceptions import InvalidTask, Unserializable

UniqueOption = bool | Sequence[str] | Callable[..., Any]
Until = Literal["start", "done"]
OnConflict = Literal["return", "raise", "replace", "rerun"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniqueness:
    """The unique_* options of a task, whose values are of their kinds. Raises InvalidTask for what does not fit."""

    owner: str
    unique: UniqueOption
    until: Until
    seconds: float
    on_conflict: OnConflict
    signature: Signature

    def __post_init__(self) -> None:
        if self.until == "start" and self.on_conflict == "rerun":
            raise InvalidTask(
                f'{self.owner}: unique_on_conflict="rerun" needs unique_until="done". With "start", a call makes a new '
                "job while another one runs."
            )
        if callable(self.unique):
            if inspect.iscoroutinefunction(self.unique):
                raise InvalidTask(f"{self.owner}: unique is an async function, but it is called without await.")
            self.signature.check_applies("unique", self.unique)
        elif isinstance(self.unique, list | tuple) and self.unique:
            self._check_names(self.unique)
        elif not isinstance(self.unique, bool):
            raise InvalidTask(
                f"{self.owner}: unique is {self.unique!r}, but has to be True or False, a list of argument names, "
                "or a function."
            )
        elif self.unique:
            self._check_defaults()

    @property
    def limit_ms(self) -> int:
        """The longest time for which a job blocks others like it, ms."""
        return max(1, round(self.seconds * 1000))

    def digest(self, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
        """The digest of a call; "" if the function returned None: then this call is not unique.

        Raises Unserializable if what the function returned is not plain data.
        """
        if callable(self.unique):
            value = self.signature.apply(self.unique, args, kwargs)
            if value is None:
                return ""
        else:
            value = self.signature.named(args, kwargs)
            if self.unique is not True:
                value = [value[name] for name in self.unique]  # type: ignore[union-attr]
        text = serializer.dumps(value, what=f"{self.owner}: the value of `unique` for this call", in_order=True)
        return hashlib.sha256(f"{self.owner}\n{text}".encode()).hexdigest()[:32]

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
                    raise InvalidTask(f"{error} List the arguments to compare instead of unique=True.") from error

"""Unique jobs: computes the digest of a call. Of jobs with the same digest only one exists at a time (G9).

The digest is made of the name of the task, and of all arguments (unique=True), of some of them (a list of names), or of
what a function returns for them.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from django_rtq.core.jobs import serializer
from django_rtq.core.tasks.calls import Signature
from django_rtq.exceptions import InvalidTask, Unserializable

UniqueOption = bool | Sequence[str] | Callable[..., Any]
Until = Literal["start", "done"]
OnConflict = Literal["return", "raise", "replace", "rerun"]


def digest_maker(task: Any) -> Callable[[Sequence[Any], dict[str, Any]], str]:
    """What makes the digest of a call of a unique Task. Raises InvalidTask if its options do not fit."""
    owner, unique, parameters = task.name, task.unique, task.call_signature.parameters
    if task.unique_until == "start" and task.unique_on_conflict == "rerun":
        raise InvalidTask(
            f'{owner}: unique_on_conflict="rerun" needs unique_until="done". With "start", a call makes a new job '
            "while another one runs."
        )
    if callable(unique):
        if inspect.iscoroutinefunction(unique):
            raise InvalidTask(f"{owner}: unique is an async function, but it is called without await.")
        task.call_signature.check_applies("unique", unique)
    elif isinstance(unique, list | tuple) and unique:
        names = [parameter.name for parameter in parameters]
        if unknown := [name for name in unique if name not in names]:
            raise InvalidTask(
                f"{owner}: unique names {unknown[0]!r}, but the task has no such argument. "
                f"It has: {', '.join(names) or 'none'}."
            )
    elif unique is not True:
        raise InvalidTask(
            f"{owner}: unique is {unique!r}, but has to be True or False, a list of argument names, or a function."
        )
    else:
        for parameter in parameters:
            if parameter.default is not parameter.empty:
                try:
                    serializer.dumps(parameter.default, what=f"{owner}: the default of {parameter.name!r}")
                except Unserializable as error:
                    raise InvalidTask(f"{error} List the arguments to compare instead of unique=True.") from error
    return partial(_digest, owner, unique, task.call_signature)


def _digest(owner: str, unique: UniqueOption, signature: Signature, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """The digest of a call; "" if the function returned None: then this call is not unique.

    Raises Unserializable if what the function returned is not plain data.
    """
    if callable(unique):
        value = signature.apply(unique, args, kwargs)
        if value is None:
            return ""
    else:
        value = signature.named(args, kwargs)
        if unique is not True:
            value = [value[name] for name in unique]  # type: ignore[union-attr]
    text = serializer.dumps(value, what=f"{owner}: the value of `unique` for this call", in_order=True)
    return hashlib.sha256(f"{owner}\n{text}".encode()).hexdigest()[:32]

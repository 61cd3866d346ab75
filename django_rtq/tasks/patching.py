"""Lets tests replace methods of a task, such as `delay`, although its options cannot be changed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

C = TypeVar("C", bound=type)


def with_patchable_methods(cls: C) -> C:
    """Allow methods of a frozen dataclass to be replaced on an instance, as mock.patch() and monkeypatch do.

    Everything else raises FrozenInstanceError, as before.
    """
    set_frozen: Callable[..., None] = cls.__setattr__
    delete_frozen: Callable[..., None] = cls.__delattr__

    def set_attribute(instance: Any, name: str, value: Any) -> None:
        (object.__setattr__ if is_method(name) else set_frozen)(instance, name, value)

    def delete_attribute(instance: Any, name: str) -> None:
        (object.__delattr__ if is_method(name) else delete_frozen)(instance, name)

    def is_method(name: str) -> bool:
        return inspect.isfunction(getattr(cls, name, None))

    cls.__setattr__, cls.__delattr__ = set_attribute, delete_attribute  # type: ignore[method-assign, assignment]
    return cls

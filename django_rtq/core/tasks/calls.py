"""What a call of a task is checked against: the signature of the function, and what names clients may have.

Of unique jobs, only one with the same digest exists at a time (G9). It is made of the name of the task, and of all
arguments (unique=True), of some of them (a list of names), or of what a function returns for them.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any
from uuid import UUID

from django_rtq.core.jobs import serializer
from django_rtq.core.validation import is_whole
from django_rtq.exceptions import InvalidTask, Unserializable

MAX_CLIENT_LENGTH = 200

ClientOption = str | Callable[..., Any]
UniqueOption = bool | Sequence[str] | Callable[..., Any]


def path_of(func: Callable[..., Any]) -> str:
    """Module and name of a function."""
    return f"{func.__module__}.{func.__qualname__}"


def is_client_name(name: str) -> bool:
    """Whether a client can have this name; "" is the one without a name."""
    return len(name) <= MAX_CLIENT_LENGTH and name.isprintable()


def client_name(where: str, value: Any) -> str:
    """The name of a client as a string: from a string, an integer, a UUID or None.

    Raises InvalidTask, in a sentence that begins with `where`.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        if not is_whole(value) and not isinstance(value, UUID):
            raise InvalidTask(f"{where} is {value!r}, but has to be text, a whole number or a UUID.")
        value = str(int(value)) if isinstance(value, int) else str(value)
    if not is_client_name(value):
        raise InvalidTask(
            f"{where} is {value[:50]!r}…, but has to be at most {MAX_CLIENT_LENGTH} printable characters."
        )
    return str.__str__(value)


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Signature:
    """The parameters of a task, without the context. Of one whose function gets many calls: any, as it has none."""

    def __init__(self, func: Callable[..., Any], *, takes_context: bool, takes_calls: bool = False) -> None:
        parameters = list(inspect.signature(_any_call if takes_calls else func).parameters.values())
        self._name = path_of(func)
        if takes_context:
            if [p.name for p in parameters[:1] if p.kind in _POSITIONAL] != ["context"]:
                raise InvalidTask(f"{self._name}: takes_context is on, so its first parameter has to be `context`.")
            del parameters[0]
        self._signature = inspect.Signature(parameters)
        positional = [p for p in parameters if p.kind in _POSITIONAL]
        self.names: Sequence[str] = [p.name for p in positional]
        self._has_plain_names = {p.kind for p in parameters} <= {inspect.Parameter.POSITIONAL_OR_KEYWORD}
        self._rest = next((p.name for p in parameters if p.kind is inspect.Parameter.VAR_KEYWORD), "")
        self._defaults = {p.name: p.default for p in positional if p.default is not p.empty}
        self._min_args = len(positional) - len(self._defaults)
        if any(p.kind is inspect.Parameter.KEYWORD_ONLY and p.default is p.empty for p in parameters):
            self._min_args = len(positional) + 1  # always bind, as keyword arguments are required

    def check(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Raises TypeError if the arguments do not match, as a call would."""
        if not kwargs and self._min_args <= len(args) <= len(self.names):
            return
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self._name}{self._signature}: {error}.") from None

    def named(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call by parameter name, defaults included."""
        if self._has_plain_names:
            return {**self._defaults, **dict(zip(self.names, args, strict=False)), **kwargs}
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def apply(self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call another function with the arguments of a call by name, defaults included."""
        named = self.named(args, kwargs)
        return function(**{**named.pop(self._rest, {}), **named})

    @property
    def parameters(self) -> Sequence[inspect.Parameter]:
        """All parameters, without the context."""
        return list(self._signature.parameters.values())

    def check_applies(self, name: str, function: Callable[..., Any]) -> None:
        """Raises InvalidTask if apply() could not call the function of an option."""
        try:
            signature = inspect.signature(function)
        except ValueError:
            return  # written in C, without a signature
        try:
            signature.bind(**{parameter: None for parameter in self._signature.parameters if parameter != self._rest})
        except TypeError as error:
            raise InvalidTask(
                f"{self._name}: {name} cannot be called with the arguments of the task by name: {error}. "
                "Add **_ for the arguments that it does not need."
            ) from None

    def check_unique(self, owner: str, unique: Any) -> None:
        """Raises InvalidTask if digest() could not use this value of the option."""
        if callable(unique):
            if inspect.iscoroutinefunction(unique):
                raise InvalidTask(f"{owner}: unique is an async function, but it is called without await.")
            self.check_applies("unique", unique)
        elif isinstance(unique, list | tuple) and unique:
            names = [parameter.name for parameter in self.parameters]
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
            for parameter in self.parameters:
                if parameter.default is not parameter.empty:
                    try:
                        serializer.dumps(parameter.default, what=f"{owner}: the default of {parameter.name!r}")
                    except Unserializable as error:
                        raise InvalidTask(f"{error} List the arguments to compare instead of unique=True.") from error

    def digest(self, owner: str, unique: UniqueOption, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
        """The digest of a call; "" if the function returned None: then this call is not unique.

        Raises Unserializable if what the function returned is not plain data.
        """
        if callable(unique):
            value = self.apply(unique, args, kwargs)
            if value is None:
                return ""
        else:
            value = self.named(args, kwargs)
            if unique is not True:
                value = [value[name] for name in unique]  # type: ignore[union-attr]
        text = serializer.dumps(value, what=f"{owner}: the value of `unique` for this call", in_order=True)
        return hashlib.sha256(f"{owner}\n{text}".encode()).hexdigest()[:32]


def _any_call(*args: Any, **kwargs: Any) -> None: ...


#: The signature of a task, cached for all its copies. Raises InvalidTask.
signature_of = cache(Signature)

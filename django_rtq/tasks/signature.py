"""What a task may be called with, checked where it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from django_rtq.exceptions import InvalidTask

_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Signature:
    """The parameters of a task that its callers fill in."""

    def __init__(self, func: Callable[..., Any], *, takes_context: bool) -> None:
        parameters = list(inspect.signature(func).parameters.values())
        self._name = f"{func.__module__}.{func.__qualname__}"
        if takes_context:
            if not parameters or parameters[0].name != "context" or parameters[0].kind not in _BY_PLACE:
                raise InvalidTask(f"{self._name}: takes_context is on, so its first parameter has to be `context`.")
            parameters = parameters[1:]
        self._signature = inspect.Signature(parameters)
        by_place = [p for p in parameters if p.kind in _BY_PLACE]
        self.names: Sequence[str] = [p.name for p in by_place]
        self._is_plain = len(by_place) == len(parameters) and not any(p.kind is _BY_PLACE[0] for p in by_place)
        self._rest = next((p.name for p in parameters if p.kind is inspect.Parameter.VAR_KEYWORD), "")
        self._defaults = {p.name: p.default for p in by_place if p.default is not p.empty}
        self._least = len(by_place) - len(self._defaults)
        if any(p.kind is inspect.Parameter.KEYWORD_ONLY and p.default is p.empty for p in parameters):
            self._least = len(by_place) + 1  # never enough without keywords: always bind

    def check(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Raises TypeError, as a call would, when the arguments do not fit."""
        if not kwargs and self._least <= len(args) <= len(self.names):
            return
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self._name}{self._signature}: {error}.") from None

    def named(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call, each by the name of its parameter, defaults included."""
        if self._is_plain:
            return {**self._defaults, **dict(zip(self.names, args, strict=False)), **kwargs}
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def apply(self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call another function with the arguments of a call, each by its name, defaults included."""
        named = self.named(args, kwargs)
        return function(**{**named.pop(self._rest, {}), **named})

    @property
    def parameters(self) -> Sequence[inspect.Parameter]:
        """What callers fill in."""
        return list(self._signature.parameters.values())

    def check_applies(self, name: str, function: Callable[..., Any]) -> None:
        """Raises InvalidTask for an option whose function apply() could not call."""
        try:
            signature = inspect.signature(function)
        except ValueError:
            return  # written in C, and does not say what it takes
        try:
            signature.bind(**{parameter: None for parameter in self._signature.parameters if parameter != self._rest})
        except TypeError as error:
            raise InvalidTask(
                f"{self._name}: {name} cannot be called with the arguments of the task by name: {error}. "
                "Let it take those that it does not need as **_."
            ) from None


@cache
def signature_of(func: Callable[..., Any], *, takes_context: bool) -> Signature:
    """The signature of a task, made once for all copies. Raises InvalidTask."""
    return Signature(func, takes_context=takes_context)

"""The base of captured(), eager() and private_redis(): context managers that also decorate tests."""

from __future__ import annotations

import functools
import inspect
import unittest
from abc import ABC, abstractmethod
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from typing_extensions import Self

D = TypeVar("D")


class Activation(ABC):
    """A context manager. As a decorator it is entered for each call of a function or coroutine function.

    For a class it is entered for each test: around setUp(), test and tearDown() of a unittest.TestCase, and around the
    test methods of another class.
    """

    def __init__(self) -> None:
        self._entered: list[ExitStack] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.enter(stack)
            self._entered.append(stack.pop_all())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._entered.pop().close()

    @abstractmethod
    def enter(self, stack: ExitStack) -> None:
        """Begin a block. The stack ends it."""

    def __call__(self, decorated: D) -> D:
        if inspect.isclass(decorated):
            is_test_case = issubclass(decorated, unittest.TestCase)
            names = ["run"] if is_test_case else [name for name in dir(decorated) if name.startswith("test")]
            for name in names:
                setattr(decorated, name, self(getattr(decorated, name)))
            return decorated
        function: Any = decorated
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)

            return cast(D, call_async)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return cast(D, call)

"""A property whose value is made when it is first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")


class shared_property(cached_property[T]):
    """A `cached_property` of which all threads get the same value, also those that ask for it first at the same time.

    Since Python 3.12 `cached_property` gives each of them a value of its own, and keeps the last. The function may be
    called several times; all values but the first that is stored are dropped. So it must not open anything.
    """

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: object | None, owner: type[Any] | None = None) -> Any:
        if instance is None:
            return self
        return vars(instance).setdefault(str(self.attrname), self.func(instance))

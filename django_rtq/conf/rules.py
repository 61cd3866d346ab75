"""Rules that single options of RTQ follow, in the metadata of their fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django_rtq.validation import is_finite

RULE = "rule"  # in the metadata of an option
MAX_VERSION = 100  # characters


@dataclass(frozen=True, slots=True)
class NumberRule:
    """Which numbers an option accepts."""

    allows_zero: bool = False
    is_whole: bool = False
    is_optional: bool = False  # None is accepted too

    def problem(self, value: object) -> str:
        """Why a value is not accepted; "" if it is."""
        if value is None and self.is_optional:
            return ""
        if not is_finite(value) or value < 0 or (value == 0 and not self.allows_zero):
            return "a number, 0 or more" if self.allows_zero else "a number above 0"
        return "a whole number" if self.is_whole and not isinstance(value, int) else ""


@dataclass(frozen=True, slots=True)
class VersionRule:
    """The version of a project: a short text, or None or "" for none."""

    def problem(self, value: object) -> str:
        """Why a value is not accepted; "" if it is."""
        is_text = isinstance(value, str) and value.isprintable() and len(value) <= MAX_VERSION
        return "" if is_text or value is None else f"a text of up to {MAX_VERSION} printable characters"


def number(default: float | None, *, zero: bool = False, whole: bool = False) -> Any:
    """The field of an option that is a number."""
    rule = NumberRule(allows_zero=zero, is_whole=whole, is_optional=default is None)
    return field(default=default, metadata={RULE: rule})

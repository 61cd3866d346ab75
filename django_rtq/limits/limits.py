"""Limits of a queue and of its clients, as people read and change them.

What is set here is stored in Redis, holds for all workers at once, and wins over RTQ["QUEUES"].
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from django_rtq.core.validation import did_you_mean
from django_rtq.limits.limit_kinds import LIMIT_KINDS
from django_rtq.limits.store import limit_values


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit in force, and where it comes from."""

    value: Any  # as in RTQ["QUEUES"]; None: no limit
    is_from_settings: bool  # and not set at run time


Limits: TypeAlias = Mapping[str, Limit]  # by name, like "max_running"


def limits_text(known: Collection[str], limits: Mapping[str, Any]) -> str:
    """The limits as they are stored. Raises ValueError for one that is not known here, or a wrong value."""
    if not limits:
        raise ValueError(f"Which limit? Give at least one of: {', '.join(known)}.")
    for name in limits:
        if name not in known:
            hint = did_you_mean(name, known, otherwise=f" Known are: {', '.join(known)}.")
            raise ValueError(f"{name!r} is not a limit here.{hint}")
    return " ".join(
        f"{name}=" if value == "settings" else LIMIT_KINDS[name].text(value) for name, value in limits.items()
    )


def read_limits(text: str, at_run_time: str) -> Limits:
    """The limits in a stored text, and those of them that were set at run time."""
    set_names, values = limit_values(at_run_time), limit_values(text)
    return {
        name: Limit(
            value=None if value == "none" else LIMIT_KINDS[name].decode(value),
            is_from_settings=name not in set_names,
        )
        for name, value in values.items()
        if name in LIMIT_KINDS  # a later version may have stored others
    }

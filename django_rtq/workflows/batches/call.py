"""Call: one job of a batch, as the function of its task gets it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of one job, and what is known of it. Tests make calls of their own: ``index([Call([1])])``."""

    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""  # of its job; "" in a plain call
    attempt: int = 1  # the number of this run, from 1
    queue_name: str = ""
    client: str = ""
    headers: Mapping[str, Any] = field(default_factory=dict)  # of using() and middleware; do not change them

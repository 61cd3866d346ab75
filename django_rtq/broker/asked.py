"""Jobs that run and were asked to stop, as renew tells a supervisor of those of its workers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class Asked(NamedTuple):
    """A job that runs and was asked to stop."""

    worker: str
    job_id: str
    how: str  # "ask" it, or "terminate" its process


def read_asked(renewed: Iterable[Any]) -> list[Asked]:
    """The jobs that answers to renew say are to stop."""
    flat = [word.decode() for _, _, asked in renewed for word in asked]
    return [Asked(*flat[i : i + 3]) for i in range(0, len(flat), 3)]

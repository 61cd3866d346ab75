"""What a job may know of itself while it runs, and tell of itself."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

LONGEST_TEXT = 200  # characters that are kept of what a job says
_MOST = 1e15  # of what is counted: whole numbers up to there are exact, in JSON too


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a job is told about itself."""

    job_id: str = ""  # "" in a plain call
    attempt: int = 1
    queue_name: str = ""
    client: str = ""
    _report: Callable[[str], None] | None = field(default=None, repr=False, compare=False)

    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Say how far the job is. It costs microseconds: what is said last is written down, twice a second at most.

        Of the text 200 characters are kept. Does nothing in a plain call. Raises TypeError and ValueError.
        """
        line = _line(_number(done, "done"), None if total is None else _number(total, "total"), text)
        if self._report is not None:
            self._report(line)


class _Run(Protocol):
    @property
    def context(self) -> JobContext: ...


class CurrentRun:
    """A thread or a coroutine in which jobs run, one after the other."""

    __slots__ = ("run",)

    def __init__(self, run: _Run | None = None) -> None:
        self.run = run


place: ContextVar[CurrentRun | None] = ContextVar("rtq_place", default=None)


def current_job() -> JobContext | None:
    """The job that runs here; None where no job does, as in a plain call."""
    here = place.get()
    return None if here is None or here.run is None else here.run.context


def report_progress(done: float, total: float | None = None, text: str = "") -> None:
    """progress() of the job that runs here. Where none does, it checks its arguments and does nothing."""
    (current_job() or JobContext()).progress(done, total, text)


def _number(value: object, name: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"progress({name}={value!r}): it has to be a number.")
    if not 0 <= value <= _MOST or (isinstance(value, float) and math.isnan(value)):
        raise ValueError(f"progress({name}={value!r}): it has to be between 0 and {_MOST:g}.")
    return value


def _line(done: float, total: float | None, text: object) -> str:
    if not isinstance(text, str):
        raise TypeError(f"progress(text={text!r}): it has to be a str.")
    clean = text[:LONGEST_TEXT].encode("utf-8", "replace").decode()
    return json.dumps({"done": done, "total": total, "text": clean})

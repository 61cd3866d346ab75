"""The stored failures of a job: one JSON object a line, the newest last."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django_rtq.jobs import serializer


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed run, as it is stored. Scripts store runs that ended with their process in the same form."""

    at: int  # the end of the run, ms
    seconds: float = 0.0  # how long it ran
    attempt: int
    worker: str
    error_class: str = ""
    error: str
    traceback: str = ""

    def line(self) -> str:
        """The line that is stored."""
        return serializer.dumps({name: getattr(self, name) for name in self.__slots__})


def read_failures(lines: bytes) -> list[dict[str, Any]]:
    """The failures that are kept of a job, the newest last. A line that cannot be read is the text of the error."""
    failures = []
    for line in lines.splitlines():
        try:
            failure = json.loads(line)
        except ValueError:
            failure = None
        failures.append(failure if isinstance(failure, dict) else {"error": line.decode(errors="replace")})
    return failures

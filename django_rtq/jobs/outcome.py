"""What is kept of a job that is over: for how many ms after its end, and what became of it, as JSON."""

from __future__ import annotations

import re
from typing import Any

from django_rtq.exceptions import PayloadError
from django_rtq.jobs import serializer

UNREADABLE_MS = 120_000  # what cannot be read is shown for so long, and then forgotten
_TEXT = re.compile(rb"(\d{1,15}) (.*)", re.DOTALL)


def read_outcome(text: bytes) -> tuple[int, dict[str, Any]]:
    """For how many ms it is kept, and what it says: nothing, if it cannot be read."""
    parts = _TEXT.fullmatch(text)
    if parts is None:
        return UNREADABLE_MS, {}
    try:
        outcome = serializer.loads(parts[2])
    except PayloadError:
        outcome = {}
    return int(parts[1]), outcome if isinstance(outcome, dict) else {}

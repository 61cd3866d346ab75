"""Stored log lines of a job: the only module that reads and writes them.

``<part> <JSON>``: append_log.lua writes the part in front, which tells lines that are sent again, and the JSON is
``[attempt, time in ms, level, logger, text]``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from django_rtq.core.jobs.job import moment

_encode = json.JSONEncoder(ensure_ascii=False).encode

MAX_LINES = 200  # of a job; append_log.lua cuts them
MAX_TEXT = 1_000  # characters of a message, and of the traceback behind it
MAX_NAME = 100  # characters of the names of a logger and a level


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A record that a job logged."""

    attempt: int  # the run that logged it, from 1
    at: datetime | None  # by the clock of the worker's machine
    level: str
    logger: str
    text: str  # the message; behind it, in lines of their own, the end of the traceback

    @classmethod
    def read(cls, stored: bytes) -> LogLine | None:
        """Read a stored line; None if it is invalid."""
        try:
            attempt, at_ms, level, logger, text = json.loads(stored.partition(b" ")[2])
            return cls(
                attempt=int(attempt), at=moment(int(at_ms)), level=str(level), logger=str(logger), text=str(text)
            )
        except (ValueError, TypeError):
            return None


def write_line(attempt: int, at_ms: int, level: str, logger: str, message: str, traceback: str = "") -> str:
    """A line to store. Of long texts the beginning of the message and the end of the traceback are kept."""
    text = message if len(message) <= MAX_TEXT else f"{message[: MAX_TEXT - 1]}…"
    if traceback:
        text += "\n" + (traceback if len(traceback) <= MAX_TEXT else f"…{traceback[1 - MAX_TEXT :]}")
    name = str(level)[:MAX_NAME]  # addLevelName() takes anything
    line = _encode([attempt, at_ms, name, logger[:MAX_NAME], text])
    return line if line.isascii() else line.encode("utf-8", "replace").decode()

"""Formats tracebacks as Python does, without the carets below the lines of source.

Python compiles a line to find out where its carets go. For a job that fails, that took most of the time.
"""

from __future__ import annotations

import linecache
import traceback
from collections import deque
from types import TracebackType
from typing import Any


def format_error(
    error: BaseException, entry: TracebackType | None, *, max_frames: int | None = None, chain: bool = True
) -> str:
    """The error as text, with its traceback from `entry` on, its notes, and, with `chain`, its causes and contexts.

    Of each traceback the last `max_frames` are shown. Raises what the exception's own `__str__` raises.
    """
    # With limit=0 Python reads no frames.
    whole = traceback.TracebackException(type(error), error, entry, limit=0)
    open_ends: list[tuple[Any, Any, TracebackType | None]] = [(whole, error, entry)]
    while open_ends:
        part, of_error, at = open_ends.pop()
        part.stack = _stack(at, max_frames)
        below = list(zip(getattr(part, "exceptions", None) or (), getattr(of_error, "exceptions", ()), strict=False))
        below += [(part.__cause__, of_error.__cause__), (part.__context__, of_error.__context__)] if chain else []
        open_ends += [(one, its_error, its_error.__traceback__) for one, its_error in below if one is not None]
    return "".join(whole.format(chain=chain))


def _stack(entry: TracebackType | None, max_frames: int | None) -> traceback.StackSummary:
    frames: deque[traceback.FrameSummary] = deque(maxlen=max_frames)
    for frame, line_number in traceback.walk_tb(entry):
        code = frame.f_code
        linecache.lazycache(code.co_filename, frame.f_globals)
        frames.append(traceback.FrameSummary(code.co_filename, line_number, code.co_name, lookup_line=False))
    return traceback.StackSummary(frames)

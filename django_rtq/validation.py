"""Checks that several modules share: settings, options of tasks, and what people type."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str = "", quoted: bool = False) -> str:
    """A hint for an unknown name, to append to a sentence: the closest known name, or else another hint."""
    close = difflib.get_close_matches(name, list(known), n=1)
    if not close:
        return otherwise
    return f" Did you mean {close[0]!r}?" if quoted else f" Did you mean {close[0]}?"

"""Pages of jobs, and cursors: where in a list a page begins."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django_rtq.core.jobs.details import JobDetails

_BAND = re.compile(r"-?[0-9]{1,12}\+?")  # in cursors
_TURN = re.compile(r"-?[0-9]{1,16}(\.[0-9]{1,20})?(e[+-]?[0-9]{1,3})?|inf")  # a score; inf: the client is blocked
_PLACE = re.compile(r"[0-9]{1,15}")

LONGEST_PAGE = 500
DEPTH = 5000  # jobs that a search with a filter looks at

#: The states that can be listed, and the order of each list. Queued: in the order of the clients' turns at this moment,
#: but all jobs of a client together, although they will be claimed in turn with those of others. Scheduled and
#: retrying: what is due first, and last what paused tasks hold. Running: the oldest first. Dead: the newest first.
#: Finished: those whose outcome is kept, what finished last first.
LISTS = ("queued", "scheduled", "running", "retrying", "dead", "finished")


class WrongCursor(ValueError):
    """A cursor is not one of these lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """Some jobs, and where the next page begins."""

    jobs: list[JobDetails] = field(default_factory=list)
    next_cursor: str = ""  # "": this was the last page
    searched: int = 0  # how many jobs were looked at for this page
    is_complete: bool = True  # False: the search reached its limit before the page was full
    #: Where a page behind each job begins, and how many jobs were looked at up to it.
    places: list[tuple[Sequence[Any], int]] = field(default_factory=list)


def encode_cursor(cursor: Sequence[Any]) -> str:
    """A cursor as text that may be part of a URL."""
    return base64.urlsafe_b64encode(json.dumps(cursor).encode()).decode().rstrip("=")


def decode_list(text: str) -> list[Any]:
    """The list in a cursor, with any values; [] for invalid text."""
    try:
        items = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, TypeError):
        return []
    return items if isinstance(items, list) else []


def checked_place(found: Sequence[Any]) -> tuple[Any, ...]:
    """A place in a list: (time, id), (band, turn, client, id, place in its lane), or (since, lane, how many of it, id).

    Else (), the beginning.
    """
    try:
        "".join(map(str, found)).encode()  # Redis cannot be asked for a lone surrogate
        if len(found) == 2:
            score = float(found[0])
            return (score, str(found[1])) if math.isfinite(score) else ()
        place = tuple(map(str, found))
        band, turn, number = ("0", place[0], place[2]) if len(place) == 4 else (place[0], place[1], place[4])
    except (ValueError, TypeError, OverflowError, IndexError):
        return ()
    return place if _BAND.fullmatch(band) and _TURN.fullmatch(turn) and _PLACE.fullmatch(number) else ()

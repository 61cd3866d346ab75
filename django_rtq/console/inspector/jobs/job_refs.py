"""Jobs in a list: where they are, and how some of them are read at once."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django_rtq.core.broker.keys import QueueKeys
from django_rtq.core.broker.redis.client import clock_ms
from django_rtq.core.broker.redis.commands import Command
from django_rtq.core.jobs.details import JobDetails, RawJob

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


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """Some jobs, and where the next page begins."""

    jobs: list[JobDetails] = field(default_factory=list)
    next_cursor: str = ""  # "": this was the last page
    searched: int = 0  # how many jobs were looked at for this page
    is_complete: bool = True  # False: the search reached its limit before the page was full
    #: Where a page behind each job begins, and how many jobs were looked at up to it.
    places: list[tuple[Sequence[Any], int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class JobRef:
    """What the list of a state knows of one of its jobs."""

    job_id: bytes
    cursor: tuple[Any, ...]  # the next page begins behind this
    known: Mapping[str, Any] = field(default_factory=dict)  # fields of RawJob


def check_list(state: str) -> None:
    """Raises ValueError for a state that has no list."""
    if state not in LISTS:
        raise ValueError(f"{state!r} is not one of {', '.join(LISTS)}.")


def read_commands(keys: QueueKeys, state: str, ids: Sequence[bytes]) -> list[Command]:
    """The commands that read jobs of a list, in one round trip."""
    hashes = [keys.jobs, keys.failures, keys.crashes, keys.errors]
    if state == "finished":
        hashes.append(keys.results)  # only here: a cancelled job that is still in its lane is not queued
    commands: list[Command] = [("HMGET", key, *ids) for key in hashes]
    if state == "finished":  # expired outcomes are not shown, although Redis may still have them
        commands.append(("TIME",))
    if state == "scheduled":
        commands.append(("ZMSCORE", keys.retrying, *ids))  # these have a list of their own
    return commands


def read_jobs(queue: str, state: str, refs: Sequence[JobRef], replies: Sequence[Any]) -> list[JobDetails | None]:
    """The jobs, from the replies of read_commands(); None for a job that is not in this state any more."""
    jobs = list(replies)
    now_ms = clock_ms(jobs.pop()) if state == "finished" else 0
    is_else = jobs.pop() if state == "scheduled" else [None] * len(refs)
    return [
        _raw_job(queue, ref, values, now_ms).details() if is_retrying is None else None
        for ref, is_retrying, *values in zip(refs, is_else, *jobs, strict=True)
    ]


def _raw_job(queue: str, ref: JobRef, values: Sequence[bytes | None], now_ms: int) -> RawJob:
    record, failures, crashes, errors, outcome = (value or b"" for value in (*values, b"")[:5])
    return RawJob(
        id=ref.job_id.decode(errors="replace"),
        queue=queue,
        record=record,
        failures=failures,
        crashes=crashes,
        errors=errors,
        outcome=outcome,
        **{"now_ms": now_ms, **ref.known},
    )


def encode_cursor(cursor: Sequence[Any]) -> str:
    """A cursor as text that may be part of a URL."""
    return base64.urlsafe_b64encode(json.dumps(cursor).encode()).decode().rstrip("=")


def decode_cursor(text: str) -> tuple[Any, ...]:
    """The opposite of encode_cursor(). Returns the beginning, (), for invalid text."""
    return checked_place(decode_list(text))


def decode_list(text: str) -> list[Any]:
    """The list in a cursor, with any values; [] for invalid text."""
    try:
        items = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, TypeError):
        return []
    return items if isinstance(items, list) else []


def checked_place(found: Sequence[Any]) -> tuple[Any, ...]:
    """A place in a list: (score, id), or (band, turn, client, id, place in its lane). Else (), the beginning."""
    try:
        "".join(map(str, found)).encode()  # Redis cannot be asked for a lone surrogate
        if len(found) == 2:
            score = float(found[0])
            return (score, str(found[1])) if math.isfinite(score) else ()
        band, turn, client, last, place = map(str, found)
    except (ValueError, TypeError, OverflowError):
        return ()
    is_valid = _BAND.fullmatch(band) and _TURN.fullmatch(turn) and _PLACE.fullmatch(place)
    return (band, turn, client, last, place) if is_valid else ()

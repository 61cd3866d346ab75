"""Values that go to Redis and come from it, in the order in which the scripts take and give them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class NewJob(NamedTuple):
    """One job to enqueue, in the order of the script's arguments."""

    id: str
    priority: int
    max_crashes: int
    client: str
    due: str  # "+ms" from now, "ms" since 1970, "" at once
    expires: str  # "+ms" after it is ready, "ms" since 1970, "" never
    at_front: str  # "1": before the other jobs of its client
    body: str  # JSON


class UniqueJob(NamedTuple):
    """A job of which no second like it may live: a NewJob, and what it holds."""

    id: str
    priority: int
    max_crashes: int
    client: str
    due: str
    expires: str
    at_front: str
    body: str
    digest: str  # the same for all that are alike; "": it is not unique after all
    until: str  # when others are let in again: "start" or "done"
    limit_ms: int  # and when at the latest, counted from when it is ready
    on_conflict: str  # what becomes of the second: "return", "raise", "replace", "rerun"


class CancelRequest(NamedTuple):
    """A job that runs and was asked to stop."""

    worker: str
    job_id: str
    how: str  # "ask" it, or "terminate" its process


def read_cancel_requests(renewed: Iterable[Any]) -> list[CancelRequest]:
    """The jobs that answers to renew say are to stop."""
    flat = [word.decode() for _, _, asked in renewed for word in asked]
    return [CancelRequest(*flat[i : i + 3]) for i in range(0, len(flat), 3)]

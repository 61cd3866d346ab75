"""Jobs to enqueue, with fields in the order of the scripts' arguments, and the answers about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from django_rtq.exceptions import QueueFull


class NewJob(NamedTuple):
    """A job to enqueue."""

    id: str
    priority: int
    max_crashes: int
    client: str
    due: str  # "+ms" from now, "ms" since 1970, "" at once
    expires: str  # "+ms" after it is ready, "ms" since 1970, "" never
    at_front: str  # "1": before the other jobs of its client
    body: str  # JSON
    digest: str = ""  # of its uniqueness lock: the same for all duplicates; "": it is not unique
    until: str = ""  # what releases the lock: "start" or "done"
    limit_ms: int = 0  # the longest time that the lock is held, counted from when the job is ready
    on_conflict: str = ""  # what to do with a duplicate: "return", "raise", "replace", "rerun"


PLAIN_FIELDS = 8  # of a job without a digest


class EnqueueCall(NamedTuple):
    """The arguments of one call of Broker.enqueue()."""

    queue: str
    jobs: Sequence[NewJob]
    all_or_none: bool = False  # store no job if one does not fit
    backend: str = ""  # in TASKS, whose Redis gets the jobs


def queue_full(
    queue: str, jobs: Sequence[NewJob], answers: Sequence[str], handles: Sequence[Any] = ()
) -> QueueFull | None:
    """The error for jobs that did not fit, by the answers of scripts; None: all fitted."""
    refused = [first for first, answer in enumerate(answers) if is_refusal(answer)]
    if not refused:
        return None
    first = next(first for first in refused if answers[first] != "full")  # says why: the others were to come with it
    _, scope, waiting, limit = answers[first].split(" ")
    stored = [None if is_refusal(answer) else handle for answer, handle in zip(answers, handles, strict=False)]
    return QueueFull(queue, jobs[first].client if scope == "client" else None, int(waiting), int(limit), stored)


def is_refusal(answer: str) -> bool:
    """Whether a script did not store a job because it does not fit (max_waiting)."""
    return answer.startswith("full")


class Unreplicated(list[str]):
    """The answers to jobs that are stored, but on fewer replicas than wanted."""

    def __init__(self, answers: list[str], problem: str) -> None:
        super().__init__(answers)
        self.problem = problem

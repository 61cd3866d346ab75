"""Waits for room in a full queue: RTQ["QUEUES"]["mail"]["on_full"] = "wait"."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

from django.db import connections

from django_rtq.broker.messages import NewJob, UniqueJob, is_refusal
from django_rtq.conf.config import get_config

Job = TypeVar("Job", NewJob, UniqueJob)
Item = TypeVar("Item")

FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.1  # seconds between two tries: each is twice as long as the one before


def wait_for_room(
    queue: str, jobs: list[Job], answers: Sequence[str], send: Callable[[list[Job]], Sequence[str]]
) -> list[str]:
    """Send refused jobs again until all are stored or the time is over. Returns the last answer to each job.

    Does not wait in a transaction, which would keep its locks meanwhile.
    """
    latest = list(answers)
    if any(connection.in_atomic_block for connection in connections.all(initialized_only=True)):
        return latest
    for pause in _pauses(queue, latest):
        time.sleep(pause)
        places = _refused(latest)
        again = [jobs[place] for place in places]
        _replace(latest, places, send(again))
        _replace(jobs, places, again)  # they may have new ids
    return latest


async def await_room(
    queue: str, jobs: list[Job], answers: Sequence[str], send: Callable[[list[Job]], Awaitable[Sequence[str]]]
) -> list[str]:
    """wait_for_room() for coroutines. The event loop goes on."""
    latest = list(answers)
    for pause in _pauses(queue, latest):
        await asyncio.sleep(pause)
        places = _refused(latest)
        again = [jobs[place] for place in places]
        _replace(latest, places, await send(again))
        _replace(jobs, places, again)
    return latest


def _pauses(queue: str, latest: Sequence[str]) -> Iterator[float]:
    """How many seconds to wait before each try, while jobs are refused."""
    options = get_config().queue(queue)
    if options.on_full != "wait":
        return
    deadline, pause = time.monotonic() + options.on_full_timeout, FIRST_PAUSE
    while _refused(latest) and (left := deadline - time.monotonic()) > 0:
        yield min(pause, left)
        pause = min(LONGEST_PAUSE, 2 * pause)


def _refused(answers: Sequence[str]) -> list[int]:
    return [place for place, answer in enumerate(answers) if is_refusal(answer)]


def _replace(old: list[Item], places: Sequence[int], new: Sequence[Item]) -> None:
    for place, item in zip(places, new, strict=True):
        old[place] = item

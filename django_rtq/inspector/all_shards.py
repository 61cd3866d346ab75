"""The overview of all shards together. They are asked at once, and those that do not answer are named."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import NamedTuple, TypeVar

from django_rtq.broker.brokers import on_brokers_forgotten
from django_rtq.broker.task_backends import shard_numbers, shard_place
from django_rtq.exceptions import BrokerError, BrokerUnavailable
from django_rtq.inspector.details import QueueDetails
from django_rtq.inspector.inspector import Inspector, get_inspector
from django_rtq.inspector.metrics.time_series import Series
from django_rtq.inspector.overview import Overview, QueueRow

ANSWER_SECONDS = 1.0  # for so long a page waits for a shard
T = TypeVar("T")
Number = TypeVar("Number", int, float)


class SilentShard(NamedTuple):
    """A shard that did not answer."""

    number: int
    since: datetime  # when this process noticed it
    error: str  # "": it has not answered yet


@dataclass(frozen=True, slots=True)
class ShardAnswers:
    """What the shards answered."""

    by_shard: Mapping[int, tuple[Overview, list[Series]]]  # an overview, and the counters of its queues
    silent: Sequence[SilentShard]

    def merged(self) -> tuple[Overview, list[Series]]:
        """All in one. Raises BrokerUnavailable if none answered."""
        if not self.by_shard:
            raise BrokerUnavailable(next((each.error for each in self.silent if each.error), "No shard answers."))
        overviews = {number: overview for number, (overview, _) in self.by_shard.items()}
        return merged_overview(overviews), [series for _, of_shard in self.by_shard.values() for series in of_shard]


class _Shards:
    """Asks all shards, each in a thread. One that does not answer is asked again when its thread has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        """The settings were changed, or this is a new process."""
        self._open: dict[int, Future[tuple[Overview, list[Series]]]] = {}
        self._silent: dict[int, SilentShard] = {}

    def ask(self, read: Callable[[Inspector], tuple[Overview, list[Series]]]) -> ShardAnswers:
        with self._lock:
            hung = {number for number, future in self._open.items() if not future.done()}
            asked = {number: _asked(number, read) for number in shard_numbers() if number not in hung}
            self._open |= asked
        until, answers = time.monotonic() + ANSWER_SECONDS, {}
        for number, future in asked.items():
            try:
                answers[number] = future.result(max(0.0, until - time.monotonic()))
                self._silent.pop(number, None)
            except FutureTimeout:
                self._note(number, "")
            except BrokerError as error:
                self._note(number, str(error))
        for number in hung:
            self._note(number, "")
        return ShardAnswers(answers, [self._silent[number] for number in shard_numbers() if number not in answers])

    def _note(self, number: int, error: str) -> None:
        before = self._silent.get(number)
        since = before.since if before else datetime.now(timezone.utc)
        self._silent[number] = SilentShard(number, since, error or (before.error if before else ""))


def _asked(
    number: int, read: Callable[[Inspector], tuple[Overview, list[Series]]]
) -> Future[tuple[Overview, list[Series]]]:
    future: Future[tuple[Overview, list[Series]]] = Future()
    inspector = get_inspector(shard_place(number))

    def ask() -> None:
        try:
            future.set_result(read(inspector))
        except BaseException as error:  # noqa: BLE001 - who waits for it gets it
            future.set_exception(error)

    threading.Thread(target=ask, name=f"rtq-shard-{number}", daemon=True).start()
    return future


_shards = _Shards()
ask_shards = _shards.ask
on_brokers_forgotten.append(_shards.forget)


# -- one overview of several


def merged_overview(overviews: Mapping[int, Overview]) -> Overview:
    """The overviews of some shards as one: numbers are added up. What is about one server only is that of the first."""
    every = list(overviews.values())
    rows: dict[str, list[QueueRow]] = {}
    for overview in every:
        for row in overview.queues:
            rows.setdefault(row.details.name, []).append(row)
    memory = [overview.server.used_memory for overview in every if overview.server.used_memory is not None]
    return replace(
        every[0],
        now=max(overview.now for overview in every),
        queues=[_merged_row(rows[name]) for name in sorted(rows)],
        workers=[worker for overview in every for worker in overview.workers],
        server=replace(every[0].server, used_memory=sum(memory) if memory else None),
        contact_seconds=_least(overview.contact_seconds for overview in every),
        scheduler_seconds=_most(overview.scheduler_seconds for overview in every),
        unscheduled=sorted({name for overview in every for name in overview.unscheduled}),
    )


def _merged_row(rows: Sequence[QueueRow]) -> QueueRow:
    if len(rows) == 1:
        return rows[0]
    slots = sum(row.slots for row in rows)
    busy = sum(row.utilisation * row.slots for row in rows if row.utilisation is not None)
    return replace(
        rows[0],
        details=_merged_details([row.details for row in rows]),
        series=merged_series([row.series for row in rows]),
        slots=slots,
        done_per_minute=sum(row.done_per_minute for row in rows),
        failed_per_minute=sum(row.failed_per_minute for row in rows),
        utilisation=busy / slots if slots else None,
    )


_SUMS = ("queued", "scheduled", "retrying", "running", "dead", "clients", "finished", "lost")


def _merged_details(queues: Sequence[QueueDetails]) -> QueueDetails:
    return replace(
        queues[0],
        **{name: sum(getattr(queue, name) for queue in queues) for name in _SUMS},
        paused=any(queue.paused for queue in queues),
        oldest_seconds=_most(queue.oldest_seconds for queue in queues),
        contact_seconds=_least(queue.contact_seconds for queue in queues),
        scheduler_seconds=_most(queue.scheduler_seconds for queue in queues),
    )


def merged_series(series: Sequence[Series]) -> Series:
    """The sums of these counters, step by step from the last one."""
    counts: dict[str, Counter[int]] = {}
    for one in series:
        for name in one.counts:
            counts.setdefault(name, Counter()).update(dict(enumerate(one.of(name))))
    steps = series[0].steps
    return replace(series[0], counts={name: [sums[i] for i in range(steps)] for name, sums in counts.items()})


def _most(values: Iterable[Number | None]) -> Number | None:
    return max((value for value in values if value is not None), default=None)


def _least(values: Iterable[Number | None]) -> Number | None:
    return min((value for value in values if value is not None), default=None)

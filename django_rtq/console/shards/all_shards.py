"""The overview of all shards together. They are asked at once, and those that do not answer are named."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

from django_rtq.console.inspector.details import QueueDetails
from django_rtq.console.inspector.inspector import Inspector, get_inspector
from django_rtq.console.inspector.metrics.time_series import Series
from django_rtq.console.inspector.overview import Overview, QueueRow
from django_rtq.console.inspector.task_pauses import TaskPause
from django_rtq.core.broker.brokers import on_brokers_forgotten
from django_rtq.core.broker.task_backends import shard_numbers, shard_place
from django_rtq.core.clocks import utc_now
from django_rtq.exceptions import BrokerError, BrokerUnavailable, RTQError
from django_rtq.workflows.workflow_states import WorkflowStates

ANSWER_SECONDS = 1.0  # for so long a page waits for a shard
T = TypeVar("T")
Value = TypeVar("Value")
Number = TypeVar("Number", int, float)


class SilentShard(NamedTuple):
    """A shard that did not answer."""

    number: int
    since: datetime  # when this process noticed it
    error: str  # "": it has not answered yet


@dataclass(frozen=True, slots=True)
class ShardAnswers(Generic[T]):
    """What the shards answered."""

    by_shard: Mapping[int, T]
    silent: Sequence[SilentShard]
    refused: Sequence[RTQError] = ()  # of shards that do not have what they were asked for

    def checked(self) -> Mapping[int, T]:
        """The answers. Raises RTQError if there is none; BrokerUnavailable, if no shard answers."""
        if self.by_shard:
            return self.by_shard
        if self.refused:
            raise self.refused[0]
        who = f"Shard {self.silent[0].number} does not answer." if len(self.silent) == 1 else "No shard answers."
        raise BrokerUnavailable(" ".join([who, *(each.error for each in self.silent if each.error)][:2]))


class _Shards:
    """Asks shards, each in a thread. One that does not answer is asked again when its thread has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        """The settings were changed, or this is a new process."""
        self._oldest: dict[int, tuple[Future[Any], float]] = {}  # its oldest question, and until when that may take
        self._silent: dict[int, SilentShard] = {}

    def ask(self, read: Callable[[Inspector, int], T], numbers: Iterable[int] | None = None) -> ShardAnswers[T]:
        """What these shards, or all, answer. `read` gets the inspector and the number of each, in a thread."""
        until, wanted = time.monotonic() + ANSWER_SECONDS, list(shard_numbers() if numbers is None else numbers)
        with self._lock:
            asked = {number: self._asked(number, read, until) for number in wanted if not self._hangs(number)}
        answers, silent, refused = dict[int, T](), list[SilentShard](), list[RTQError]()
        for number in wanted:
            try:
                if number not in asked:
                    raise FutureTimeout
                answers[number] = asked[number].result(max(0.0, until - time.monotonic()))
                self._silent.pop(number, None)
            except FutureTimeout:
                silent.append(self._note(number, ""))
            except BrokerError as error:
                silent.append(self._note(number, str(error)))
            except RTQError as error:
                refused.append(error)
        return ShardAnswers(answers, silent, refused)

    def _hangs(self, number: int) -> bool:
        """Whether a question is under way that others were answered in the time of."""
        oldest, end = self._oldest.get(number, (None, 0.0))
        return oldest is not None and not oldest.done() and end < time.monotonic()

    def _asked(self, number: int, read: Callable[[Inspector, int], T], until: float) -> Future[T]:
        future: Future[T] = Future()
        inspector = get_inspector(shard_place(number))

        def ask() -> None:
            try:
                future.set_result(read(inspector, number))
            except BaseException as error:  # noqa: BLE001 - who waits for it gets it
                future.set_exception(error)

        threading.Thread(target=ask, name=f"rtq-shard-{number}", daemon=True).start()
        oldest, _ = self._oldest.get(number, (None, 0.0))
        if oldest is None or oldest.done():
            self._oldest[number] = future, until
        return future

    def _note(self, number: int, error: str) -> SilentShard:
        before = self._silent.get(number)
        since = before.since if before else utc_now()
        self._silent[number] = SilentShard(number, since, error or (before.error if before else ""))
        return self._silent[number]


_shards = _Shards()
ask_shards = _shards.ask
on_brokers_forgotten.append(_shards.forget)


# -- one overview of several


Front = tuple[Overview, list[Series]]  # an overview, and the counters of its queues


def merged_front(by_shard: Mapping[int, Front]) -> Front:
    """All in one."""
    overview = merged_overview({number: overview for number, (overview, _) in by_shard.items()})
    return overview, [series for _, of_shard in by_shard.values() for series in of_shard]


def merged_overview(overviews: Mapping[int, Overview]) -> Overview:
    """The overviews of some shards as one: numbers are added up. What is about one server only is that of the first."""
    return merged(
        list(overviews.values()),
        now=max,
        queues=lambda lists: [_merged_row(rows) for _, rows in sorted(grouped("details.name", joined(lists)).items())],
        workers=joined,
        server=lambda servers: merged(servers, used_memory=total),
        contact_seconds=least,
        scheduler_seconds=most,
        unscheduled=lambda lists: sorted(set(joined(lists))),
        workflows=_merged_workflows,
    )


def _merged_workflows(every: Sequence[WorkflowStates]) -> WorkflowStates:
    counts: Counter[str] = Counter()
    for states in every:
        counts.update(states.counts)
    blocked = joined(states.blocked for states in every)
    return WorkflowStates(counts=counts, blocked=sorted(blocked, key=lambda flow: flow.since))


def _merged_row(rows: Sequence[QueueRow]) -> QueueRow:
    if len(rows) == 1:
        return rows[0]
    row = merged(
        rows, details=merged_details, series=merged_series, slots=sum, done_per_minute=sum, failed_per_minute=sum
    )
    busy = sum(row.utilisation * row.slots for row in rows if row.utilisation is not None)
    return replace(row, utilisation=busy / row.slots if row.slots else None)


_SUMS = ("queued", "scheduled", "retrying", "running", "dead", "clients", "finished", "lost")


def merged_details(queues: Sequence[QueueDetails]) -> QueueDetails:
    """A queue in several shards: paused if it is in one of them."""
    return merged(
        queues,
        **dict.fromkeys(_SUMS, sum),
        **dict.fromkeys(("oldest_seconds", "scheduler_seconds", "paused_seconds"), most),
        contact_seconds=least,
        paused=any,
        paused_tasks=lambda lists: _merged_pauses(joined(lists)),
        paused_clients=lambda lists: tuple(joined(lists)),
    )


def _merged_pauses(pauses: Iterable[TaskPause]) -> tuple[TaskPause, ...]:
    by_task: dict[str, TaskPause] = {}
    for pause in pauses:
        other = by_task.get(pause.task, pause)
        first = other if pause.is_over else pause  # whoever paused it, not where it was resumed
        held = pause.held + other.held if other is not pause else pause.held
        by_task[pause.task] = replace(first, seconds=most([pause.seconds, other.seconds]), held=held)
    return tuple(by_task[task] for task in sorted(by_task))


def merged_series(series: Sequence[Series]) -> Series:
    """The sums of these counters, step by step from the last one."""
    counts: dict[str, Counter[int]] = {}
    for one in series:
        for name in one.counts:
            counts.setdefault(name, Counter()).update(dict(enumerate(one.of(name))))
    steps = series[0].steps
    return replace(series[0], counts={name: [sums[i] for i in range(steps)] for name, sums in counts.items()})


def most(values: Iterable[Number | None]) -> Number | None:
    """The largest value; None: none is known."""
    return max((value for value in values if value is not None), default=None)


def least(values: Iterable[Number | None]) -> Number | None:
    """The smallest value; None: none is known."""
    return min((value for value in values if value is not None), default=None)


def total(values: Iterable[Number | None]) -> Number | None:
    """The sum; None: none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def joined(lists: Iterable[Iterable[T]]) -> list[T]:
    """All items."""
    return list(chain.from_iterable(lists))


def grouped(name: str, items: Iterable[T]) -> dict[str, list[T]]:
    """The items by one of their attributes."""
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(attrgetter(name)(item), []).append(item)
    return groups


def merged(same: Sequence[Value], **ways: Callable[[list[Any]], Any]) -> Value:
    """One dataclass of several: these fields are made of those of all, and the others are those of the first."""
    of_all = {name: way([getattr(each, name) for each in same]) for name, way in ways.items()}
    return replace(same[0], **of_all)  # type: ignore[type-var]

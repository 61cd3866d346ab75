"""The overview of all shards together. They are asked at once, and those that do not answer are named."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django_rtq.console.reading.readers import Readers, SilentShard, readers_of
from django_rtq.core.broker.brokers import on_brokers_forgotten
from django_rtq.core.broker.task_backends import shard_numbers, shard_place
from django_rtq.databases.clocks import utc_now
from django_rtq.exceptions import BrokerError, BrokerUnavailable, RTQError

ANSWER_SECONDS = 1.0  # for so long a page waits for a shard
T = TypeVar("T")


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

    def ask(
        self, read: Callable[[Readers], T], numbers: Iterable[int] | None = None, *, in_turn: bool = False
    ) -> ShardAnswers[T]:
        """What these shards, or all, answer. `read` gets the readers of each, in a thread.

        `in_turn`: in this thread, one after the other, each for as long as connections wait.
        """
        until, wanted = time.monotonic() + ANSWER_SECONDS, list(shard_numbers() if numbers is None else numbers)
        with self._lock:
            free = [] if in_turn else [number for number in wanted if not self._hangs(number)]
            asked = {number: self._asked(number, read, until) for number in free}
        answers, silent, refused = dict[int, T](), list[SilentShard](), list[RTQError]()
        for number in wanted:
            try:
                if in_turn:
                    answers[number] = read(readers_of(shard_place(number)))
                elif number in asked:
                    answers[number] = asked[number].result(max(0.0, until - time.monotonic()))
                else:
                    raise FutureTimeout
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

    def _asked(self, number: int, read: Callable[[Readers], T], until: float) -> Future[T]:
        future: Future[T] = Future()
        readers = readers_of(shard_place(number))

        def ask() -> None:
            try:
                future.set_result(read(readers))
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

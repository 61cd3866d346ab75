"""delay() and its kin, as type checkers see them, and how they wait for room in a full queue."""

from __future__ import annotations

import reprlib
import time
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeAlias, TypeVar

from asgiref.sync import sync_to_async
from django.db import connections

from django_rtq.core.broker.messages import NewJob, Unreplicated, is_refusal
from django_rtq.core.broker.redis.commands import Pause
from django_rtq.core.conf.config import get_config
from django_rtq.core.handle import JobHandle
from django_rtq.core.tasks.calls import path_of

if TYPE_CHECKING:
    from django.tasks import TaskResult

P = ParamSpec("P")
T_co = TypeVar("T_co", covariant=True)
Arguments: TypeAlias = tuple[Sequence[Any], dict[str, Any]]
Calls: TypeAlias = Iterable[tuple[Sequence[Any], Mapping[str, Any]]]
Handles: TypeAlias = list[JobHandle[Any]]

FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.1  # seconds between two tries while a queue is full: each is twice the one before


class EnqueueMethods(Generic[P, T_co]):
    """Enqueues jobs that call a function with these parameters, and have results of this type."""

    func: Callable[..., Any]

    def delay(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[T_co]:
        """Enqueue a job that calls the function in a worker. When this returns, the job is stored in Redis (G1).

        Raises TypeError if the arguments do not match the signature, PayloadError if they cannot be stored,
        BrokerUnavailable (the job may be stored), BrokerFull and QueueFull (it is not). If the task is unique and a job
        like it exists, returns that job with `duplicate=True`, or raises DuplicateJob, as unique_on_conflict says.
        """
        return self._send([(args, kwargs)])[0]

    async def adelay(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[T_co]:
        """delay() for coroutines. Calls of one event loop that come together are sent together.

        If it is cancelled, the job may be stored all the same. The functions of `client` and `unique` run on the event
        loop.
        """
        return (await self._asend([(args, kwargs)]))[0]

    def delay_on_commit(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[T_co]:
        """delay() when the open transaction commits; at once if none is open, and not at all after a rollback.

        The database is that of the option on_commit, else of RTQ["ENQUEUE_ON_COMMIT"], else the one that is written.
        The arguments are checked now. A job that cannot be sent raises BrokerError after the commit. For unique jobs,
        unique_on_conflict="raise" means "return", and the handle is corrected after the commit.
        """
        return self._on_commit().delay(*args, **kwargs)

    async def adelay_on_commit(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[T_co]:
        """delay_on_commit() for async code."""
        return await sync_to_async(self.delay_on_commit, thread_sensitive=True)(*args, **kwargs)

    def delay_many(self, calls: Calls, *, all_or_none: bool = False) -> list[JobHandle[T_co]]:
        """Enqueue many jobs, given as (args, kwargs) each: one round trip for a few hundred.

        All arguments are checked before the first job is sent. Raises what delay() raises; QueueFull has the handles
        of those jobs that were stored. `all_or_none`: if one job does not fit, no job is stored; at most 500 jobs, or
        100 of a unique task, else it raises ValueError.
        """
        return self._send(checked_calls(self._path, calls), all_or_none)

    async def adelay_many(self, calls: Calls, *, all_or_none: bool = False) -> list[JobHandle[T_co]]:
        """delay_many() for coroutines."""
        return await self._asend(checked_calls(self._path, calls), all_or_none)

    if TYPE_CHECKING:  # Task has these below, and RTQTask from Django

        def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> TaskResult[P, T_co]: ...

        async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> TaskResult[P, T_co]: ...

        def get_result(self, result_id: str) -> TaskResult[P, T_co]: ...

        async def aget_result(self, result_id: str) -> TaskResult[P, T_co]: ...

    @property
    def _path(self) -> str:
        return path_of(self.func)

    @abstractmethod
    def _send(self, arguments: Iterable[Arguments], all_or_none: bool = False) -> Handles:
        """Enqueue jobs. Raises what delay() raises."""

    @abstractmethod
    async def _asend(self, arguments: Iterable[Arguments], all_or_none: bool = False) -> Handles:
        """_send() for coroutines."""

    @abstractmethod
    def _on_commit(self) -> EnqueueMethods[P, T_co]:
        """One whose jobs wait for the commit."""


def checked_calls(task: str, calls: Iterable[Any]) -> Iterator[tuple[Sequence[Any], dict[Any, Any]]]:
    """The calls of delay_many(), one by one. Raises TypeError."""
    for number, call in enumerate(calls):
        match call:
            case [[*args], {**kwargs}]:
                yield args, kwargs
            case _:
                raise TypeError(
                    f"{task}.delay_many() takes pairs of arguments and keyword arguments, like ((7, 42), {{}}), "
                    f"but number {number} is {reprlib.repr(call)}."
                )


# -- room in a full queue: RTQ["QUEUES"]["mail"]["on_full"] = "wait"


def until_stored(
    queue: str, jobs: Sequence[NewJob], answers: Sequence[str]
) -> Generator[list[NewJob] | Pause, Sequence[str], list[str]]:
    """Send refused jobs again, with their ids, until all are stored or the time is over: yields them, and pauses.

    Returns the latest answers, as Unreplicated if any were.
    """
    from django_rtq.core.broker.enqueue_calls import most_with_ids  # what declares tasks imports little

    latest, problem, most = list(answers), getattr(answers, "problem", ""), most_with_ids(jobs)
    for pause in pauses(queue, latest):
        yield Pause(pause)
        refused = _refused(latest)
        for start in range(0, len(refused), most):
            places = refused[start : start + most]
            again = yield [jobs[place] for place in places]
            problem = problem or getattr(again, "problem", "")
            for place, answer in zip(places, again, strict=True):
                latest[place] = answer
    return Unreplicated(latest, problem) if problem else latest


def is_in_transaction() -> bool:
    """Whether a transaction of any database is open: nobody may wait in it, which would keep its locks."""
    return any(connection.in_atomic_block for connection in connections.all(initialized_only=True))


def pauses(queue: str, latest: Sequence[str]) -> Iterator[float]:
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

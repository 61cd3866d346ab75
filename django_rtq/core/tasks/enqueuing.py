"""delay() and its kin: they send jobs to Redis, at once or after a commit, and again while their queue is full."""

from __future__ import annotations

import asyncio
import reprlib
import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, overload

from asgiref.sync import sync_to_async
from django.db import connections

from django_rtq.core import signals
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.messages import EnqueueCall, NewJob, Unreplicated, is_refusal, queue_full
from django_rtq.core.broker.task_backends import router
from django_rtq.core.conf.config import get_config
from django_rtq.core.handle import JobHandle
from django_rtq.core.tasks.calls import CalledTask, new_job
from django_rtq.core.transactions import (
    OnCommit,
    away,
    database_to_await,
    defer,
    has_block,
    has_transaction,
    ignores_transactions,
    integrations_wait,
    open_database,
    outbox,
    warn_if_in_transaction,
)
from django_rtq.exceptions import BrokerFull, BrokerUnavailable, DuplicateJob, NotReplicated

if TYPE_CHECKING:
    from django.tasks import TaskResult

    from django_rtq.core.tasks.options.uniqueness import OnConflict

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")
Arguments: TypeAlias = tuple[Sequence[Any], dict[str, Any]]
Calls: TypeAlias = Iterable[tuple[Sequence[Any], Mapping[str, Any]]]
Handles: TypeAlias = list[JobHandle[Any]]

STORED = frozenset(("ok", "exists"))  # what most answers are
FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.1  # seconds between two tries while a queue is full: each is twice the one before


class EnqueuedTask(CalledTask, Protocol):
    """What sending needs to know of a task, besides. Task imports this module, so it is not named here."""

    @property
    def queue(self) -> str: ...
    @property
    def backend(self) -> str: ...
    @property
    def on_commit(self) -> OnCommit: ...
    @property
    def unique_on_conflict(self) -> OnConflict: ...


# -- the methods of tasks


class EnqueueMethods(Generic[P, R_co]):
    """Enqueues jobs that call a function with these parameters."""

    func: Callable[..., Any]

    @overload
    def delay(self: EnqueueMethods[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> JobHandle[T]: ...

    @overload
    def delay(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]: ...

    def delay(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[Any]:
        """Enqueue a job that calls the function in a worker. When this returns, the job is stored in Redis (G1).

        Raises TypeError if the arguments do not match the signature, PayloadError if they cannot be stored,
        BrokerUnavailable (the job may be stored), BrokerFull and QueueFull (it is not). If the task is unique and a job
        like it exists, returns that job with `duplicate=True`, or raises DuplicateJob, as unique_on_conflict says.
        """
        return self._send([(args, kwargs)])[0]

    @overload
    async def adelay(
        self: EnqueueMethods[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
    ) -> JobHandle[T]: ...

    @overload
    async def adelay(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]: ...

    async def adelay(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[Any]:
        """delay() for coroutines. Calls of one event loop that come together are sent together.

        If it is cancelled, the job may be stored all the same. The functions of `client` and `unique` run on the event
        loop.
        """
        return (await self._asend([(args, kwargs)]))[0]

    @overload
    def delay_on_commit(
        self: EnqueueMethods[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
    ) -> JobHandle[T]: ...

    @overload
    def delay_on_commit(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]: ...

    def delay_on_commit(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[Any]:
        """delay() when the open transaction commits; at once if none is open, and not at all after a rollback.

        The database is that of the option on_commit, else of RTQ["ENQUEUE_ON_COMMIT"], else the one that is written.
        The arguments are checked now. A job that cannot be sent raises BrokerError after the commit. For unique jobs,
        unique_on_conflict="raise" means "return", and the handle is corrected after the commit.
        """
        return self._on_commit().delay(*args, **kwargs)

    @overload
    async def adelay_on_commit(
        self: EnqueueMethods[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
    ) -> JobHandle[T]: ...

    @overload
    async def adelay_on_commit(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]: ...

    async def adelay_on_commit(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[Any]:
        """delay_on_commit() for async code."""
        return await sync_to_async(self.delay_on_commit, thread_sensitive=True)(*args, **kwargs)

    @overload
    def delay_many(
        self: EnqueueMethods[P, Coroutine[Any, Any, T]], calls: Calls, *, all_or_none: bool = ...
    ) -> list[JobHandle[T]]: ...

    @overload
    def delay_many(self, calls: Calls, *, all_or_none: bool = ...) -> list[JobHandle[R_co]]: ...

    def delay_many(self, calls: Calls, *, all_or_none: bool = False) -> list[JobHandle[Any]]:
        """Enqueue many jobs, given as (args, kwargs) each: one round trip for a few hundred.

        All arguments are checked before the first job is sent. Raises what delay() raises; QueueFull has the handles
        of those jobs that were stored. `all_or_none`: if one job does not fit, no job is stored; at most 500 jobs, or
        100 of a unique task, else it raises ValueError.
        """
        return self._send(checked_calls(self._path, calls), all_or_none)

    @overload
    async def adelay_many(
        self: EnqueueMethods[P, Coroutine[Any, Any, T]], calls: Calls, *, all_or_none: bool = ...
    ) -> list[JobHandle[T]]: ...

    @overload
    async def adelay_many(self, calls: Calls, *, all_or_none: bool = ...) -> list[JobHandle[R_co]]: ...

    async def adelay_many(self, calls: Calls, *, all_or_none: bool = False) -> list[JobHandle[Any]]:
        """delay_many() for coroutines."""
        return await self._asend(checked_calls(self._path, calls), all_or_none)

    if TYPE_CHECKING:  # Task has these below, and RTQTask from Django

        @overload
        def enqueue(
            self: EnqueueMethods[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
        ) -> TaskResult[P, T]: ...

        @overload
        def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> TaskResult[P, R_co]: ...

        def enqueue(self, *args: Any, **kwargs: Any) -> Any: ...

        @overload
        async def aenqueue(
            self: EnqueueMethods[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
        ) -> TaskResult[P, T]: ...

        @overload
        async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> TaskResult[P, R_co]: ...

        async def aenqueue(self, *args: Any, **kwargs: Any) -> Any: ...

        @overload
        def get_result(self: EnqueueMethods[P, Coroutine[Any, Any, T]], result_id: str) -> TaskResult[P, T]: ...

        @overload
        def get_result(self, result_id: str) -> TaskResult[P, R_co]: ...

        def get_result(self, result_id: str) -> Any: ...

        @overload
        async def aget_result(self: EnqueueMethods[P, Coroutine[Any, Any, T]], result_id: str) -> TaskResult[P, T]: ...

        @overload
        async def aget_result(self, result_id: str) -> TaskResult[P, R_co]: ...

        async def aget_result(self, result_id: str) -> Any: ...

    @property
    def _path(self) -> str:
        return f"{self.func.__module__}.{self.func.__qualname__}"

    @abstractmethod
    def _send(self, arguments: Iterable[Arguments], all_or_none: bool = False) -> Handles:
        """Enqueue jobs. Raises what delay() raises."""

    @abstractmethod
    async def _asend(self, arguments: Iterable[Arguments], all_or_none: bool = False) -> Handles:
        """_send() for coroutines."""

    @abstractmethod
    def _on_commit(self) -> EnqueueMethods[P, R_co]:
        """One whose jobs wait for the commit."""


# -- sending


def send(task: EnqueuedTask, calls: Iterable[Arguments], all_or_none: bool = False) -> Handles:
    """Make the jobs of some calls and enqueue them. Raises what delay() raises."""
    queue, backend = task.queue, task.backend
    jobs = _new_jobs(task, queue, calls, all_or_none)
    if jobs and (alias := _open_transaction(task)):
        return _enqueue_on_commit(alias, task, jobs, all_or_none)
    enqueue = get_broker(backend).enqueue
    try:
        answers = enqueue(queue, jobs, all_or_none=all_or_none) if jobs else []
        if not STORED.issuperset(answers):
            answers = _wait_for_room(queue, jobs, answers, partial(enqueue, queue, all_or_none=all_or_none))
    except (BrokerUnavailable, BrokerFull) as error:
        box = outbox()
        if not box or not box.store_instead(task.name, EnqueueCall(queue, jobs, backend=backend), error):
            raise
        return [JobHandle(job.id, queue, backend=backend) for job in jobs]
    if away and (box := outbox()):
        box.note_answers([(EnqueueCall(queue, jobs, backend=backend), answers)])
    if signals.job_enqueued.receivers:
        signals.send_enqueued(type(task), queue, task.name, _added(jobs, answers))
    return _handles(task, queue, jobs, answers)


async def asend(task: EnqueuedTask, calls: Iterable[Arguments], all_or_none: bool = False) -> Handles:
    """send() for coroutines, without waiting for a commit."""
    queue = task.queue
    jobs, enqueue = _new_jobs(task, queue, calls, all_or_none), get_broker(task.backend).aenqueue
    answers = await enqueue(queue, jobs, all_or_none=all_or_none) if jobs else []
    if not STORED.issuperset(answers):
        answers = await _await_room(queue, jobs, answers, partial(enqueue, queue, all_or_none=all_or_none))
    if signals.job_enqueued.receivers:
        ids = _added(jobs, answers)
        if ids:
            await signals.job_enqueued.asend_robust(type(task), job_ids=ids, queue=queue, task=task.name)
    return _handles(task, queue, jobs, answers)


def _new_jobs(task: EnqueuedTask, queue: str, calls: Iterable[Arguments], all_or_none: bool) -> list[NewJob]:
    if get_config().shards is None:
        return [new_job(task, args, kwargs) for args, kwargs in calls]
    new_id = router().new_ids(task.backend, queue)
    jobs = [new_job(task, args, kwargs, new_id) for args, kwargs in calls]
    if all_or_none:
        router().check_together(job.id for job in jobs)
    return jobs


def _handles(task: EnqueuedTask, queue: str, jobs: Sequence[NewJob], answers: Sequence[str]) -> Handles:
    """A handle for each job: that of the first one for a duplicate. Raises QueueFull, DuplicateJob, NotReplicated."""
    backend = task.backend
    if isinstance(answers, Unreplicated):
        raise NotReplicated(answers.problem, _handles(task, queue, jobs, list(answers)))
    if STORED.issuperset(answers):
        return [JobHandle(job.id, queue, backend=backend) for job in jobs]
    firsts = ["" if is_refusal(answer) else answer.partition(" ")[2] for answer in answers]
    handles: Handles = [
        JobHandle(first or job.id, queue, duplicate=bool(first), backend=backend)
        for job, first in zip(jobs, firsts, strict=True)
    ]
    if full := queue_full(queue, jobs, answers, handles):
        raise full
    if task.unique_on_conflict == "raise" and any(firsts):
        raise DuplicateJob(next(filter(None, firsts)), task.name)
    return handles


def waits_by_default(task: EnqueuedTask) -> bool:
    """Whether its jobs come through TASKS and wait for the commit, although neither an option nor a setting says so.

    Packages enqueue them in transactions: they are made for backends whose jobs are rows of the database.
    """
    return task.backend != "" and task.on_commit is None and integrations_wait()


def _open_transaction(task: EnqueuedTask) -> str | None:
    """The database whose commit the jobs have to wait for."""
    if task.backend and waits_by_default(task) and (block := open_database(has_block)):
        return block
    return awaited_transaction(task.name, task.on_commit)


def awaited_transaction(name: str, option: OnCommit) -> str | None:
    """The database with a transaction whose commit a task or a workflow of this name waits for."""
    if option is None and ignores_transactions():
        return None
    alias = database_to_await(option)
    if alias is None and option is None:
        warn_if_in_transaction(name)  # the setting is not set, and DEBUG is on
    return alias if alias and has_transaction(alias) else None


def _enqueue_on_commit(alias: str, task: EnqueuedTask, jobs: Sequence[NewJob], all_or_none: bool) -> Handles:
    """Enqueue the jobs when the transaction commits. The handles of duplicates are corrected then."""
    queue, backend = task.queue, task.backend
    handles: Handles = [JobHandle(job.id, queue, backend=backend) for job in jobs]

    def finish(answers: Sequence[str] | None, *, is_stored: bool) -> None:
        if answers is not None:  # else the jobs are in the outbox still, whose relay announces them
            for handle, answer in zip(handles, answers, strict=True):
                if not is_refusal(answer):
                    if first := answer.partition(" ")[2]:
                        handle.id, handle.duplicate = first, True
                elif not is_stored:
                    handle.tell_refused()
            if signals.job_enqueued.receivers:
                signals.send_enqueued(type(task), queue, task.name, _added(jobs, answers))
        for handle in handles:
            handle.tell_sent()

    for handle in handles:
        handle.wait_for_commit()
    defer(alias, task.name, EnqueueCall(queue, jobs, all_or_none, backend), finish)
    return handles


def _added(jobs: Sequence[NewJob], answers: Sequence[str]) -> list[str]:
    """The ids of the jobs that are neither duplicates nor refused."""
    pairs = zip(jobs, answers, strict=True)
    return [job.id for job, answer in pairs if not (is_refusal(answer) or answer.startswith("duplicate"))]


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


def _wait_for_room(
    queue: str, jobs: list[NewJob], answers: Sequence[str], send: Callable[[list[NewJob]], Sequence[str]]
) -> list[str]:
    """Send refused jobs again until all are stored or the time is over. Returns the last answer to each job.

    Does not wait in a transaction, which would keep its locks meanwhile.
    """
    latest, replies = list(answers), [answers]
    if not is_in_transaction():
        for pause, again in _tries(queue, jobs, latest, replies):
            time.sleep(pause)
            replies.append(send(again))
    return _marked(latest, replies)


async def _await_room(
    queue: str, jobs: list[NewJob], answers: Sequence[str], send: Callable[[list[NewJob]], Awaitable[Sequence[str]]]
) -> list[str]:
    """_wait_for_room() for coroutines. The event loop goes on."""
    latest, replies = list(answers), [answers]
    for pause, again in _tries(queue, jobs, latest, replies):
        await asyncio.sleep(pause)
        replies.append(await send(again))
    return _marked(latest, replies)


def _tries(
    queue: str, jobs: Sequence[NewJob], latest: list[str], replies: Sequence[Sequence[str]]
) -> Iterator[tuple[float, list[NewJob]]]:
    """How long to wait, and the refused jobs to send again then, with their ids. The caller adds the reply."""
    from django_rtq.core.broker.enqueue_calls import most_with_ids  # what declares tasks imports little

    for pause in pauses(queue, latest):
        refused, most = _refused(latest), most_with_ids(jobs)
        for start in range(0, len(refused), most):
            places = refused[start : start + most]
            yield 0.0 if start else pause, [jobs[place] for place in places]
            for place, answer in zip(places, replies[-1], strict=True):
                latest[place] = answer


def is_in_transaction() -> bool:
    """Whether a transaction of any database is open: nobody may wait in it, with its locks."""
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


def _marked(latest: list[str], replies: Iterable[Sequence[str]]) -> list[str]:
    """The latest answers, as Unreplicated if one of the replies was."""
    problem = next((reply.problem for reply in replies if isinstance(reply, Unreplicated)), "")
    return Unreplicated(latest, problem) if problem else latest


def _refused(answers: Sequence[str]) -> list[int]:
    return [place for place, answer in enumerate(answers) if is_refusal(answer)]

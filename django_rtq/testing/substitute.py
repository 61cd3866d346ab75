"""Takes the place of Redis for producers and handles while captured() or eager() is active (D75)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload
from unittest import mock

from asgiref.sync import sync_to_async

from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.brokers import get_broker, substitute_broker
from django_rtq.core.broker.messages import EnqueueCall, NewJob
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.conf.config import Config, get_config
from django_rtq.core.handle import JobHandle
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import CancelAnswer
from django_rtq.exceptions import BrokerError, RedisNotAllowed
from django_rtq.testing.activation import Activation
from django_rtq.testing.engine import EngineSteps, EngineWorkflows, open_engine, use_queues
from django_rtq.testing.private_redis import delete_all
from django_rtq.workflows.steps.store import Holder, StepStore
from django_rtq.workflows.store import NewWorkflow, WorkflowStore

if TYPE_CHECKING:
    pass

S = TypeVar("S")
Item = TypeVar("Item")


class Substitute(Activation, Sequence[Item]):
    """Gets all jobs that are enqueued inside the block, in any thread, and answers the questions of their handles."""

    _items: list[Item]  # what became of them

    name = ""  # what is active, for an error message

    def __init__(self) -> None:
        super().__init__()
        self._engine: WorkerBroker | None = None

    def enter(self, stack: ExitStack) -> None:
        self.begin()
        stack.callback(self.close_engine)
        stack.enter_context(substitute_broker(self.broker()))
        stack.enter_context(handles_of_substitutes())

    def begin(self) -> None:
        """Start without jobs and workflows."""
        self.clear()
        self.close_engine()

    @property
    def engine(self) -> WorkerBroker:
        """The Redis of workflows and steps. Raises ConfigurationError if fakeredis is not installed."""
        if self._engine is None:
            self._engine = open_engine(self.name)
        return self._engine

    def close_engine(self) -> None:
        """Forget its workflows, and what its jobs remember."""
        if self._engine is not None:
            delete_all(self._engine)
            self._engine = None

    @abstractmethod
    def clear(self) -> None:
        """Forget the jobs so far."""

    def broker(self) -> Broker:
        """What takes the place of the broker, with the settings of this moment."""
        return _SubstituteBroker(self)

    def make_handle(self, job_id: str, queue_name: str, *, duplicate: bool = False, backend: str = "") -> JobHandle:
        """What delay() returns."""
        return JobHandle(job_id, queue_name, duplicate=duplicate, backend=backend)

    @abstractmethod
    def on_workflow(self, flow: NewWorkflow) -> None:
        """A workflow was made."""

    def on_cancelled(self, job_ids: Sequence[str]) -> None:
        """Its jobs are cancelled with it."""

    def hold(self, holder: Holder) -> None:
        """This run asks what its job remembers."""

    @abstractmethod
    def enqueue(self, queue: str, jobs: Sequence[NewJob]) -> list[str]:
        """As of a Broker."""

    @abstractmethod
    def find(self, job_id: str, queue: str | None = None) -> JobDetails:
        """As of an Inspector."""

    @abstractmethod
    def cancel(self, job_id: str, queue: str | None = None, *, terminate: bool = False) -> CancelAnswer:
        """As of an Inspector."""

    @abstractmethod
    def send(
        self, job_id: str, event: str, value: Any = None, *, queue: str | None = None, token: str | None = None
    ) -> None:
        """As of an Inspector."""

    @abstractmethod
    def wait(self, job_id: str, queue: str, timeout: float | None) -> JobDetails | None:
        """As of an Inspector, for a job that is over. Raises WrongState for others: nothing would end them."""

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...

    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        return self._items[index]


def handles_of_substitutes() -> AbstractContextManager[object]:
    """Let substitutes make the handles that delay() returns while they are active."""
    return mock.patch("django_rtq.core.tasks.enqueuing.JobHandle", _make_handle)


def _make_handle(job_id: str, queue_name: str, *, duplicate: bool = False, backend: str = "") -> JobHandle:
    broker = get_broker(backend)
    make = broker.inspector.make_handle if isinstance(broker, _SubstituteBroker) else JobHandle
    return make(job_id, queue_name, duplicate=duplicate, backend=backend)


class _SubstituteBroker(Broker):
    def __init__(self, substitute: Substitute[Any]) -> None:
        self.config: Config = get_config()
        self._substitute = substitute
        self.inspector = _SubstituteInspector(substitute)

    # There is no queue here that could be full, or have limits.

    def enqueue(self, queue: str, jobs: Sequence[NewJob], *, all_or_none: bool = False) -> list[str]:
        return self._substitute.enqueue(queue, jobs)

    async def aenqueue(self, queue: str, jobs: Sequence[NewJob], *, all_or_none: bool = False) -> list[str]:
        # In the thread in which async code runs queries: its transaction is that of the test.
        return await sync_to_async(self.enqueue, thread_sensitive=True)(queue, jobs)

    def store_of(self, kind: Callable[[Broker], S]) -> S:
        kinds: dict[Any, Any] = {WorkflowStore: EngineWorkflows, StepStore: EngineSteps}
        store: S = kinds[kind](self._substitute)
        return store

    def register_queues(self, names: Iterable[str]) -> None:
        use_queues(self._substitute.engine, names)

    @property
    def waits(self) -> None:  # type: ignore[override]
        """Nothing waits here."""

    def enqueue_calls(self, calls: Sequence[EnqueueCall]) -> list[list[str] | BrokerError]:
        return [self.enqueue(queue, jobs) for queue, jobs, *_ in calls]

    def errors(self, queue: str, job_id: bytes) -> bytes:
        failures = self._substitute.find(job_id.decode()).errors
        return "\n".join(map(serializer.dumps, failures)).encode()

    def __getattr__(self, name: str) -> NoReturn:
        raise _needs_redis(self._substitute)


class _SubstituteInspector:
    """What get_inspector() returns."""

    def __init__(self, substitute: Substitute[Any]) -> None:
        self._substitute = substitute

    def __getattr__(self, name: str) -> Any:
        if name in _ANSWERED:
            return getattr(self._substitute, name)
        if name in _ANSWERED_ASYNC:
            return sync_to_async(getattr(self._substitute, _ANSWERED_ASYNC[name]), thread_sensitive=True)
        raise _needs_redis(self._substitute)


_ANSWERED = {"find", "cancel", "send", "wait", "make_handle"}
_ANSWERED_ASYNC = {"afind": "find", "acancel": "cancel", "asend": "send", "await_end": "wait"}


def _needs_redis(substitute: Substitute[Any]) -> RedisNotAllowed:
    return RedisNotAllowed(
        f"This needs Redis, but {substitute.name} is active. Use private_redis() and drain() of django_rtq.testing "
        "instead."
    )

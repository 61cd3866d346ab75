"""Takes the place of Redis for producers and handles while captured() or eager() is active (D75)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from importlib import import_module
from typing import Any, NoReturn, TypeVar
from unittest import mock

from asgiref.sync import sync_to_async

from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.brokers import get_broker, substitute_broker
from django_rtq.core.broker.messages import EnqueueCall, NewJob
from django_rtq.core.broker.redis.commands import Steps, Token
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.conf.config import Config, get_config
from django_rtq.core.handle import JobHandle
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.details import JobDetails
from django_rtq.exceptions import BrokerError, ConfigurationError, RedisNotAllowed, WorkflowFailed
from django_rtq.testing.private_redis import SHARED_FAKE, Activation, delete_all, new_prefix, shared_fake_server
from django_rtq.workflows.steps.store import Holder, Remembered, StepStore
from django_rtq.workflows.store import NewWorkflow, WorkflowStore

S = TypeVar("S")
Item = TypeVar("Item")


def _for_coroutines(method: str) -> Callable[..., Coroutine[Any, Any, Any]]:
    """What calls this method in a thread."""

    async def call(self: Any, *args: Any, **options: Any) -> Any:
        return await sync_to_async(getattr(self, method), thread_sensitive=True)(*args, **options)

    return call


class Substitute(Activation, list[Item]):
    """Gets all jobs that are enqueued inside the block, in any thread, and answers the questions of their handles.

    A list of what became of them. It takes the place of JobAccess, too: subclasses have find(), cancel(), send(), and
    wait(), which raises WrongState for a job that is not over, as nothing would end it.
    """

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
            try:
                shared_fake_server()
            except ConfigurationError as error:
                raise ConfigurationError(
                    f"Workflows and steps within {self.name} run in fakeredis, which is not installed: pip install "
                    '"fakeredis[lua]".'
                ) from error
            config = replace(get_config(), redis=SHARED_FAKE, test_redis=SHARED_FAKE, db=None, wait_replicas=0)
            self._engine = WorkerBroker(replace(config, prefix=new_prefix(), queues={}))  # which have no limits here
        return self._engine

    def close_engine(self) -> None:
        """Forget its workflows, and what its jobs remember."""
        if self._engine is not None:
            delete_all(self._engine)
            self._engine = None

    def broker(self) -> Broker:
        """What takes the place of the broker, with the settings of this moment."""
        return _SubstituteBroker(self)

    def on_handle(self, handle: JobHandle) -> None:
        """A handle is what delay() returns."""

    @abstractmethod
    def on_workflow(self, flow: NewWorkflow) -> None:
        """A workflow was made."""

    def on_cancelled(self, job_ids: Sequence[str]) -> None:
        """Its jobs are cancelled with it."""

    def hold(self, holder: Holder) -> None:
        """This run asks what its job remembers."""

    @abstractmethod
    def enqueue_one(self, queue: str, job: NewJob) -> str:
        """The answer to one of the jobs of Broker.enqueue()."""

    @abstractmethod
    def find(self, job_id: str, queue: str | None = None) -> JobDetails:
        """As of JobAccess."""

    afind, acancel, asend, await_end = map(_for_coroutines, ("find", "cancel", "send", "wait"))


def handles_of_substitutes() -> AbstractContextManager[object]:
    """Let substitutes know the handles that delay() returns while they are active."""
    return mock.patch.object(import_module("django_rtq.core.tasks.task"), "JobHandle", _make_handle)


def _make_handle(*names: str, **options: Any) -> JobHandle:
    handle: JobHandle = JobHandle(*names, **options)
    broker = get_broker(handle.backend)
    if isinstance(broker, _SubstituteBroker):
        broker.access.on_handle(handle)
    return handle


class _SubstituteBroker(Broker):
    def __init__(self, substitute: Substitute[Any]) -> None:
        self.config: Config = get_config()
        self._substitute = substitute
        self.access = substitute

    # There is no queue here that could be full, or have limits.

    def enqueue(self, queue: str, jobs: Sequence[NewJob], *, all_or_none: bool = False) -> list[str]:
        return [self._substitute.enqueue_one(queue, job) for job in jobs]

    async def aenqueue(self, queue: str, jobs: Sequence[NewJob], *, all_or_none: bool = False) -> list[str]:
        # In the thread in which async code runs queries: its transaction is that of the test.
        return await sync_to_async(self.enqueue, thread_sensitive=True)(queue, jobs)

    def store_of(self, kind: Callable[[Broker], S]) -> S:
        kinds: dict[Any, Any] = {WorkflowStore: EngineWorkflows, StepStore: EngineSteps}
        store: S = kinds[kind](self._substitute)
        return store

    def register_queues(self, names: Iterable[str]) -> None:
        self._substitute.engine.register_queues(names)

    def enqueue_calls(self, calls: Sequence[EnqueueCall]) -> list[list[str] | BrokerError]:
        return [self.enqueue(queue, jobs) for queue, jobs, *_ in calls]

    def errors(self, queue: str, job_id: bytes) -> bytes:
        failures = self._substitute.find(job_id.decode()).errors
        return "\n".join(map(serializer.dumps, failures)).encode()

    def __getattr__(self, name: str) -> NoReturn:
        raise RedisNotAllowed(
            f"This needs Redis, but {self._substitute.name} is active. Use private_redis() and drain() of "
            "django_rtq.testing instead."
        )


# -- workflows and steps: the stores of production, on fakeredis


class EngineWorkflows(WorkflowStore):
    """The workflows of a block. Nothing but the block ends them."""

    def __init__(self, jobs: Substitute[Any]) -> None:
        super().__init__(jobs.engine)
        self._jobs = jobs

    def make(self, flow: NewWorkflow) -> tuple[str, str]:
        answer, other = super().make(flow)
        if answer == "ok":
            self._jobs.on_workflow(flow)
        return answer, other

    def token(self, workflow: str) -> Token:
        raise WorkflowFailed(workflow, f"is not over, and nothing ends it: {self._jobs.name} is active.")

    def _cancel_jobs(self, queue: str, job_ids: Sequence[str]) -> None:
        super()._cancel_jobs(queue, job_ids)
        self._jobs.on_cancelled(job_ids)


class EngineSteps(StepStore):
    """What the jobs of a block remember."""

    def __init__(self, jobs: Substitute[Any]) -> None:
        super().__init__(jobs.engine)
        self._jobs = jobs

    def read(self, holder: Holder) -> Steps[Remembered | None]:
        self._jobs.hold(holder)
        return super().read(holder)

    async def arun(self, steps: Steps[S]) -> S:
        return self.run(steps)

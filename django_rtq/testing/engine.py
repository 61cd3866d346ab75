"""Workflows and steps within captured() and eager(): the stores of production, on fakeredis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.redis.commands import Token
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.conf.config import get_config
from django_rtq.exceptions import ConfigurationError, WorkflowFailed
from django_rtq.testing.private_redis import SHARED_FAKE, new_prefix, shared_fake_server
from django_rtq.workflows.steps.store import Holder, Remembered, StepStore
from django_rtq.workflows.store import NewWorkflow, WorkflowStore


class Jobs(Protocol):
    """What the stores need of a Substitute, which imports this module."""

    name: str

    @property
    def engine(self) -> WorkerBroker: ...
    def on_workflow(self, flow: NewWorkflow) -> None: ...
    def on_cancelled(self, job_ids: Sequence[str]) -> None: ...
    def hold(self, holder: Holder) -> None: ...


def open_engine(name: str) -> WorkerBroker:
    """An empty Redis for the block of that name. Raises ConfigurationError."""
    try:
        shared_fake_server()
    except ConfigurationError as error:
        raise ConfigurationError(
            f'Workflows and steps within {name} run in fakeredis, which is not installed: pip install "fakeredis[lua]".'
        ) from error
    config = replace(get_config(), redis=SHARED_FAKE, test_redis=SHARED_FAKE, db=None, wait_replicas=0)
    return WorkerBroker(replace(config, prefix=new_prefix()))


def use_queues(engine: Broker, names: Iterable[str]) -> None:
    """Begin to use queues, which have no limits here."""
    engine.redis.execute_one(("SADD", engine.keys.queues, *names))


class EngineWorkflows(WorkflowStore):
    """The workflows of a block. Nothing but the block ends them."""

    def __init__(self, jobs: Jobs) -> None:
        super().__init__(jobs.engine)
        self._jobs = jobs

    def make(self, flow: NewWorkflow, register_queues: Callable[[Iterable[str]], None]) -> tuple[str, str]:
        answer, other = super().make(flow, register_queues)
        if answer == "ok":
            self._jobs.on_workflow(flow)
        return answer, other

    def wait(self, waits: object, workflow: str, seconds: float) -> dict[str, str]:
        raise WorkflowFailed(workflow, f"is not over, and nothing ends it: {self._jobs.name} is active.")

    def token(self, workflow: str) -> Token:
        raise WorkflowFailed(workflow, f"is not over, and nothing ends it: {self._jobs.name} is active.")

    def _cancel_jobs(self, queue: str, job_ids: Sequence[str]) -> None:
        super()._cancel_jobs(queue, job_ids)
        self._jobs.on_cancelled(job_ids)


class EngineSteps(StepStore):
    """What the jobs of a block remember."""

    def __init__(self, jobs: Jobs) -> None:
        super().__init__(jobs.engine)
        self._jobs = jobs

    def read(self, holder: Holder) -> Remembered | None:
        self._jobs.hold(holder)
        return super().read(holder)

    async def aread(self, holder: Holder) -> Remembered | None:
        return self.read(holder)

    async def awrite(self, holder: Holder, field: str, text: str) -> bool:
        return self.write(holder, field, text)

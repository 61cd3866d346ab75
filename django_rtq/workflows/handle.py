"""Workflow: reads and changes a workflow in Redis, wherever its process is."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from asgiref.sync import sync_to_async

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.task_backends import place_of_job
from django_rtq.core.extension import required
from django_rtq.core.handle import check_timeout
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import StrEnum
from django_rtq.core.tasks.task import Task
from django_rtq.exceptions import JobNotFound, WorkflowFailed, WorkflowNotFound, WorkflowTimeout
from django_rtq.workflows import workflow_store
from django_rtq.workflows.results import StepResults

MAX_BLOCK_SECONDS = 30.0
SHOWN_ERRORS = 3
AT_ONCE = 100


class WorkflowState(StrEnum):
    """The state of a workflow."""

    RUNNING = "running"
    BLOCKED = "blocked"  # a dead job keeps it from going on; requeue or discard it
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # some jobs were cancelled, expired or discarded, or never started for that reason
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether the workflow is over."""
        return self in (WorkflowState.SUCCEEDED, WorkflowState.FAILED, WorkflowState.CANCELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProgress:
    """How far a step is: numbers of its jobs."""

    number: int
    task: str
    queue: str
    state: str  # waiting, started, succeeded, failed, skipped: it never starts
    size: int
    done: int
    dead: int
    gone: int  # cancelled, expired, discarded or purged: failed for good
    after: tuple[int, ...] = ()  # numbers of the steps that it waits for

    @property
    def open(self) -> int:
        """Jobs that are not over, and not dead."""
        return self.size - self.done - self.dead - self.gone


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowProgress:
    """What is known of a workflow."""

    id: str
    name: str
    client: str
    key: str
    state: WorkflowState
    made_ms: int
    ended_ms: int | None
    steps: tuple[StepProgress, ...]
    fields: dict[str, str] = field(repr=False, compare=False)

    @property
    def done(self) -> int:
        """Jobs that have succeeded."""
        return sum(step.done for step in self.steps)

    @property
    def size(self) -> int:
        """All jobs, also those that have not started, but for the call of on_death() until it is made."""
        on_death = self.fields.get("on_death")
        return sum(
            step.size for step in self.steps if str(step.number) != on_death or step.state not in ("waiting", "skipped")
        )

    def step(self, number: int) -> StepProgress:
        """The step with this number. Some numbers are missing: of steps that an interrupted job had begun to add."""
        return self.steps[bisect_left(self.steps, number, key=attrgetter("number"))]

    def blocking(self) -> list[StepProgress]:
        """The steps with dead jobs."""
        return [step for step in self.steps if step.dead]


class Workflow:
    """A workflow, by its id. Each access queries Redis."""

    def __init__(self, workflow_id: str, name: str = "", *, backend: str = "", duplicate: bool = False) -> None:
        self.id = workflow_id
        self.name = name
        self.backend = backend
        self.duplicate = duplicate  # workflow() made none: one with this key existed

    # -- reading

    def progress(self) -> WorkflowProgress:
        """All steps with numbers of their jobs, in one round trip. Raises WorkflowNotFound."""
        (fields,) = self._store.read_fields([self.id])
        return read_progress(self.id, fields)

    async def aprogress(self) -> WorkflowProgress:
        """progress() for coroutines."""
        return await sync_to_async(self.progress)()

    @property
    def state(self) -> WorkflowState:
        """The current state. Raises WorkflowNotFound."""
        return self.progress().state

    def results(self, task: str | Task[Any, Any]) -> StepResults[Any]:
        """The results of the steps of a task, given by its name or the end of it, as far as other steps take them.

        Raises WorkflowNotFound, and LookupError if there is no such step, or none whose results are kept.
        """
        name = task if isinstance(task, str) else task.name
        progress = self.progress()
        steps = [step for step in progress.steps if f".{step.task}".endswith(f".{name}")]
        if not steps:
            raise LookupError(f"Workflow {self.id} has no step of {name}.")
        kept = [step for step in steps if progress.fields.get(f"keep:{step.number}") == "1"]
        if not kept:
            raise LookupError(f"The results of {name} are not kept: no other step of the workflow takes them.")
        firsts = [int(progress.fields[f"first:{step.number}"]) for step in kept]
        members = (range(first, first + step.size) for first, step in zip(firsts, kept, strict=True))
        return StepResults(self.backend, self.id, *members)

    def get(self, timeout: float | None = None) -> None:
        """Wait until the workflow has succeeded. Blocks for at most `timeout` seconds, without polling.

        Raises WorkflowFailed if it fails, is cancelled, or is blocked by dead jobs, with the errors of the first ones;
        WorkflowTimeout; WorkflowNotFound; BrokerUnavailable.
        """
        check_timeout(timeout)
        until = None if timeout is None else time.monotonic() + timeout
        progress = self.progress()
        while seconds := self._seconds_left(progress, until, timeout):
            token = self._store.token(self.id)
            self.broker.waits.wait(token, seconds)
            progress = self.progress()
        self._check_success(progress)

    async def aget(self, timeout: float | None = None) -> None:
        """get() for coroutines. Any number of them share a few connections while they wait."""
        from django_rtq.core.broker.one_job import await_token  # with it comes redis-py

        check_timeout(timeout)
        until = None if timeout is None else time.monotonic() + timeout
        progress = await self.aprogress()
        while seconds := self._seconds_left(progress, until, timeout):
            await await_token(self.broker, self._store.token(self.id), seconds)
            progress = await self.aprogress()
        if progress.state is not WorkflowState.SUCCEEDED:
            await sync_to_async(self._check_success)(progress)

    def _seconds_left(self, progress: WorkflowProgress, until: float | None, timeout: float | None) -> float:
        """How long to wait for its end; 0 if it is over or blocked. Raises WorkflowTimeout."""
        if progress.state is not WorkflowState.RUNNING:
            return 0
        left = MAX_BLOCK_SECONDS if until is None else min(MAX_BLOCK_SECONDS, until - time.monotonic())
        if left <= 0:
            raise WorkflowTimeout(
                self.id, f"is not over after {timeout:g} s: {progress.done} of {progress.size} jobs are done."
            )
        return left

    def _check_success(self, progress: WorkflowProgress) -> None:
        if progress.state is not WorkflowState.SUCCEEDED:
            raise WorkflowFailed(self.id, self._why(progress))

    def dead(self) -> Iterator[tuple[str, str]]:
        """The dead jobs: id, and queue of their step, where they are unless somebody has requeued them elsewhere."""
        from django_rtq.workflows.store import set_bits, started_parts

        progress = self.progress()
        started = started_parts(self.id, progress.fields)
        for step in progress.blocking():
            parts = [part for part in started if part.step == step.number]
            places = [part.place for part in parts]
            (bits,) = self._store.bitmaps(self.id, step.number, "dead")
            for place in set_bits(bits):
                yield parts[bisect_right(places, place) - 1].id_of(place), step.queue

    # -- changing

    def cancel(self, *, most_jobs: int | None = None) -> bool:
        """End the workflow at once: no step starts any more. Then its waiting jobs are cancelled, and running ones are
        asked to stop: about ``most_jobs`` before this returns, the others by heartbeats of workers; None: all.
        Returns False if it was over already: then nothing happens. Raises WorkflowNotFound."""
        answer = self._store.cancel(self.id)
        if answer == "missing":
            raise WorkflowNotFound(self.id, "was not found: its id is unknown, or it ended long ago.")
        self._store.cancel_members(self.id, most_jobs=most_jobs)
        return bool(answer == "cancelled")

    def requeue_dead(self) -> int:
        """Requeue all dead jobs, with all their attempts. Returns how many. Raises WorkflowNotFound."""
        number = 0
        by_queue: dict[str, list[str]] = {}
        for job_id, queue in self.dead():
            by_queue.setdefault(queue, []).append(job_id)
        for queue, ids in by_queue.items():
            for start in range(0, len(ids), AT_ONCE):
                some = ids[start : start + AT_ONCE]
                done = set(required("requeue")(self.broker, queue, some))
                moved = [job_id for job_id in some if job_id not in done]
                number += len(done) + sum(map(self._requeue_moved, moved))
        return number

    # -- inside

    @property
    def place(self) -> str:
        """Where it is: the place of its backend, or of the shard that its id names."""
        return place_of_job(self.backend, self.id)

    @property
    def broker(self) -> Any:
        """The broker of that place."""
        return get_broker(self.place)

    def _find(self, job_id: str, queue: str | None = None) -> JobDetails:
        from django_rtq.core.broker.one_job import access_to_jobs  # few workflows are asked for their jobs

        return access_to_jobs(self.place).find(job_id, queue)

    @property
    def _store(self) -> Any:
        return workflow_store(self.broker)

    def _requeue_moved(self, job_id: str) -> bool:
        """Requeue a job that is not dead in the queue of its step, if it is in another one."""
        try:
            return bool(required("requeue")(self.broker, self._find(job_id).queue, [job_id]))
        except JobNotFound:
            return False

    def _why(self, progress: WorkflowProgress) -> str:
        dead = sum(step.dead for step in progress.steps)
        lines = [f"is {progress.state}." + (f" Dead jobs: {dead}." if dead else "")]
        for job_id, queue in self.dead():
            if len(lines) > SHOWN_ERRORS:
                break
            try:
                details = self._find(job_id, queue)
            except JobNotFound:
                continue
            lines.append(f"{details.task} {job_id}: {': '.join(details.newest_error)}")
        for step in progress.steps:
            if step.gone:
                ends = f"{step.gone} of {step.size} were cancelled, discarded or purged, or expired."
                lines.append(f"{step.task}: {ends}")
        if progress.state is WorkflowState.BLOCKED:
            lines.append("It goes on when they are requeued, by requeue_dead(), or discarded: see docs/workflows.md.")
        return "\n".join(lines)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Workflow) and (self.id, self.backend) == (other.id, other.backend)

    def __hash__(self) -> int:
        return hash((self.id, self.backend))

    def __repr__(self) -> str:
        return f"<Workflow {self.id} {self.name}>"


def get_workflow(workflow_id: str, *, backend: str = "") -> Workflow:
    """The workflow with this id. Raises WorkflowNotFound."""
    if not isinstance(workflow_id, str):
        raise WorkflowNotFound(str(workflow_id), f"was not found: an id is text, and this is {workflow_id!r}.")
    flow = Workflow(workflow_id, backend=backend)
    flow.name = flow.progress().name
    return flow


def read_progress(workflow_id: str, fields: dict[str, str]) -> WorkflowProgress:
    """What the fields of a workflow say. Raises WorkflowNotFound for {}, while it is not whole, and if it is broken."""
    if fields.get("state", "making") == "making":
        raise WorkflowNotFound(workflow_id, "was not found: its id is unknown, or it ended long ago.")
    try:
        ended = fields.get("ended")
        return WorkflowProgress(
            id=workflow_id,
            name=fields["name"],
            client=fields["client"],
            key=fields.get("key", "").partition("\n")[2],
            state=WorkflowState(fields["state"]),
            made_ms=int(fields["made"]),
            ended_ms=int(ended) if ended else None,
            steps=tuple(
                _step(fields, number) for number in range(int(fields["steps"])) if fields[f"state:{number}"] != "adding"
            ),
            fields=fields,
        )
    except (KeyError, ValueError) as error:
        raise WorkflowNotFound(workflow_id, f"cannot be read: its data in Redis is broken ({error!r}).") from error


def _step(fields: dict[str, str], number: int) -> StepProgress:
    done, dead, gone = map(int, fields[f"ends:{number}"].split())
    state = fields[f"state:{number}"]
    is_on_death = fields.get("on_death") == str(number)
    if state == "waiting" and "ended" in fields:  # Redis leaves steps as they were
        state = "skipped"
    elif state == "started" and fields["state"] == WorkflowState.CANCELLED and not is_on_death:
        state = "failed"
    return StepProgress(
        number=number,
        task=fields[f"task:{number}"],
        queue=fields[f"queue:{number}"],
        state=state,
        size=int(fields[f"size:{number}"]),
        done=done,
        dead=dead,
        gone=gone,
        after=tuple(int(other.rstrip("e")) for other in fields[f"after:{number}"].split()),
    )

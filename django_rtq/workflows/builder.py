"""workflow(): collects the steps of a workflow in a block, and sends them when the block ends."""

from __future__ import annotations

import logging
import reprlib
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar, cast
from zlib import crc32

from asgiref.sync import sync_to_async
from django.db import transaction

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.messages import NewJob
from django_rtq.core.broker.task_backends import place_of, place_of_job
from django_rtq.core.conf.config import DATABASE, get_config
from django_rtq.core.conf.option import NAME, one_of
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.job import shard_in
from django_rtq.core.tasks.calls import client_name
from django_rtq.core.tasks.enqueuing import Calls, checked_calls, is_in_transaction, pauses
from django_rtq.core.tasks.options.kinds import HEADERS
from django_rtq.core.tasks.task import CalledWorkflow, Task, new_job, send_through_middleware
from django_rtq.core.transactions import OnCommit, awaited_transaction, has_transaction, outbox_database
from django_rtq.databases.outbox import delete_or_log, store_text
from django_rtq.exceptions import BrokerError, InvalidTask, InvalidWorkflow, QueueFull
from django_rtq.scale import placement
from django_rtq.workflows import workflow_store
from django_rtq.workflows.handle import Workflow
from django_rtq.workflows.results import ResultOf, StepResults, references_in

if TYPE_CHECKING:
    from django_rtq.core.broker.redis.commands import Argument
    from django_rtq.workflows.steps.store import Holder
    from django_rtq.workflows.store import NewWorkflow

logger = logging.getLogger("django_rtq")

MAX_STEPS = 1_000
MAX_EDGES = 10_000
MAX_MEMBERS = 16_000_000
MOST_ROOMS = 500  # clients for which is looked whether their jobs fit
PART = 500  # members that one call of a script enqueues
PART_BYTES = 250_000  # of calls, more than one in a part
CALLS_AT_ONCE = 10_000  # that go through middleware together
MOST_BYTES_IN_OUTBOX = 8_000_000  # databases limit what one statement may have: MariaDB's default is 16 MB
OnDead = Literal["block", "cancel", "go_on"]

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")


class AnyStep:
    """A step of a workflow: one call, or many."""

    number = first = 0  # its own, and that of its first job
    keeps = False  # its results, because others take them

    def __init__(self, flow: StepCollector, task: Task[Any, Any], after: Mapping[int, str]) -> None:
        self.flow = flow
        self.task = task  # as middleware has changed it
        self.after = dict(after)  # numbers of the steps that it waits for -> "e" if any end is enough
        self.next: list[str] = []  # those that wait for it, with "e" or without
        self.size = 0
        self.parts: dict[int, list[str]] = {}  # place of the first call -> calls
        self.clients: Counter[str] = Counter()  # of its jobs
        self._lines: list[str] = []  # the last part, and how many characters more it may have
        self._room = 0

    def collect(self, task: Task[Any, Any], calls: Iterable[Any]) -> list[Any]:
        """Take calls, as the middleware around delay() has changed them."""
        self.flow.check_step(task)
        self.task, before = task, self.size
        for args, kwargs in calls:
            for reference in references_in((args, kwargs)):
                self._wait_for(reference)
            job = new_job(task, args, dict(kwargs))
            client = self.flow.client_of(task, job)
            line = f"{job.priority} {job.max_crashes} {job.due} {job.expires} {job.at_front} {client}\n{job.body}\n"
            if not self._room or len(self._lines) == PART or len(line) > self._room:
                self._lines, self._room = self.parts.setdefault(self.size, []), PART_BYTES
            self._lines.append(line)
            self._room = max(0, self._room - len(line))
            self.clients[client] += 1
            self.size += 1
        return [Workflow(self.flow._id, backend=task.backend)] * (self.size - before)  # the jobs have no ids yet

    def _wait_for(self, reference: ResultOf) -> None:
        """A call takes this result, so the step waits for the other one."""
        before: AnyStep | None = reference.step
        if before is None or before.flow is not self.flow:
            text = f"cannot take a result of workflow {reference.workflow}: read it before."
            raise InvalidWorkflow(self.flow.id, text)
        if self.after.setdefault(before.number, "") and reference.size < 0:
            raise InvalidWorkflow(
                self.flow.id,
                f"has a step of {self.task.name} that waits for any end of {before.task.name} and takes its result, "
                "which is not there if that has failed. Leave out ended=True, or the result.",
            )

    def fields(self) -> dict[str, Argument]:
        """What Redis knows of it from the beginning, in the order of add_members.lua."""
        return {
            "task": self.task.name,
            "queue": self.task.queue,
            "size": self.size,
            "first": self.first,
            "keep": "1" if self.keeps else "",
            "parts": " ".join(map(str, self.parts)),
            "after": " ".join(f"{other}{how}" for other, how in sorted(self.after.items())),
            "next": " ".join(self.next),
        }

    def _reference(self, size: int) -> ResultOf:
        if not self.flow.is_open:
            raise InvalidWorkflow(self.flow.id, "is sent already: results are for steps of the same block.")
        self.keeps = True
        made = ResultOf(self.flow.reference, self.first, size)
        made.step = self
        return made

    if not TYPE_CHECKING:  # checkers know what there is

        def __getattr__(self, name: str) -> Any:
            other = {"result": "results", "results": "result"}.get(name)
            cure = f". This step of {self.task.name} has .{other}" if other else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{cure}", name=name, obj=self)

    def __repr__(self) -> str:
        return f"<step {self.number} of workflow {self.flow.reference}: {self.task.name}, {self.size}>"


class Step(AnyStep, Generic[R_co]):
    """A step of one call."""

    @property
    def result(self) -> R_co:
        """What the call will return: as an argument of a later step, which then waits for it."""
        return cast(R_co, self._reference(-1))


class Steps(AnyStep, Generic[R_co]):
    """A step of many calls."""

    @property
    def results(self) -> StepResults[R_co]:
        """What the calls will return, in their order: as an argument of a later step, which then waits for all."""
        return cast("StepResults[R_co]", self._reference(self.size))


serializer.CURES += [((Step,), "Pass its .result instead."), ((Steps,), "Pass its .results instead.")]


class After:
    """Adds steps that wait for others."""

    def __init__(self, flow: StepCollector, after: Mapping[int, str]) -> None:
        self._flow, self._after = flow, after

    def add(self, task: Task[P, Any, T], *args: P.args, **kwargs: P.kwargs) -> Step[T]:
        """Add a step of one call. It starts when the steps whose results it takes, and those of after(), are over."""
        step: Step[T] = self._flow.add_step(Step, task, [(args, kwargs)], self._after)
        return step

    def map(self, task: Task[[T], Any, R], values: Iterable[T]) -> Steps[R]:
        """Add a step of one call for each value. It reads them once. Raises InvalidWorkflow if they are no iterable."""
        if not isinstance(values, Iterable):
            raise InvalidWorkflow(self._flow.id, f"has a map() over {values!r}, which is no iterable.")
        step: Steps[R] = self._flow.add_step(Steps, task, (((value,), {}) for value in values), self._after)
        return step

    def add_many(self, task: Task[..., Any, R], calls: Calls) -> Steps[R]:
        """Add a step of many calls, given as pairs of arguments and keyword arguments."""
        step: Steps[R] = self._flow.add_step(Steps, task, calls, self._after)
        return step


class StepCollector(After):
    """Collects steps, and checks their calls when they are added. For one thread."""

    most_steps = MAX_STEPS

    def __init__(self, workflow_id: str, reference: str, *, client: str, headers: Mapping[str, Any]) -> None:
        super().__init__(self, {})
        self._id = workflow_id
        self.reference = reference  # how results name it
        self._client, self._headers = client, dict(headers)
        self._fields: dict[str, Argument] = {}
        self._steps: list[AnyStep] = []
        self._backend: str | None = None
        self._edges = self._members = 0
        self.is_open = self._has_shards = False
        self._is_settled = True  # its id, which says in which shard it is
        self._called = CalledWorkflow(id=workflow_id)

    @property
    def id(self) -> str:
        """The id of the workflow."""
        return self._id

    def after(self, *steps: AnyStep, ended: bool = False) -> After:
        """Add steps that wait until all jobs of these have succeeded, or with `ended` are over in any way.

        Without steps they begin at once, as after an empty list.
        """
        for step in steps:
            if not isinstance(step, AnyStep):
                raise TypeError(f"after() takes steps, which add() and map() return, not {step!r}.")
            if step.flow is not self:
                raise InvalidWorkflow(self.id, f"cannot wait for {step!r}, which belongs to another one.")
        return After(self, {step.number: "e" if ended else "" for step in steps})

    def add_step(self, kind: type[Any], task: Task[Any, Any], calls: Iterable[Any], after: Mapping[int, str]) -> Any:
        """Add a step. Raises InvalidWorkflow, and what delay() raises for invalid calls; then nothing is added."""
        before, steps = (self._backend, self._id, self._is_settled), len(self._steps)
        try:
            self.check_step(task)
            declared = task.using(headers=self._headers) if self._headers and not task.headers else task
            step, left = kind(self, declared, after), checked_calls(task.name, calls)
            while some := list(islice(left, CALLS_AT_ONCE)):
                send_through_middleware(declared, some, step.collect, workflow=self._called)
            self.check_step(step.task)  # once more, as calls may come from a generator that adds steps
            self._append(step)
        except BaseException:
            if len(self._steps) == steps:  # else its calls, which came from a generator, have added others
                self._backend, self._id, self._is_settled = before
                self._called.id = self._id
            raise
        return step

    def _append(self, step: AnyStep) -> None:
        step.number, step.first = len(self._steps), self._members
        if self._members + step.size > MAX_MEMBERS:
            raise InvalidWorkflow(self.id, f"has more than {MAX_MEMBERS:,} jobs. Divide the work.")
        if self._edges + len(step.after) > MAX_EDGES:
            raise InvalidWorkflow(
                self.id, f"has more than {MAX_EDGES:,} edges. Let one step wait for many, others for it."
            )
        if self._fields.get("on_death") in step.after:
            raise InvalidWorkflow(self.id, "has a step that waits for on_death().")
        for other, how in step.after.items():
            self._steps[other].next.append(f"{step.number}{how}")
        self._edges += len(step.after)
        self._members += step.size
        self._steps.append(step)

    def _parts(self) -> list[tuple[str, str]]:
        """The parts of all steps, "step:place of its first member", and their calls."""
        parts = ((f"{step.number}:{place}", lines) for step in self._steps for place, lines in step.parts.items())
        return [(name, "".join(lines)) for name, lines in parts]

    def check_step(self, task: Any) -> None:
        """Raises TypeError and InvalidWorkflow for a task that cannot be that of the next step."""
        if not isinstance(task, Task):
            raise TypeError(f"A step needs a task of @django_rtq.task, not {reprlib.repr(task)}.")
        if not self.is_open:
            raise InvalidWorkflow(self.id, "takes no more steps: add them inside of the block.")
        if len(self._steps) == self.most_steps:
            raise InvalidWorkflow(
                self.id, f"gets more than {self.most_steps:,} steps. Use map() for many calls of one task."
            )
        if task.unique_digest is not None:
            raise InvalidWorkflow(
                self.id, f"cannot have {task.name}, which is unique. Add {task.name}.using(unique=False)."
            )
        if self._backend not in (None, task.backend):
            raise InvalidWorkflow(self.id, f"has tasks of several Redis servers, {task.name} among them.")
        self._backend = task.backend
        self._has_shards = get_config().shards is not None and placement.has_shards(task.backend)

    def client_of(self, task: Task[Any, Any], job: NewJob) -> str:
        """The client of a job, which is where delay() would send it, so that limits hold, and where its workflow is.

        The first job that has to be in some shard decides that, unless it is settled. Raises InvalidWorkflow.
        """
        client = job.client or self._client
        shard = placement.shard_of_client(task.queue, client) if self._has_shards else None
        if shard is None:
            return client
        if shard != shard_in(self._id):
            if self._is_settled:
                raise InvalidWorkflow(
                    self._id,
                    f"is in shard {shard_in(self._id)}, and jobs of {task.name} in queue {task.queue!r} for client "
                    f"{client!r} are in shard {shard}. Make a workflow for each client, with workflow(…, client=…), or "
                    "send these jobs with delay().",
                )
            self._id = self._called.id = new_workflow_id(shard)
        self._is_settled = True
        return client


class WorkflowBuilder(StepCollector):
    """Begins a workflow: ``with workflow("month-end") as flow: …``. As a context manager, sync or async, it sends it at
    the end of the block, and nothing if the block raises.

    `client`: of all jobs whose task sets none. `key`: no second workflow of that name and key exists at a time; the
    handle of the second has the id of the first, and `duplicate`. `on_dead`: a dead job blocks the workflow until it is
    requeued or discarded ("block"), cancels it ("cancel"), or counts as ended ("go_on"). `headers`: of jobs whose task
    sets none. `on_commit`: as the option of @task.

    Raises ValueError and InvalidTask for bad options; at the end of the block what delay() raises.
    """

    def __init__(
        self,
        name: str,
        *,
        client: str | None = None,
        key: str | None = None,
        on_dead: OnDead = "block",
        headers: Mapping[str, Any] | None = None,
        on_commit: OnCommit = None,
    ) -> None:
        self.name = NAME.checked("The name of a workflow", name, ValueError)
        self.key = "" if key is None else NAME.checked("The key of a workflow", key, ValueError)
        one_of("block", "cancel", "go_on").checked("on_dead", on_dead, ValueError)
        headers = HEADERS.checked(f"workflow {name}: headers", headers, ValueError)
        DATABASE.checked(f"workflow {name}: on_commit", on_commit, InvalidTask)
        owner = client_name(f"workflow {name}: client", client) if client is not None else ""
        has_shards = get_config().shards is not None
        workflow_id = new_workflow_id(placement.new_workflow_home(owner, self._unique_key) if has_shards else 0)
        super().__init__(workflow_id, workflow_id, client=owner, headers=headers)
        self._is_settled = bool(self.key and not owner)
        self._on_commit, self._on_dead = on_commit, on_dead
        self._has_begun = False
        self.handle: Workflow | None = None

    @property
    def id(self) -> str:
        """The id of the workflow. Who knows it may tell others, so it stays."""
        self._is_settled = True
        return self._id

    @property
    def _unique_key(self) -> str:
        return f"{self.name}\n{self.key}" if self.key else ""

    # -- the block

    def __enter__(self) -> WorkflowBuilder:
        if self._has_begun:
            raise InvalidWorkflow(self.id, "has had its block: call workflow() again for another one.")
        self._has_begun = self.is_open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_open = False
        if kind is None:
            self._send()

    async def __aenter__(self) -> WorkflowBuilder:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_open = False
        if kind is None:
            await sync_to_async(self._send, thread_sensitive=True)()

    def on_death(self, task: Task[P, Any], *args: P.args, **kwargs: P.kwargs) -> None:
        """Call a task once, when the first job of the workflow is dead. One such call."""
        if "on_death" in self._fields:
            raise InvalidWorkflow(self.id, "has one on_death() already.")
        if list(references_in((args, kwargs))):
            raise InvalidWorkflow(self.id, "has an on_death() that takes a result: it may start before that is there.")
        self._fields["on_death"] = self.add_step(Step, task, [(args, kwargs)], {}).number

    # -- sending

    def _send(self) -> None:
        backend = self._backend or ""
        self.handle, new = Workflow(self.id, self.name, backend=backend), self._made()
        alias, outbox = awaited_transaction(f"workflow {self.name}", self._on_commit), outbox_database()
        if alias is not None:
            row = self._insert(alias, new) if alias == outbox else ""
            transaction.on_commit(partial(self._store_committed, alias, new, row), using=alias)
            return
        try:
            self._store(new)
        except BrokerError as error:
            if outbox is None or has_transaction(outbox):
                raise
            self._insert(outbox, new)
            logger.warning("Redis did not accept workflow %s, which waits in the outbox: %s", self.id, error)

    def _insert(self, alias: str, new: NewWorkflow) -> str:
        """Insert a row into the outbox. Returns its key. Raises InvalidWorkflow, and what the database raises."""
        backend, text = self._backend or "", new.as_text()
        if len(text) > MOST_BYTES_IN_OUTBOX:
            raise InvalidWorkflow(
                self.id,
                f"has {len(text):,} bytes, but the outbox takes {MOST_BYTES_IN_OUTBOX:,} at most. Make it in a job, "
                "whose call goes through the outbox.",
            )
        queue, place = get_broker(backend).config.default_queue, place_of(place_of_job(backend, self.id))
        return store_text(alias, place, queue, f"workflow {self.name}", text)

    def _store_committed(self, alias: str, new: NewWorkflow, row: str) -> None:
        """Store it after the commit. `row`: its key in the outbox, "" if it is not there: then it raises what fails."""
        try:
            self._store(new)
        except (BrokerError, QueueFull) as error:
            if not row:
                raise
            logger.warning("Redis did not accept workflow %s, which waits in the outbox: %s", self.id, error)
        else:
            if row:
                delete_or_log(alias, [row])

    def _rooms(self) -> list[tuple[str, str, int]]:
        """How many jobs begin at once in each queue, for each client."""
        from django_rtq.workflows.store import ANY_CLIENT

        rooms: Counter[tuple[str, str]] = Counter()
        for step in self._steps:
            if not step.after and self._fields.get("on_death") != step.number:
                for client, members in step.clients.items():
                    rooms[step.task.queue, client] += members
        if len(rooms) > MOST_ROOMS:
            of_queues: Counter[tuple[str, str]] = Counter()
            for (queue, _), members in rooms.items():
                of_queues[queue, ANY_CLIENT] += members
            rooms = of_queues
        return [(queue, client, members) for (queue, client), members in rooms.items()]

    def _made(self) -> NewWorkflow:
        from django_rtq.workflows.store import NewWorkflow  # with it comes redis-py

        fields: dict[str, Argument] = {
            "name": self.name,
            "client": self._client,
            "on_dead": self._on_dead,
            "steps": len(self._steps),
            **self._fields,
        }
        for step in self._steps:
            fields |= {
                f"{name}:{step.number}": value for name, value in step.fields().items() if name != "keep" or value
            }
            fields |= {f"state:{step.number}": "waiting", f"ends:{step.number}": "0 0 0"}
        key = self._unique_key
        if key:
            fields["key"] = key
        # References to results have the first id.
        parts = [(name, calls.replace(self.reference, self._id)) for name, calls in self._parts()]
        return NewWorkflow(
            id=self.id, key=key, fields=fields, parts=parts, rooms=self._rooms(), token=secrets.token_hex(8)
        )

    def _store(self, new: NewWorkflow) -> None:
        assert self.handle is not None
        broker = self.handle.broker
        broker.register_queues(new.queues)
        answer, other = _make_in_time(partial(workflow_store(broker).make, new))
        if answer == "taken":
            raise InvalidWorkflow(self.id, "has an id that another workflow has, by chance. Make it again.")
        if answer == "duplicate":
            self.handle.id, self.handle.duplicate = other, True


workflow = WorkflowBuilder


class AddedSteps(StepCollector):
    """What `context.workflow` is: steps that a job adds to its own workflow. They are sent when it has returned."""

    most_steps = 100

    def __init__(
        self, holder: Holder, *, headers: Mapping[str, Any], backend: str, passed_by_later: Callable[[], str]
    ) -> None:
        from django_rtq.workflows.store import workflow_of

        flow = workflow_of(holder.job_id)
        super().__init__(flow, f"{flow}+{int(holder.job_id[-6:], 16)}", client="", headers=headers)
        self._holder, self._backend, self.is_open = holder, backend, True
        self._passed_by_later = passed_by_later
        self.are_sent = False

    def check_step(self, task: Any) -> None:
        if place := self._passed_by_later():
            raise InvalidWorkflow(
                self.id,
                f"gets no steps within {place}: a later run of the job passes it by, and what it adds would be lost. "
                "Add them outside of steps and each().",
            )
        super().check_step(task)

    def send(self) -> None:
        """Add them, once however often the job runs, and only while this run holds it. Raises InvalidWorkflow and
        BrokerError."""
        self.is_open = False
        if not self._steps:
            return
        texts = [text for step in self._steps for text in step.fields().values()]
        broker = get_broker(place_of_job(self._backend or "", self._id))
        shape = f"{crc32(repr(texts).encode()):x}"
        broker.register_queues({step.task.queue for step in self._steps})
        answer, what = workflow_store(broker).add(self._holder, shape, texts, self._parts())
        self.are_sent = answer in ("ok", "added")
        if answer == "full":
            raise InvalidWorkflow(self.id, f"would have too many {what}: see docs/workflows.md. Divide the work.")


def new_workflow_id(shard: int = 0) -> str:
    """A new id of 12 random hexadecimal digits, of which the first three name a shard other than 0."""
    digits = secrets.token_hex(6)
    return f"{shard:03x}{digits[3:]}" if shard else f"{int(digits[0], 16) | 8:x}{digits[1:]}"


def _make_in_time(make: Callable[[], tuple[str, str]]) -> tuple[str, str]:
    """Make a workflow; if a queue is full whose on_full is "wait", wait for room. Raises QueueFull."""
    waits: Iterator[float] | None = None
    while True:
        try:
            return make()
        except QueueFull as full:
            if waits is None:
                waits = iter(()) if is_in_transaction() else pauses(full.queue, ["full"])
            if (pause := next(waits, None)) is None:
                raise
        time.sleep(pause)

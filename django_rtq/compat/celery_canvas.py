"""Calls that are made later, as Celery has them: signatures, chain, group, chord, chunks, map; and their results.

A signature alone is a job, a group of them is many jobs, and everything else is a workflow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from django_rtq.compat.other_queues import checked_options
from django_rtq.core.broker.one_job import access_to_jobs
from django_rtq.core.broker.task_backends import place_of_job
from django_rtq.core.handle import JobHandle
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.job import JobState
from django_rtq.core.tasks import registry
from django_rtq.core.tasks.decorator import task as rtq_task
from django_rtq.exceptions import InvalidTask, JobFailed, JobNotFound, WorkflowFailed, WorkflowNotFound
from django_rtq.workflows.builder import AnyStep, WorkflowBuilder, workflow
from django_rtq.workflows.handle import Workflow
from django_rtq.workflows.results import StepResults, resolve

if TYPE_CHECKING:
    from django_rtq.core.jobs.details import JobDetails

_WORKFLOW_ID = re.compile("[0-9a-f]{12}")
_UNKNOWN = object()


class Added(NamedTuple):
    """What a canvas has become in a workflow."""

    ends: Sequence[AnyStep]
    output: Callable[[], Any] | None  # makes what the next one gets; None: nothing


class Canvas:
    """Calls that can be combined: ``a | b``. Subclasses say how they become steps of a workflow."""

    tasks: Sequence[Canvas] = ()  # the canvases in it

    def __init__(self, *canvases: Canvas | Iterable[Canvas]) -> None:
        self.tasks = [one for part in canvases for one in _as_list(part)]
        self.links: list[Canvas] = []
        self.errors: list[Canvas] = []

    def apply_async(
        self,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        *,
        link: Canvas | Iterable[Canvas] | None = None,
        link_error: Canvas | Iterable[Canvas] | None = None,
        **options: Any,
    ) -> Any:
        """Make a workflow. The arguments come before those of its first calls, and the options are for these.

        `link` and `link_error`: what is called after its success, and once it has a dead job.
        """
        canvas = self.clone(args, kwargs, **options)
        canvas.links += _as_list(link)
        canvas.errors += _as_list(link_error)
        return canvas.send()

    def delay(self, *args: Any, **kwargs: Any) -> Any:
        """apply_async() with these arguments."""
        return self.apply_async(args, kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The same, but for signatures."""
        return self.apply_async(args, kwargs)

    def __or__(self, other: Canvas) -> Canvas:
        return chain(self, other)

    def link(self, callback: Canvas) -> Canvas:
        """Call this after its success, with its result."""
        self.links.append(callback)
        return callback

    def link_error(self, errback: Canvas) -> Canvas:
        """Call this, without arguments, once a job of the workflow is dead."""
        self.errors.append(errback)
        return errback

    def on_error(self, errback: Canvas) -> Canvas:
        """link_error() that returns this canvas."""
        self.link_error(errback)
        return self

    def clone(
        self, args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> Canvas:
        """A copy with lists of its own, whose first calls have more arguments and options."""
        made = type(self)(self._clones(args, kwargs, options))
        made.links, made.errors = [*self.links], [*self.errors]
        return made

    def _clones(self, args: Any, kwargs: Any, options: dict[str, Any]) -> list[Canvas]:
        return [one.clone(args, kwargs, **options) for one in self.tasks]

    def set(self, **options: Any) -> Canvas:
        """Refused."""
        raise InvalidTask(f"A {type(self).__name__} has no options of its own: set them for its signatures.")

    def send(self) -> Any:
        """Make the workflow."""
        with workflow(f"celery {type(self).__name__.lower()}") as flow:
            output = self.add_to(flow, (), None).output
            result = output() if output else None
            flow._fields["output"] = serializer.dumps(result, what="the result of the workflow")  # for AsyncResult(id)
            if errback := _errback(self.all_errors()):
                flow.on_death(errback.as_task(), *errback.args, **errback.kwargs)
        assert flow.handle is not None
        return AsyncResult(flow.handle.id, flow=flow.handle, output=result)

    def add_to(self, flow: WorkflowBuilder, before: Sequence[AnyStep], given: Callable[[], Any] | None) -> Added:
        """Add its steps, which wait for those before and get what `given` makes; and what is linked to it."""
        added = self._add(flow, before, given)
        for link in self.links:
            link.add_to(flow, *added)
        return added

    def _add(self, flow: WorkflowBuilder, before: Sequence[AnyStep], given: Callable[[], Any] | None) -> Added:
        raise NotImplementedError

    def all_errors(self) -> list[Canvas]:
        """The errbacks of it, its parts and links."""
        inside = [error for part in (*self.tasks, *self.links) for error in part.all_errors()]
        return [*self.errors, *inside]


@dataclass
class Signature(Canvas):
    """One call. `a.s(1) | b.s()` calls b with the result of a."""

    task: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    immutable: bool = False
    links: list[Canvas] = field(default_factory=list)
    errors: list[Canvas] = field(default_factory=list)

    def send(self) -> AsyncResult:
        """Enqueue a job; with something linked, make a workflow. Raises what Task.apply_async() raises."""
        self.links += _as_list(self.options.pop("link", None))
        self.errors += _as_list(self.options.pop("link_error", None))
        if self.links or self.errors:
            result: AsyncResult = super().send()
            return result
        handle = self.as_task().delay(*self.args, **self.kwargs)
        return AsyncResult(handle.id, handle=handle)

    def as_task(self) -> Any:
        """The task, with the options of the call. Raises InvalidTask for options without a counterpart."""
        options = {name: value for name, value in self.options.items() if value is not None}
        ignores = options.pop("ignore_result", False)
        changed = checked_options(self.task, options) | ({"result_ttl": 0} if ignores else {})
        task = registry.get_task(self.task)
        return task.using(**changed) if changed else task

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function here."""
        return registry.get_task(self.task)(*args, *self.args, **{**self.kwargs, **kwargs})

    def set(self, *, immutable: bool | None = None, **options: Any) -> Signature:
        """Change its options of apply_async(). Returns itself."""
        self.immutable = self.immutable if immutable is None else immutable
        self.options.update(options)
        return self

    def clone(
        self, args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> Signature:
        """A copy with more arguments, unless it is immutable, and options."""
        before, more = ((), {}) if self.immutable else (args or (), kwargs or {})
        options = {**self.options, **options}
        args, kwargs = (*before, *self.args), {**self.kwargs, **more}
        return Signature(self.task, args, kwargs, options, self.immutable, [*self.links], [*self.errors])

    def _add(self, flow: WorkflowBuilder, before: Sequence[AnyStep], given: Callable[[], Any] | None) -> Added:
        step = flow.after(*before).add(self.as_task(), *self.args_after(given), **self.kwargs)
        return Added([step], lambda: step.result)

    def args_after(self, given: Callable[[], Any] | None) -> tuple[Any, ...]:
        """Its arguments behind the result of what was before."""
        return tuple(self.args) if self.immutable or given is None else (given(), *self.args)


class chain(Canvas):
    """One after another: each gets the result of the one before; behind a group, the list of its results."""

    def __init__(self, *canvases: Canvas | Iterable[Canvas]) -> None:
        super().__init__(*canvases)
        if not self.tasks:
            raise InvalidTask("A chain needs signatures.")
        # A chain with links or errbacks of its own stays one.
        is_plain = [type(one) is chain and not one.links and not one.errors for one in self.tasks]
        flat = [one.tasks if plain else [one] for one, plain in zip(self.tasks, is_plain, strict=True)]
        self.tasks = [one for part in flat for one in part]

    def _add(self, flow: WorkflowBuilder, before: Sequence[AnyStep], given: Callable[[], Any] | None) -> Added:
        added = Added(before, given)
        for part in self.tasks:
            added = part.add_to(flow, *added)
        return added

    def _clones(self, args: Any, kwargs: Any, options: dict[str, Any]) -> list[Canvas]:
        first, *others = self.tasks
        return [first.clone(args, kwargs, **options), *(one.clone() for one in others)]


class group(Canvas):
    """Several at once."""

    def send(self) -> Any:
        """Enqueue a job for each; a workflow if it has other than signatures, or something is to follow it."""
        is_plain = all(type(one) is Signature and not one.all_errors() for one in self.tasks)
        if not is_plain or self.links or self.errors:
            return super().send()
        return GroupResult([one.send() for one in self.tasks])

    def _add(self, flow: WorkflowBuilder, before: Sequence[AnyStep], given: Callable[[], Any] | None) -> Added:
        first = self.tasks[0] if self.tasks else None
        if isinstance(first, Signature) and all(_is_alike(first, one) for one in self.tasks):
            calls = ((one.args_after(given), one.kwargs) for one in self.tasks)  # type: ignore[attr-defined]
            steps = flow.after(*before).add_many(first.as_task(), calls)
            return Added([steps], lambda: steps.results)
        parts = [one.add_to(flow, before, given) for one in self.tasks]
        ends = [end for part in parts for end in part.ends]
        return Added(ends or before, lambda: [part.output() for part in parts if part.output])


def _is_alike(first: Signature, other: Canvas) -> bool:
    """Whether two signatures can be calls of one step."""
    if not isinstance(other, Signature) or other.links or other.errors:
        return False
    return (first.task, first.options, first.immutable) == (other.task, other.options, other.immutable)


def chord(header: group | Iterable[Canvas], body: Canvas | None = None) -> Any:
    """A group, and what gets the list of its results: ``chord(header)(body)``, ``chord(header, body)()``."""
    header = header if isinstance(header, group) else group(header)
    if body is not None:
        return chain(header, body)
    return lambda body, **options: chain(header, body).apply_async(**options)


def signature(
    task: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, **options: Any
) -> Signature:
    """A call of a task, or of the task of this name."""
    immutable = bool(options.pop("immutable", False))
    name = task if isinstance(task, str) else task.name
    return Signature(name, tuple(args), dict(kwargs or {}), options, immutable=immutable)


@rtq_task(name="django_rtq.compat.celery.starmap", max_attempts=1, max_crashes=0)
def call_many(task: str, calls: list[list[Any]]) -> list[Any]:
    """Call a task with each of these arguments, in one job. A list of the results."""
    return [registry.get_task(task)(*args) for args in calls]


def xstarmap(task: Any, calls: Iterable[Sequence[Any]]) -> Signature:
    """All calls in one job. Its result is a list."""
    name = task if isinstance(task, str) else task.name
    options = {"queue": registry.get_task(name).queue}
    return Signature(call_many.name, (name, [list(args) for args in calls]), {}, options, immutable=True)


def xmap(task: Any, values: Iterable[Any]) -> Signature:
    """The same, with one argument each."""
    return xstarmap(task, ((value,) for value in values))


def chunks(task: Any, calls: Iterable[Sequence[Any]], size: int) -> group:
    """A group of jobs, each of which makes `size` of the calls."""
    every = list(calls)
    return group(xstarmap(task, every[start : start + size]) for start in range(0, len(every), size))


def _as_list(given: Canvas | Iterable[Canvas] | None) -> list[Canvas]:
    return [given] if isinstance(given, Canvas) else list(given or ())


def _errback(errors: Sequence[Canvas]) -> Signature | None:
    """The one call that is made when a job is dead. Raises InvalidTask."""
    if not errors:
        return None
    first, *others = errors
    if any(other != first for other in others):
        raise InvalidTask(
            "link_error: a workflow calls one errback, at its first dead job. Use the same for all of it."
        )
    if not isinstance(first, Signature) or first.links:
        raise InvalidTask("link_error takes one signature. Enqueue what follows it at its end.")
    if not first.immutable:
        raise InvalidTask(
            f"link_error={first.task}.s(…): Celery gives it the request and the error, and here it gets what you "
            "write. Use .si(…): workflows, dead letters and the signal job_buried have the error."
        )
    return first


# -- results

_STATES = {
    JobState.RUNNING: "STARTED",
    JobState.RETRYING: "RETRY",
    JobState.SUCCEEDED: "SUCCESS",
    JobState.DEAD: "FAILURE",
    JobState.CANCELLED: "REVOKED",
    JobState.EXPIRED: "REVOKED",
}
_FLOW_STATES = {"blocked": "FAILURE", "failed": "FAILURE", "succeeded": "SUCCESS", "cancelled": "REVOKED"}


class AsyncResult:
    """A job, or a workflow if this is its id, with the methods of Celery's AsyncResult."""

    _failures: tuple[type[Exception], ...] = (JobFailed, WorkflowFailed)

    def __init__(
        self,
        id: str,
        *,
        queue: str = "",
        handle: JobHandle[Any] | None = None,
        flow: Workflow | None = None,
        output: Any = _UNKNOWN,
    ) -> None:
        self.id = self.task_id = id
        self._flow = flow or (Workflow(id) if _WORKFLOW_ID.fullmatch(id) else None)
        self._output = output  # of the workflow: what is last in it, with references to results
        self._handle = handle or (JobHandle[Any](id, queue) if queue else None)
        if self._flow is None and self._handle is None:
            with suppress(JobNotFound):
                self._handle = JobHandle(id, access_to_jobs(place_of_job("", id)).find(id).queue)

    @property
    def state(self) -> str:
        """PENDING, STARTED, RETRY, SUCCESS, FAILURE or REVOKED. PENDING also for a job that is not known any more.
        FAILURE also while dead jobs block a workflow."""
        if self._flow is not None:
            with suppress(WorkflowNotFound):
                return _FLOW_STATES.get(self._flow.state, "PENDING")
        details = self._details()
        return _STATES.get(details.state, "PENDING") if details is not None else "PENDING"

    @property
    def status(self) -> str:
        """The same."""
        return self.state

    def ready(self) -> bool:
        """Whether it is over."""
        return self.state in {"SUCCESS", "FAILURE", "REVOKED"}

    def successful(self) -> bool:
        """Whether it has succeeded."""
        return self.state == "SUCCESS"

    def failed(self) -> bool:
        """Whether it has failed for good."""
        return self.state == "FAILURE"

    def get(self, timeout: float | None = None, propagate: bool = True, **options: Any) -> Any:
        """Wait for the result. Raises JobFailed or WorkflowFailed unless `propagate` is off, ResultTimeout or
        WorkflowTimeout."""
        try:
            return self._wait(timeout)
        except self._failures as error:
            if propagate:
                raise
            return error

    wait = join = get

    def _wait(self, timeout: float | None) -> Any:
        if self._flow is None:
            if self._handle is None:
                raise InvalidTask(f"Job {self.id} is not known.")
            return self._handle.get(timeout=timeout)
        self._flow.get(timeout)
        if self._output is _UNKNOWN:
            fields = self._flow.progress().fields
            if "output" not in fields:
                raise InvalidTask(
                    f"Workflow {self.id} was made by workflow(), which says of no step that it is its result."
                )
            self._output = serializer.loads(fields["output"])
        return as_lists(resolve(self._flow.backend, [self._output], {})[0][0])

    @property
    def result(self) -> Any:
        """The result, or the error; None if it is not over."""
        return self.get(timeout=0, propagate=False) if self.ready() else None

    @property
    def info(self) -> Any:
        """The same; before it is over, the numbers of the last update_state(), None without one."""
        details = self._details()
        progress = None if details is None or details.state.is_final else details.progress
        return self.result if progress is None else {"current": progress.done, "total": progress.total}

    @property
    def traceback(self) -> str | None:
        """That of the last failure; None without one."""
        details = self._details()
        return details.errors[-1].get("traceback") if details is not None and details.errors else None

    def revoke(self, terminate: bool = False, **options: Any) -> None:
        """Cancel it; with `terminate` also while it runs. Running jobs of a workflow are asked to stop."""
        if self._flow is not None:
            self._flow.cancel()
        elif self._handle is not None:
            self._handle.cancel(terminate=terminate)

    def forget(self) -> None:
        """Does nothing: results expire."""

    def _details(self) -> JobDetails | None:
        try:
            return None if self._handle is None else self._handle.refresh()
        except JobNotFound:  # it waits for a commit, or its result has expired
            return None

    def __repr__(self) -> str:
        return f"<AsyncResult: {self.id}>"


def as_lists(value: Any) -> Any:
    """Results of many jobs as the lists that tasks for Celery expect."""
    return [as_lists(item) for item in value] if isinstance(value, list | StepResults) else value


class GroupResult(list[AsyncResult]):
    """The jobs of a group."""

    def ready(self) -> bool:
        """Whether all are over."""
        return all(one.ready() for one in self)

    def successful(self) -> bool:
        """Whether all have succeeded."""
        return all(one.successful() for one in self)

    def get(self, timeout: float | None = None, propagate: bool = True, **options: Any) -> list[Any]:
        """Wait for all results, each for at most `timeout` seconds."""
        return [one.get(timeout, propagate) for one in self]

    join = get

    @property
    def results(self) -> list[AsyncResult]:
        """The single ones."""
        return list(self)


class EagerResult(AsyncResult):
    """What apply() returns."""

    _failures = (Exception,)

    def __init__(self, value: Any = None, *, error: Exception | None = None) -> None:
        self.id = self.task_id = ""
        self._flow = self._handle = None
        self._value, self._error = value, error

    @property
    def state(self) -> str:
        """SUCCESS or FAILURE."""
        return "SUCCESS" if self._error is None else "FAILURE"

    def _wait(self, timeout: float | None) -> Any:
        if self._error is not None:
            raise self._error
        return self._value

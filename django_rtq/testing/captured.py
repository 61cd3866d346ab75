"""captured(): collects jobs instead of sending them to Redis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict
from uuid import UUID

from django_rtq.core.broker.messages import NewJob
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import CancelAnswer
from django_rtq.core.tasks import registry
from django_rtq.core.tasks.calls import client_name, signature_of
from django_rtq.core.tasks.options.kinds import Moment, moment_argument
from django_rtq.core.tasks.task import Task
from django_rtq.exceptions import JobNotFound, Unserializable, WrongState
from django_rtq.testing.jobs import CapturedJob, call_text, read_moment
from django_rtq.testing.substitute import EngineWorkflows, Substitute
from django_rtq.workflows.steps.store import written_event
from django_rtq.workflows.store import NewWorkflow, started_parts

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ExpectedJob(TypedDict, total=False):
    """What can be compared of a job."""

    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    client: str | int | UUID | None
    queue: str
    run_after: Moment | None
    headers: Mapping[str, Any]


def _bound(task: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The arguments by the names of the parameters, with defaults. Raises TypeError if they do not match these."""
    declared = registry.known_task(task)
    if declared is None:
        return _as_json(args), _as_json(kwargs)
    signature = signature_of(declared.func, takes_context=declared.takes_context)
    signature.check(args, dict(kwargs))
    return {name: _as_json(value) for name, value in signature.named(args, dict(kwargs)).items()}


def _as_json(value: Any) -> Any:
    """The value as a task gets it: a tuple becomes a list. A default may be anything, and stays as it is."""
    try:
        return serializer.loads(serializer.dumps(value))
    except Unserializable:
        return value


#: How what is expected is compared with a job.
_READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "client": lambda owner, client: client_name(f"{owner}: client", client),
    "queue": lambda owner, queue: queue,
    "run_after": lambda owner, moment: read_moment(moment_argument(owner, "run_after", moment)),
    "headers": lambda owner, headers: _as_json(dict(headers)),
}


class CapturedJobs(Substitute[CapturedJob]):
    """Collects the jobs of a block or test: nothing is sent to Redis, and nothing runs.

    Arguments, options and the size of the payload are checked as in production. Of unique jobs that are alike one
    exists, and it never ends. The list has the jobs of its last block, in the order of their calls.
    """

    name = "captured()"

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        """Forget the jobs so far."""
        super().clear()
        self._owners: dict[tuple[str, str], CapturedJob] = {}  # of the digests of unique jobs
        self._flows: list[NewWorkflow] = []

    def __repr__(self) -> str:
        return f"<CapturedJobs: {len(self)}>"

    # -- assertions

    def assert_enqueued(
        self,
        task: Task[Any, Any] | str,
        *,
        times: int | None = None,
        **details: Unpack[ExpectedJob],
    ) -> list[CapturedJob]:
        """Raise AssertionError unless a job like this was enqueued; with `times`, exactly so many. Returns the jobs.

        Takes `args`, `kwargs`, `client`, `queue` and `run_after`; what is left out is not compared. `args` and `kwargs`
        are the whole call: both sides are compared as JSON, by the names of the parameters, with defaults.
        `run_after`: as given to using(); None: without a delay.
        """
        matching, wanted = self._find_alike(task, details)
        if times is None and not matching:
            raise AssertionError(f"{wanted} was not enqueued. {self._listing()}")
        if times is not None and len(matching) != times:
            raise AssertionError(
                f"{wanted} was enqueued {_times(len(matching))}, not {_times(times)}. {self._listing()}"
            )
        return matching

    def assert_not_enqueued(
        self,
        task: Task[Any, Any] | str | None = None,
        **details: Unpack[ExpectedJob],
    ) -> None:
        """Raise AssertionError if a job like this was enqueued; without a task, if any job like this was."""
        matching, wanted = self._find_alike(task, details)
        if matching:
            raise AssertionError(f"{wanted} was enqueued. {self._listing()}")

    def _find_alike(self, task: Task[Any, Any] | str | None, expected: ExpectedJob) -> tuple[list[CapturedJob], str]:
        """The jobs like this, and what these are, in words. Raises TypeError for what cannot be compared."""
        if unknown := expected.keys() - ExpectedJob.__optional_keys__:
            raise TypeError(f"{min(unknown)!r} cannot be compared. Use: {', '.join(ExpectedJob.__annotations__)}.")
        name, given = task.name if isinstance(task, Task) else task, dict[str, Any](expected)
        details = {key: read(name or "a job", given[key]) for key, read in _READERS.items() if key in given}
        jobs = [
            job
            for job in self
            if name in (None, job.task) and all(getattr(job, key) == value for key, value in details.items())
        ]
        text = name or "A job"
        if "args" in given or "kwargs" in given:
            if name is None:
                raise TypeError("args and kwargs can be compared for one task only: name it.")
            call = given.get("args", ()), given.get("kwargs", {})
            bound, text = _bound(name, *call), call_text(name, *call)
            jobs = [job for job in jobs if _bound(name, job.args, job.kwargs) == bound]
        shown = ", ".join(f"{key} {value!r}" for key, value in details.items())
        return jobs, f"{text} with {shown}" if shown else text

    def assert_workflow(self, name: str, *, steps: Mapping[str, int] | None = None) -> None:
        """Raise AssertionError unless exactly one workflow of this name was made. `steps`: how many calls of each task,
        by the end of its name, its steps have together."""
        made = [flow.fields for flow in self._flows if flow.fields["name"] == name]
        if len(made) != 1:
            others = ", ".join(str(flow.fields["name"]) for flow in self._flows) or "none"
            raise AssertionError(f"Workflow {name} was made {_times(len(made))}, not once. Workflows: {others}.")
        numbers: dict[str, int] = {}
        for step in range(int(made[0]["steps"])):
            task = str(made[0][f"task:{step}"]).rpartition(".")[2]
            numbers[task] = numbers.get(task, 0) + int(made[0][f"size:{step}"])
        if steps is not None and numbers != dict(steps):
            raise AssertionError(f"The steps of workflow {name} are {numbers}, not {dict(steps)}.")

    def _listing(self) -> str:
        if not self:
            return "No job was enqueued."
        return "\n".join(["Enqueued were:", *(f"  {number}. {job}" for number, job in enumerate(self, 1))])

    # -- in place of Redis

    def enqueue_one(self, queue: str, job: NewJob) -> str:
        new = CapturedJob.read(queue, job)
        owner = self._owners.get((queue, job.digest)) if job.digest else None
        if owner is None or owner.is_cancelled:
            self.append(new)
            self._owners[queue, job.digest] = new
            return "ok"
        if job.on_conflict == "replace":
            vars(owner).update({**vars(new), "id": owner.id})
        return f"duplicate {owner.id}"

    def on_workflow(self, flow: NewWorkflow) -> None:
        self._flows.append(flow)
        (fields,), calls = EngineWorkflows(self).read_fields([flow.id]), dict(flow.parts)
        for part in started_parts(flow.id, fields):
            lines = calls[f"{part.step}:{part.place}"].splitlines()
            for (_, job_id), head, body in zip(part.ids(), lines[::2], lines[1::2], strict=True):
                priority, max_crashes, due, expires, at_front, client = head.split(" ", 5)
                job = NewJob(job_id, int(priority), int(max_crashes), client, due, expires, at_front, body)
                self.enqueue_one(part.queue, job)

    def on_cancelled(self, job_ids: Sequence[str]) -> None:
        for job_id in job_ids:
            self._job(job_id).is_cancelled = True

    def find(self, job_id: str, queue: str | None = None) -> JobDetails:
        job = self._job(job_id)
        return job.details(job.state, priority=job.priority, options=dict(job.options))

    def cancel(self, job_id: str, queue: str | None = None, *, terminate: bool = False) -> CancelAnswer:
        self._job(job_id).is_cancelled = True
        return CancelAnswer.CANCELLED

    def send(
        self, job_id: str, event: str, value: Any = None, *, queue: str | None = None, token: str | None = None
    ) -> None:
        written_event(event, value)
        self._job(job_id).events.append((event, value))

    def wait(self, job_id: str, queue: str, timeout: float | None) -> JobDetails:
        if not self._job(job_id).is_cancelled:
            raise WrongState(job_id, "was captured and never runs, so get() would wait for ever. Use eager().")
        return self.find(job_id)

    def _job(self, job_id: str) -> CapturedJob:
        for job in self:
            if job.id == job_id:
                return job
        raise JobNotFound(job_id)


captured = CapturedJobs


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"

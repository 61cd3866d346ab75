"""JobHandle: what delay() returns. Reads the state and the result of a job from Redis, in any queue (D110)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic

from django_rtq.core.broker.task_backends import place_of_job
from django_rtq.core.extension import no_attribute
from django_rtq.core.jobs.job import CancelAnswer, JobState
from django_rtq.exceptions import JobFailed, WrongState

_FINAL = (JobState.SUCCEEDED, JobState.CANCELLED)

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from django_rtq.core.broker.one_job import JobAccess
    from django_rtq.core.jobs.details import JobDetails

    T_co = TypeVar("T_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class JobHandle(Generic[T_co]):
    """A job in a queue. Each access queries Redis, until the job has succeeded or is cancelled.

    For type checkers the result has the type that the task returns. It went through JSON: a tuple is a list then.
    """

    __slots__ = ("_details", "backend", "duplicate", "id", "queue_name", "when_sent")

    def __init__(self, job_id: str, queue_name: str, *, duplicate: bool = False, backend: str = "") -> None:
        self.id = job_id
        self.queue_name = queue_name
        self.backend = backend  # in TASKS, whose Redis has the job; "": that of RTQ["REDIS"]
        self.duplicate = duplicate  # delay() made no job: this unique job existed already
        self._details: JobDetails | None = None
        #: For the package: what to call when the job has been sent after a commit. None: it does not wait for one.
        self.when_sent: list[Callable[[], None]] | None = None

    def tell_sent(self) -> None:
        """For the package: the job has been sent."""
        calls, self.when_sent = self.when_sent or (), None
        for call in calls:
            call()

    def refresh(self) -> JobDetails:
        """Query Redis for all that is known of the job. Raises JobNotFound when its id or its result has expired."""
        self._details = self._access().find(self.id, self.queue_name)
        return self._details

    async def arefresh(self) -> JobDetails:
        """refresh() for coroutines."""
        self._details = await self._access().afind(self.id, self.queue_name)
        return self._details

    @property
    def state(self) -> JobState:
        """The current state. Raises JobNotFound."""
        return (self._final() or self.refresh()).state

    async def astate(self) -> JobState:
        """`state` for coroutines."""
        return (self._final() or await self.arefresh()).state

    @property
    def result(self) -> T_co:
        """What the task returned, without waiting. Raises WrongState if there is no result (yet), and JobNotFound."""
        return self._result_of(self._final() or self.refresh())

    async def aresult(self) -> T_co:
        """`result` for coroutines."""
        return self._result_of(self._final() or await self.arefresh())

    def get(self, timeout: float | None = None) -> T_co:
        """Wait until the job is over, and return its result: None if none is stored, or if it was lost.

        Blocks for at most `timeout` seconds, without polling. Raises ResultTimeout when the job is not over by then;
        JobFailed when it is dead, cancelled or expired; JobNotFound when it was deleted or its result has expired;
        BrokerUnavailable. A job that calls get() keeps its worker slot: do not wait for jobs of the same queue.
        """
        check_timeout(timeout)
        return self._end_of(self._final() or self._access().wait(self.id, self.queue_name, timeout))

    async def aget(self, timeout: float | None = None) -> T_co:
        """get() for coroutines. Any number of them share a few connections while they wait."""
        check_timeout(timeout)
        return self._end_of(self._final() or await self._access().await_end(self.id, self.queue_name, timeout))

    def cancel(self, *, terminate: bool = False) -> CancelAnswer:
        """Cancel the job before it runs ("cancelled"), or ask it to stop if it is running ("asked").

        With `terminate`, the process that runs it is killed. A job that was asked to stop never runs again: it ends as
        cancelled, unless it succeeds before it stops. Raises WrongState when it is over, and JobNotFound.
        """
        return self._access().cancel(self.id, self.queue_name, terminate=terminate)

    async def acancel(self, *, terminate: bool = False) -> CancelAnswer:
        """cancel() for coroutines."""
        return await self._access().acancel(self.id, self.queue_name, terminate=terminate)

    def send(self, event: str, value: Any = None, *, token: str | None = None) -> None:
        """Give the job an event, for its context.wait(): now, or when it comes there.

        The value is JSON of 64 kB at the most. Two calls with the same name and `token` are one event. Raises
        JobNotFound; WrongState for a job that is over, has gone on by its time-out, or has 100 events that it has not
        read; and Unserializable, PayloadTooLarge and ValueError.
        """
        self._access().send(self.id, event, value, queue=self.queue_name, token=token)

    async def asend(self, event: str, value: Any = None, *, token: str | None = None) -> None:
        """send() for coroutines."""
        await self._access().asend(self.id, event, value, queue=self.queue_name, token=token)

    def _access(self) -> JobAccess:
        from django_rtq.core.broker.one_job import access_to_jobs  # a process that only enqueues does not need it

        return access_to_jobs(place_of_job(self.backend, self.id))

    def _final(self) -> JobDetails | None:
        return self._details if self._details is not None and self._details.state in _FINAL else None

    def _result_of(self, details: JobDetails) -> T_co:
        if details.state is not JobState.SUCCEEDED:
            raise WrongState(self.id, f"has no result: it is {details.state}.")
        if details.seconds is None:
            raise WrongState(self.id, "has no result: it succeeded, but its task stores none (result_ttl=0).")
        if details.is_result_lost:
            raise WrongState(self.id, "has no result: it succeeded, but the result was lost with its process.")
        value: T_co = details.result
        return value

    def _end_of(self, details: JobDetails) -> T_co:
        self._details = details
        if details.state is JobState.SUCCEEDED:
            value: T_co = details.result
            return value
        raise JobFailed(self.id, _why_failed(details))

    if not TYPE_CHECKING:  # checkers know what there is

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, "JobHandle", name)

        def __await__(self) -> Any:
            raise TypeError(
                "A JobHandle cannot be awaited: delay() has sent the job. In coroutines send it with "
                "job = await task.adelay(…), and wait for its result with await job.aget(timeout=…)."
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobHandle) and (self.id, self.queue_name) == (other.id, other.queue_name)

    def __hash__(self) -> int:
        return hash((self.id, self.queue_name))

    def __repr__(self) -> str:
        return f"<JobHandle {self.id} in {self.queue_name}>"


def check_timeout(timeout: Any) -> None:
    """Raises ValueError for what is no number of seconds."""
    if timeout is not None and not (isinstance(timeout, int | float) and math.isfinite(timeout)):
        raise ValueError(f"timeout is {timeout!r}, but has to be a number of seconds, or None to wait without a limit.")


def _why_failed(details: JobDetails) -> str:
    if details.state not in (JobState.DEAD, JobState.CANCELLED, JobState.EXPIRED):
        return f"was dead and has been requeued since: it is {details.state} now."
    if not details.errors:
        return f"is {details.state}."
    error = f"is {details.state}. {': '.join(filter(None, details.newest_error))}"
    return "\n\n".join(filter(None, (error, details.attempts[-1].traceback)))

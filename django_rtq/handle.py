"""What delay() gives back: a job, seen from outside."""

from __future__ import annotations

from typing import Any

from django_rtq.broker.details import JobDetails
from django_rtq.broker.inspector import get_inspector
from django_rtq.exceptions import WrongState
from django_rtq.job import JobState


class JobHandle:
    """A job of a queue. It asks Redis when it is asked, until the job is over."""

    __slots__ = ("_details", "id", "queue_name")

    def __init__(self, job_id: str, queue_name: str) -> None:
        self.id = job_id
        self.queue_name = queue_name
        self._details: JobDetails | None = None

    def refresh(self) -> JobDetails:
        """Ask Redis for all that is known. Raises JobNotFound when it is finished and was forgotten."""
        self._details = get_inspector().find(self.id, self.queue_name)
        return self._details

    @property
    def state(self) -> JobState:
        """Where the job is now. Raises JobNotFound."""
        return self._latest().state

    @property
    def result(self) -> Any:
        """What the task returned. Raises WrongState while, or because, there is no such thing."""
        details = self._latest()
        if details.state is not JobState.SUCCEEDED:
            raise WrongState(self.id, f"has no result: it is {details.state}.")
        if details.seconds is None:
            raise WrongState(self.id, "has no result: it succeeded, but its task keeps none (result_ttl=0).")
        return details.result

    def cancel(self) -> None:
        """Take the job out before it runs. Raises WrongState when it runs or is over, JobNotFound."""
        get_inspector().cancel(self.id, self.queue_name)

    def _latest(self) -> JobDetails:
        if self._details is not None and self._details.state in (JobState.SUCCEEDED, JobState.CANCELLED):
            return self._details
        return self.refresh()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobHandle) and (self.id, self.queue_name) == (other.id, other.queue_name)

    def __hash__(self) -> int:
        return hash((self.id, self.queue_name))

    def __repr__(self) -> str:
        return f"<JobHandle {self.id} in {self.queue_name}>"

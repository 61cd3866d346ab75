"""What jobs remember while eager() is active: what StepStore does in Redis, in this process."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from django_rtq.broker.job_steps import Holder, Remembered, Wait


class MemorySteps:
    """Steps, sleeps and events of jobs, by id. Time passes when `go_on` says so."""

    def __init__(self) -> None:
        self._jobs: dict[str, Remembered] = {}
        self._sent: defaultdict[tuple[str, str], int] = defaultdict(int)  # the number of the last event

    def read(self, holder: Holder) -> Remembered:
        """As of a StepStore."""
        return self._jobs.setdefault(holder.job_id, Remembered(fields={}))

    async def aread(self, holder: Holder) -> Remembered:
        """As of a StepStore."""
        return self.read(holder)

    def write(self, holder: Holder, field: str, text: str) -> bool:
        """As of a StepStore: the run notes it in what it has read."""
        return True

    async def awrite(self, holder: Holder, field: str, text: str) -> bool:
        """As of a StepStore."""
        return True

    def begin_wait(self, job_id: str, waits_for: str) -> str:
        """A job sleeps, or waits. Returns the name of the event; "": it sleeps, or the event is there."""
        known = self._jobs[job_id]
        wait = Wait.read(f"{2**63} {waits_for}".encode())
        self._jobs[job_id] = replace(known, wait=wait)
        is_there = wait is None or not wait.event or f"event {wait.event}" in known.fields
        return "" if is_there or wait is None else wait.event.partition(" ")[2]

    def end_wait(self, job_id: str) -> None:
        """The time of a sleep is over, or an event has not come."""
        known = self._jobs[job_id]
        if known.wait is not None:
            number, _, event = known.wait.event.partition(" ")
            if event and f"event {known.wait.event}" not in known.fields:
                known.fields[f"event {known.wait.event}"] = b""
                self._sent[job_id, event] = int(number)
            self._jobs[job_id] = replace(known, wait=known.wait._replace(due_ms=0))

    def send(self, job_id: str, event: str, value: str) -> None:
        """A job gets an event."""
        known = self._jobs.setdefault(job_id, Remembered(fields={}))
        number = self._sent[job_id, event] = self._sent[job_id, event] + 1
        known.fields[f"event {number} {event}"] = f"0 {value}".encode()

"""What jobs remember of earlier runs: their steps, what they wait for, and the events that they got."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.protocol.model.paused_tasks import HELD
from tests.protocol.model.state import Part

if TYPE_CHECKING:
    from tests.protocol.model.queue import Queue

EVENT_LIMITS = (3, 5, 60)  # that lie there unread, that came at all, and bytes of their values


@dataclass(frozen=True)
class Wait:
    """What a job waits for, or has waited for last."""

    due: int
    sleeps: int
    reads: int
    event: str  # "<number> <name>"; "": it sleeps

    @classmethod
    def read(cls, entry: str | None) -> Wait | None:
        if not entry:
            return None
        due, sleeps, reads, *event = entry.split(" ", 3)
        return cls(int(due), int(sleeps), int(reads), *(event or [""]))


class Remembering(Part):
    """It goes with the job, until that is over."""

    def wait_of(self, job_id: str) -> Wait | None:
        return Wait.read(self.queue.step_jobs.get(job_id))

    def record_step(self, worker: str, job_id: str, claimed: str, step: str, text: str) -> str:
        if self.queue.running[worker].get(job_id, "").split(" ")[1:2] != [claimed]:
            return "stale"
        self.queue.step_jobs.setdefault(job_id, "")
        self.queue.steps.setdefault(job_id, {})[step] = text
        self._forgive(job_id)
        return "ok"

    def _forgive(self, job_id: str) -> None:
        """It has got further: what failed before counts no longer."""
        self.queue.failures.pop(job_id, None)
        self.queue.crashes.pop(job_id, None)

    def suspend(self, job_id: str, ms: int, text: str) -> None:
        """A run ends, and another one goes on later."""
        now, record = self.queue.clock.now, self.queue.jobs[job_id]
        due = self._begin_wait(job_id, text, now + ms)
        note = self.queue.digests.get(job_id)
        if note and note.until == "start" and self.queue.unique.get(note.digest) == job_id:
            self.queue.unique_jobs.let_go([job_id])
        record.ready, record.expires = due, 0
        if due <= now:
            self.queue.places.queue_up(job_id, now)
        else:
            self.queue.places.schedule(job_id, due)

    def _begin_wait(self, job_id: str, text: str, due: int) -> int:
        """Until when it waits: for the same as before as long as it was said before."""
        former, steps, now = self.wait_of(job_id), self.queue.steps.setdefault(job_id, {}), self.queue.clock.now
        if former and self.queue.step_jobs[job_id].partition(" ")[2] == text:
            due = former.due
        else:
            if former and former.event and former.due <= now and f"event {former.event}" not in steps:
                number, name = former.event.split(" ", 1)
                steps |= {f"event {former.event}": "", f"last {name}": number}
            self.queue.step_jobs[job_id] = f"{due} {text}"
            self._forgive(job_id)
        event = text.split(" ", 2)[2:]
        return now if event and f"event {event[0]}" in steps else due

    def end_wait(self, job_id: str) -> None:
        """Its time is over now."""
        if self.wait_of(job_id):
            self.queue.step_jobs[job_id] = f"{self.queue.clock.now} {self.queue.step_jobs[job_id].partition(' ')[2]}"

    def send(self, job_id: str, event: str, token: str, value: str) -> str:
        """The answer of the script."""
        if job_id not in self.queue.jobs:
            is_over = job_id in self.queue.results or self.queue.outcomes.has_finished(job_id)
            return "finished" if is_over else "missing"
        now, wait, steps = self.queue.clock.now, self.wait_of(job_id), self.queue.steps.setdefault(job_id, {})
        number = steps.get(f"token {event}\n{token}") or str(int(steps.get(f"last {event}", 0)) + 1)
        is_awaited = wait is not None and wait.event == f"{number} {event}"
        if f"token {event}\n{token}" not in steps:
            unread, most, most_bytes = EVENT_LIMITS
            sent, size = int(steps.get("sent", 0)), int(steps.get("bytes", 0))
            if is_awaited and wait and wait.due <= now:
                return "late"
            if sent >= most or sent - (wait.reads if wait else 0) >= unread:
                return "full"
            if size + len(value.encode()) > most_bytes:
                return "large"
            self.queue.step_jobs.setdefault(job_id, "")
            text = f"{now} {value}"
            steps |= {f"event {number} {event}": text, f"last {event}": number, f"token {event}\n{token}": number}
            steps |= {"sent": str(sent + 1), "bytes": str(size + len(text.encode()))}
        if wait and wait.event and self.queue.scheduled.get(job_id, HELD) < HELD and job_id not in self.queue.retrying:
            self.queue.places.unschedule(job_id)
            self.queue.places.queue_up(job_id, now)
        return "sent"

    def forget(self, job_ids: Iterable[str]) -> None:
        for job_id in job_ids:
            if self.queue.step_jobs.pop(job_id, None) is not None:
                self.queue.steps.pop(job_id, None)

    def move(self, target: Queue, job_id: str) -> None:
        """They go to another queue with the job."""
        if (entry := self.queue.step_jobs.pop(job_id, None)) is not None:
            target.step_jobs[job_id] = entry
        if steps := self.queue.steps.pop(job_id, None):
            target.steps[job_id] = steps

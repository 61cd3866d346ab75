"""The part of the model about unique jobs: which job holds a digest, and which job runs after it."""

from __future__ import annotations

from collections.abc import Iterable

from django_rtq.broker.messages import UniqueJob
from tests.broker.model.state import Note, State


class Holdings(State):
    """Who holds which digest."""

    def _holder(self, digest: str) -> str:
        """The id of the job that keeps others out; "" when none does."""
        job_id = self.unique.get(digest, "")
        if job_id not in self.jobs or job_id in self.dead:
            return ""
        has_started = self._runs(job_id) or job_id in self.failures or job_id in self.crashes
        return "" if self.digests[job_id].until == "start" and has_started else job_id

    def _successor_of(self, job_id: str) -> str:
        successor = self.digests[job_id].successor
        return (
            successor
            if successor in self.scheduled and successor not in self.retrying and successor in self.jobs
            else ""
        )

    def _runs(self, job_id: str) -> bool:
        return any(job_id in held for held in self.running.values())

    def _hold(self, job: UniqueJob) -> None:
        if job.digest:
            self.unique[job.digest] = job.id
            self.digests[job.id] = Note(job.until, job.limit_ms, job.digest)

    def _let_go(self, job_ids: Iterable[str]) -> None:
        """Over, or dead: the successor takes what they held, and its time has come."""
        over = [job_id for job_id in job_ids if job_id in self.digests]
        for job_id in over:
            digest, successor = self.digests[job_id].digest, self._successor_of(job_id)
            owner = self.unique.get(digest)
            if successor and successor not in over:
                if owner in (job_id, None):
                    self.unique[digest] = successor
                self._schedule(successor, self.jobs[successor].ready)
            elif owner == job_id:
                del self.unique[digest]

    def _schedule(self, job_id: str, due: int) -> None:
        self.due_signal = self.due_signal or due < min(self.scheduled.values(), default=due + 1)
        self.scheduled[job_id] = due
        client = self.jobs[job_id].client
        self.scheduled_by_client[client] = min(due, self.scheduled_by_client.get(client, due))

    def _unschedule(self, job_id: str) -> None:
        """A job waits for its time no more. Who has no other is not looked at."""
        del self.scheduled[job_id]
        client = self.jobs[job_id].client
        if not self.scheduled_of(client):
            del self.scheduled_by_client[client]

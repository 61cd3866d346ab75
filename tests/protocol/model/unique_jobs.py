"""Unique jobs: which job holds a digest, and which job runs after it."""

from collections.abc import Iterable

from django_rtq.core.broker.messages import NewJob
from tests.protocol.model.state import Note, Part


class UniqueJobs(Part):
    """Who holds which digest."""

    def holder(self, digest: str) -> str:
        """The id of the job that keeps others out; "" when none does."""
        job_id = self.queue.unique.get(digest, "")
        if job_id not in self.queue.jobs or job_id in self.queue.dead:
            return ""
        has_started = self.queue.places.runs(job_id) or job_id in self.queue.failures or job_id in self.queue.crashes
        return "" if self.queue.digests[job_id].until == "start" and has_started else job_id

    def successor_of(self, job_id: str) -> str:
        successor = self.queue.digests[job_id].successor
        return (
            successor
            if successor in self.queue.scheduled
            and successor not in self.queue.retrying
            and successor in self.queue.jobs
            else ""
        )

    def hold(self, job: NewJob) -> None:
        if job.digest:
            self.queue.unique[job.digest] = job.id
            self.queue.digests[job.id] = Note(job.until, job.limit_ms, job.digest)

    def let_go(self, job_ids: Iterable[str]) -> None:
        """Over, or dead: the successor takes what they held, and its time has come."""
        over = [job_id for job_id in job_ids if job_id in self.queue.digests]
        for job_id in over:
            digest, successor = self.queue.digests[job_id].digest, self.successor_of(job_id)
            owner = self.queue.unique.get(digest)
            if successor and successor not in over:
                if owner in (job_id, None):
                    self.queue.unique[digest] = successor
                self.queue.places.schedule(successor, self.queue.jobs[successor].ready)
            elif owner == job_id:
                del self.queue.unique[digest]

    def replace(self, first: str, job: NewJob) -> None:
        """The one that waits takes what the other brings. Once its time has come it keeps its place."""
        before, record = self.queue.jobs[first], self.queue.places.record(job)
        if first not in self.queue.scheduled:
            record.band, record.client = before.lane
            self.queue.jobs[first] = record
        elif record.ready > self.queue.clock.now:
            self.queue.places.move(first, record, record.ready)
            if first in self.queue.retrying:
                self.queue.retrying[first] = record.ready
        else:
            self.queue.places.unschedule(first)
            self.queue.jobs[first] = record
            self.queue.retrying.pop(first, None)
            self.queue.places.queue_up(first, self.queue.clock.now)

    def come_after(self, first: str, job: NewJob) -> None:
        """It waits for the end of the one that runs, and not for ever."""
        self.queue.jobs[job.id] = self.queue.places.record(job)
        self.queue.places.schedule(job.id, self.queue.jobs[job.id].ready + job.limit_ms)
        self.queue.digests[first].successor = job.id
        self.queue.digests[job.id] = Note(job.until, job.limit_ms, job.digest)
        self.queue.count("enqueued")

"""Pauses and resumes tasks, moves jobs and finds them, in Redis and in the model."""

from __future__ import annotations

from django_rtq.broker.scripts import SCRIPTS
from django_rtq.exceptions import JobNotFound
from django_rtq.inspector.inspector import Inspector
from tests.broker.model.moving import move
from tests.broker.model.queries import state_in
from tests.broker.model.timing import Timing


class Pausing(Timing):
    """Pauses and moves of a parallel run, and what is told of jobs."""

    inspector: Inspector

    def pause_task(self, queue: str, task: str, by: str = "eve") -> None:
        self.same(self._script(queue, "pause_task", task, by).decode(), self.models[queue].pause_task(task, by))

    def resume_task(self, queue: str, task: str, limit: int = 100) -> None:
        answer, *counts = self._script(queue, "resume_task", task, limit)
        self.same([answer.decode(), *counts], self.models[queue].resume_task(task, limit))

    def move(self, queue: str, job_id: str, target: str) -> None:
        expected = move(self.models[queue], self.models[target], job_id)
        keys = [self.broker.keys.of(name) for name in (queue, target)]
        answer = self.broker.redis.execute_one(SCRIPTS["move"].call_many(keys, (job_id,)))
        self.same(answer.decode(), expected)

    def find(self, queue: str, job_id: str) -> None:
        """What is told of a job."""
        try:
            details = self.inspector.find(job_id, queue)
        except JobNotFound:
            assert self._place_of(job_id) is None
            return
        assert details.queue == (queue if state_in(self.models[queue], job_id) else self._place_of(job_id))
        model = self.models[details.queue]
        assert details.state is state_in(model, job_id)
        assert details.is_stopping is (job_id in model.cancel_requests)
        assert details.failures == model.failures.get(job_id, 0)
        assert details.crashes == model.crashes.get(job_id, 0)
        assert len(details.errors) == len(model.errors.get(job_id, ()))

    def _place_of(self, job_id: str) -> str | None:
        """The first queue that knows a job."""
        return next((name for name in sorted(self.models) if state_in(self.models[name], job_id)), None)

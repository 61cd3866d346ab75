"""Pauses and resumes queues and tasks, in Redis and in the model."""

from __future__ import annotations

from tests.broker.model.timing import Timing


class Pausing(Timing):
    """Pauses of a parallel run."""

    def pause_task(self, queue: str, task: str, by: str = "eve") -> None:
        self.same(self._script(queue, "pause_task", task, by).decode(), self.models[queue].pause_task(task, by))

    def resume_task(self, queue: str, task: str, limit: int = 100) -> None:
        answer, *counts = self._script(queue, "resume_task", task, limit)
        self.same([answer.decode(), *counts], self.models[queue].resume_task(task, limit))

"""Random moves of jobs to another queue, for the state machine."""

from __future__ import annotations

from typing import Any

from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.broker.model.parallel_run import QUEUES, ParallelRun
from tests.broker.model.strategies import queues, several, twice


class MovingRules(RuleBasedStateMachine):
    """The part of QueueMachine that moves jobs."""

    parallel: ParallelRun
    known: dict[str, list[str]]

    def _pick(self, things: Any, places: list[int]) -> list[Any]:
        raise NotImplementedError

    @rule(queue=queues, places=several, others=several, times=twice)
    def move(self, queue: str, places: list[int], others: list[int], times: int) -> None:
        """Some that live, and some that ever were."""
        (target,) = set(QUEUES) - {queue}
        live = sorted(self.parallel.models[queue].jobs)
        job_ids = [*self._pick(live, places), *self._pick(self.known[queue], others[:1])]
        for job_id in job_ids * times:
            self.parallel.move(queue, job_id, target)
            self.parallel.find(queue, job_id)
        self.known[target] += [job_id for job_id in dict.fromkeys(job_ids) if job_id not in self.known[target]]

"""Actions on all jobs of a queue, or of a client, in Redis and in the model."""

from __future__ import annotations

from django_rtq.inspector.actions import LATEST
from django_rtq.jobs.outcome import CANCELLED_UNRUN
from tests.broker.model.pausing import Pausing
from tests.broker.model.state import RESULT_MS


class QueueActions(Pausing):
    """What people do with whole queues, in a parallel run."""

    def pause(self, queue: str) -> None:
        self.same(self.inspector.pause(queue), self.models[queue].pause())

    def resume(self, queue: str) -> None:
        self.same(self.inspector.resume(queue), self.models[queue].resume())

    def forget(self, queue: str, idle_ms: int = 0, *, discard: bool = False) -> None:
        expected = self.models[queue].forget(idle_ms, discard=discard)
        if expected in ("forgotten", "missing"):
            self._turns.pop(queue, None)
        self.same(self._script(queue, "forget", idle_ms, "1" if discard else "").decode(), expected)

    def purge(self, queue: str, limit: int = 100, client: str | None = None) -> None:
        whose = ("all", "") if client is None else ("client", client)
        self.same(self._script(queue, "purge", limit, *whose, ""), self.models[queue].purge(limit, client))

    def cancel_client_jobs(
        self, queue: str, client: str, until_ms: int = LATEST, at: str = "scheduled 0", limit: int = 100
    ) -> str:
        """Returns where to start the next call."""
        outcome = (self.broker.config.max_results, RESULT_MS, CANCELLED_UNRUN)
        answer = self._script(queue, "cancel_client_jobs", limit, client, until_ms, at, *outcome)
        expected = self.models[queue].cancel_client_jobs(client, until_ms, at, limit)
        self.same(list(map(bytes.decode, answer)), expected)
        return expected[0]

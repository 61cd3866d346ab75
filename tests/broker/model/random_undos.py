"""Random actions that can be undone, for the state machine."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.broker.model.parallel_run import ParallelRun
from tests.broker.model.strategies import purged_clients, queues, several, twice

tokens = st.sampled_from((f"discard-{1:032x}", f"discard-{2:032x}"))


class UndoRules(RuleBasedStateMachine):
    """The part of QueueMachine that deletes jobs for now, and puts them back."""

    parallel: ParallelRun
    known: dict[str, list[str]]

    def _pick(self, things: Any, places: list[int]) -> list[Any]:
        raise NotImplementedError

    @rule(queue=queues, token=tokens, places=several, limit=st.sampled_from((1, 2, 3)), client=purged_clients)
    def delete_for_now(self, queue: str, token: str, places: list[int], limit: int, client: str | None) -> None:
        dead = self._pick(sorted(self.parallel.models[queue].dead), places)
        if dead:
            self.parallel.discard_for_now(queue, dead, token)
        else:
            self.parallel.purge_for_now(queue, limit, client, token)

    @rule(queue=queues, token=tokens, number=st.integers(0, 99), limit=st.sampled_from((1, 2, 100)), times=twice)
    def restore(self, queue: str, token: str, number: int, limit: int, times: int) -> None:
        for _ in range(times):
            self.parallel.restore(queue, token, f"call{number}", limit)

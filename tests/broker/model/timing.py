"""How long jobs ran, and what that does to turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django_rtq.broker.broker import Broker
from django_rtq.broker.scripts import SCRIPTS
from tests.broker.model.accidents import Accidents


class Timing(Accidents):
    """The part of ParallelRun that is about fair_by="seconds"."""

    broker: Broker

    def same(self, reply: object, expected: object) -> None:
        raise NotImplementedError

    def note_times(self, queue: str, worker: str, noted: Mapping[str, str]) -> None:
        self.models[queue].note_times(worker, noted.items())
        words = [word for pair in noted.items() for word in pair]
        command = SCRIPTS["note_times"].call(self.broker.keys.of(queue), words, worker=worker)
        self.same(self.broker.redis.execute_one(command), [])

    def check_times(self) -> None:
        """Rings are compared by their order. Where turns go by time, they are known."""
        for name, model in self.models.items():
            for band, ring in model.rings.items() if model.has_times else ():
                key = self.broker.keys.of(name).ring + str(band).encode()
                turns: dict[bytes, Any] = dict(self.redis.zrange(key, 0, -1, withscores=True))
                for client in ring:
                    turn = model.turns.get((band, client))
                    told = turn is None or f"{turns.get(client.encode(), 0):.6g}" == f"{turn:.6g}"
                    assert told, f"the turn of {client} is {turns.get(client.encode())}, and should be {turn}"

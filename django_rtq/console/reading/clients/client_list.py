"""All clients over all queues: searched, sorted, and added up."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from django_rtq.console.merging import JOINED, LEAST, MOST, merge
from django_rtq.console.reading.clients.client_states import ClientInQueue, QueueState
from django_rtq.console.reading.clients.queue_clients import QueueClients

#: What a list can be sorted by. Names begin with A, numbers with the greatest, unless the order is reversed.
SORTS = ("name", "queued", "scheduled", "running", "oldest", "starts", "time", "fair")
#: To which clients a list can be limited.
STATES = ("waiting", "paused", "limited")
_COLUMNS = {"starts": "runs", "time": "us", "fair": "fair_runs"}


@dataclass(kw_only=True)
class AllClients:
    """All clients at one moment."""

    queues: Sequence[QueueClients] = field(metadata=JOINED)
    now_ms: int = field(metadata=MOST)
    read_at: float = field(default_factory=time.monotonic, metadata=LEAST)
    kept_seconds: float = field(default=0.0, metadata=MOST)

    @property
    def age_seconds(self) -> float:
        """Since they were counted; 0.0 if they are not kept."""
        return time.monotonic() - self.read_at if self.kept_seconds else 0.0

    @property
    def known(self) -> int:
        """How many there are."""
        return len(self._names)

    @property
    def is_complete(self) -> bool:
        """False: a queue has more clients than are read. Those whose first jobs wait longest are counted."""
        return all(queue.is_complete for queue in self.queues)

    def matching(
        self, *, sort: str = "queued", is_reversed: bool = False, search: str = "", state: str = ""
    ) -> list[bytes]:
        """The names of the clients that contain `search`, in any case, and that are in a state of STATES."""
        return self._sorted(self._selected(search.casefold(), state), sort, is_reversed=is_reversed)

    def client(self, name: bytes) -> ClientInQueue:
        """One of them, over all queues."""
        in_queues = [queue.client(name) for queue in self.queues if name in queue.clients]
        return replace(merge(in_queues), queue="", queue_state=self._state, in_queues=in_queues)

    # -- inside

    @cached_property
    def _names(self) -> Mapping[bytes, str]:
        """What is searched, in the order of names."""
        clients = set[bytes]().union(*(queue.clients for queue in self.queues))
        names = [(client.decode(errors="replace").casefold(), client) for client in clients]
        return {client: name for name, client in sorted(names)}

    def _selected(self, search: str, state: str) -> list[bytes]:
        """In the order of names."""
        names = [client for client, name in self._names.items() if search in name] if search else list(self._names)
        return [client for client in names if client in self._states[state]] if state in STATES else names

    @cached_property
    def _states(self) -> Mapping[str, set[bytes]]:
        return {
            "waiting": {client for queue in self.queues for part in (queue.queued, queue.scheduled) for client in part},
            "paused": {client for queue in self.queues for client in queue.paused_clients},
            "limited": {client for queue in self.queues for client in queue.limited_clients},
        }

    def _sorted(self, names: list[bytes], sort: str, *, is_reversed: bool) -> list[bytes]:
        if sort == "name":
            return names[::-1] if is_reversed else names
        if sort == "oldest":
            since = self._oldest
            waiting = sorted((name for name in names if name in since), key=since.__getitem__, reverse=is_reversed)
            return [*waiting, *(name for name in names if name not in since)]
        sums = self._sums(_COLUMNS.get(sort, sort if sort in SORTS else "queued"))
        return sorted(names, key=lambda client: sums.get(client, 0), reverse=not is_reversed)

    def _sums(self, column: str) -> Mapping[bytes, float]:
        """A column of QueueClients, added up over the queues."""
        if column not in self._kept_sums:
            sums: dict[bytes, float] = {}
            for queue in self.queues:
                for client, number in getattr(queue, column).items():
                    sums[client] = sums.get(client, 0) + number
            self._kept_sums[column] = sums
        return self._kept_sums[column]

    @cached_property
    def _kept_sums(self) -> dict[str, Mapping[bytes, float]]:
        return {}

    @cached_property
    def _oldest(self) -> Mapping[bytes, float]:
        """Since when the first job of a client waits, ms."""
        since: dict[bytes, float] = {}
        for queue in self.queues:
            for client in queue.queued:
                since[client] = min(queue.since[client], since.get(client, queue.since[client]))
        return since

    @cached_property
    def _state(self) -> QueueState:
        return merge(queue.state for queue in self.queues)

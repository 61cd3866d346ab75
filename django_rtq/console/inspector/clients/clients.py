"""Some clients in their queues: their jobs, their limits, why they wait, and their part of recent runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from django_rtq.console.inspector.clients.client_states import (
    ClientInQueue,
    QueueState,
    read_client_states,
    read_queue_state,
)
from django_rtq.console.inspector.queues import QueueReader
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.scripts import SCRIPTS

STATES_AT_ONCE = 50  # clients whose states one script reads: two milliseconds


class ClientReader:
    """Reads clients. Any thread may use it. All methods raise BrokerUnavailable."""

    def __init__(self, broker: Broker) -> None:
        self._queues = QueueReader(broker)
        self._redis, self._keys = broker.redis, broker.keys

    def get(self, client: str, queues: Iterable[str] | None = None) -> list[ClientInQueue]:
        """A client in these queues; in all queues, if none is named."""
        names = self._queues.names() if queues is None else list(queues)
        return self._read({name: [client] for name in names})[0]

    def in_queue(self, queue: str, clients: Collection[str]) -> tuple[QueueState, list[ClientInQueue]]:
        """Some clients of a queue, and the queue: one round trip."""
        in_queues, states = self._read({queue: clients})
        return states[queue], in_queues

    # -- inside

    def _read(self, wanted: Mapping[str, Collection[str]]) -> tuple[list[ClientInQueue], dict[str, QueueState]]:
        """Clients by queue, in one round trip."""
        asked = [(queue, part) for queue, clients in wanted.items() for part in _parts(list(clients))]
        calls = [SCRIPTS["client_states"].call(self._keys.of(queue), part) for queue, part in asked]
        in_queues: list[ClientInQueue] = []
        states: dict[str, QueueState] = {}
        for (queue, part), reply in zip(asked, self._redis.execute(calls, resend=True), strict=True):
            states[queue] = read_queue_state(reply)
            in_queues += read_client_states(queue, part, reply)
        return in_queues, states


def _parts(clients: Sequence[str]) -> Iterator[Sequence[str]]:
    """Of no clients one empty part: the queue is read, too."""
    for start in range(0, max(1, len(clients)), STATES_AT_ONCE):
        yield clients[start : start + STATES_AT_ONCE]

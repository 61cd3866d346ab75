"""Sends the signals incident_opened and incident_closed, in one of the schedulers.

1. wait until some seconds have passed since any scheduler looked
2. find the incidents
3. the script `track_incidents` compares them with those of the last view; one scheduler learns what has changed
4. send the signals
"""

from __future__ import annotations

import logging
import random
import uuid
from collections.abc import Mapping

from django_rtq.console.incidents import Incident, look, reported
from django_rtq.console.incidents.server import silent_shard
from django_rtq.console.reading.readers import Readers
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.brokers import open_broker
from django_rtq.core.broker.redis.client import clock_ms
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.task_backends import shard_numbers, shard_of, shard_place
from django_rtq.core.signals import incident_closed, incident_opened
from django_rtq.core.threads import Loop
from django_rtq.exceptions import BrokerError

logger = logging.getLogger("django_rtq")

INTERVAL_SECONDS = 15.0
JITTER_SECONDS = 2.0  # or else all schedulers would look at the same moment
MAX_TRACKED = 100  # incidents, the worst
INCIDENT_SECONDS = 86_400  # without a view; then all incidents open again
_jitter = random.SystemRandom()


class IncidentWatcher(Loop):
    """Looks for incidents every INTERVAL_SECONDS, however many schedulers run."""

    name = "incidents"

    def __init__(self, broker: Broker) -> None:
        super().__init__()
        self._broker = broker
        self._readers = Readers(broker)

    def tick(self) -> float:
        """Look, unless another scheduler has."""
        since = seconds_since_view(self._broker)
        if since is None or not 0 <= since < INTERVAL_SECONDS:
            self._look()
            since = 0.0
        return INTERVAL_SECONDS - since + _jitter.uniform(0.0, JITTER_SECONDS)

    def _look(self) -> None:
        seen = look(self._readers)
        incidents = reported([*seen.incidents, *self._silent_shards()])[:MAX_TRACKED]
        opened, closed = track_incidents(
            self._broker,
            {incident.id: incident.dump() for incident in incidents},
            seen_ms=round(seen.overview.now.timestamp() * 1000),
            gap_ms=round(INTERVAL_SECONDS * 500),
            token=uuid.uuid4().hex,
        )
        for signal, texts in ((incident_opened, opened), (incident_closed, closed)):
            for incident in sorted(map(Incident.load, texts), key=lambda each: not each.is_critical):
                signal.send_robust(IncidentWatcher, incident=incident)

    def _silent_shards(self) -> list[Incident]:
        """Whether the next shard answers. Each is asked by the schedulers of one other: its own cannot tell."""
        own, numbers = shard_of(self._broker.backend), shard_numbers()
        if own is None or len(numbers) < 2:
            return []
        number = (own + 1) % len(numbers)
        broker = open_broker(shard_place(number), role="scheduler")
        try:
            broker.redis.execute_one(("PING",), resend=True)
        except BrokerError as error:
            return [silent_shard(number, str(error))]
        finally:
            broker.close()
        return []


def seconds_since_view(broker: Broker) -> float | None:
    """Since some scheduler last looked for incidents; None: none has, lately."""
    key = broker.keys.of(broker.config.default_queue).incidents
    time, view = broker.redis.execute([("TIME",), ("HGET", key, "")], resend=True)
    return None if view is None else (clock_ms(time) - int(view.partition(b" ")[0])) / 1000


def track_incidents(
    broker: Broker, incidents: Mapping[str, str], *, seen_ms: int, gap_ms: int, token: str
) -> tuple[list[str], list[str]]:
    """Store a view of the incidents, id -> text. Returns the texts of those that have opened and closed since.

    Both are empty if there is a view that is newer, or older by less than `gap_ms`.
    """
    flat = [text for pair in incidents.items() for text in pair]
    keys = broker.keys.of(broker.config.default_queue)
    command = SCRIPTS["track_incidents"].call(keys, (seen_ms, gap_ms, token, INCIDENT_SECONDS, *flat))
    texts = [text.decode() for text in broker.redis.execute_one(command, resend=True)]
    middle = texts.index("") if texts else 0
    return texts[:middle], texts[middle + 1 :]

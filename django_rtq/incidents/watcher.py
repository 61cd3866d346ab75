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

from django_rtq.broker.broker import Broker
from django_rtq.broker.task_backends import view_backend
from django_rtq.incidents.detection import find_incidents
from django_rtq.incidents.incident import Incident
from django_rtq.incidents.schedules import known_schedules
from django_rtq.inspector.inspector import Inspector
from django_rtq.signals import incident_closed, incident_opened
from django_rtq.threads import Loop
from django_rtq.transactions.outbox import outbox_lag

logger = logging.getLogger("django_rtq")

INTERVAL_SECONDS = 15.0
JITTER_SECONDS = 2.0  # or else all schedulers would look at the same moment
MAX_TRACKED = 100  # incidents, the worst
_jitter = random.SystemRandom()


class IncidentWatcher(Loop):
    """Looks for incidents every INTERVAL_SECONDS, however many schedulers run."""

    name = "incidents"

    def __init__(self, broker: Broker) -> None:
        super().__init__()
        self._broker = broker
        self._inspector = Inspector(broker)

    def tick(self) -> float:
        """Look, unless another scheduler has."""
        since = self._broker.maintenance.seconds_since_view()
        if since is None or not 0 <= since < INTERVAL_SECONDS:
            self._look()
            since = 0.0
        return INTERVAL_SECONDS - since + _jitter.uniform(0.0, JITTER_SECONDS)

    def _look(self) -> None:
        overview = self._inspector.overview.read()
        with view_backend(self._broker.backend):
            incidents = find_incidents(overview, outbox_lag(), known_schedules())[:MAX_TRACKED]
        opened, closed = self._broker.maintenance.track_incidents(
            {incident.id: incident.dump() for incident in incidents},
            seen_ms=round(overview.now.timestamp() * 1000),
            gap_ms=round(INTERVAL_SECONDS * 500),
            token=uuid.uuid4().hex,
        )
        for signal, texts in ((incident_opened, opened), (incident_closed, closed)):
            for incident in sorted(map(Incident.load, texts), key=lambda each: not each.is_critical):
                signal.send_robust(IncidentWatcher, incident=incident)

"""The loops of a scheduler: in rtq_scheduler, and in a supervisor."""

from __future__ import annotations

from collections.abc import Sequence

from django_rtq.core import signals
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.extension import parts
from django_rtq.core.scheduler.scheduler import Scheduler
from django_rtq.core.threads import Loop
from django_rtq.core.transactions import outbox_database


def scheduler_loops(broker: WorkerBroker, queues: Sequence[str]) -> list[Loop]:
    """The scheduler; the relay if there is an outbox; the watcher of incidents if a receiver is connected."""
    loops: list[Loop] = [Scheduler(broker, queues)]
    if alias := outbox_database():
        loops += [relay(broker, alias) for relay in parts("relay")]
    if signals.incident_opened.receivers or signals.incident_closed.receivers:
        loops += [watcher(broker) for watcher in parts("incident_watcher")]
    return loops

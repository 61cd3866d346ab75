"""How far jobs are, as they say themselves."""

from __future__ import annotations

from collections.abc import Iterable

from django_rtq.broker.broker import Broker
from django_rtq.broker.scripts import SCRIPTS


def note_progress(broker: Broker, worker: str, reports: Iterable[tuple[str, str, str]]) -> None:
    """Write down what jobs of a worker say: queue, id and JSON each. What it holds no more changes nothing (G4).

    Raises BrokerUnavailable. What a server refuses, because it is full, is not written down.
    """
    script = SCRIPTS["progress"]
    broker.wire.run(
        [script.call(broker.keys.of(queue), (job_id, line), worker=worker) for queue, job_id, line in reports],
        resend=True,
    )

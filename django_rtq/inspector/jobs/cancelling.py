"""Cancels the waiting jobs of clients, in bounded steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django_rtq import signals
from django_rtq.broker.broker import Broker
from django_rtq.broker.maintenance import MAINTAIN_AT_ONCE
from django_rtq.broker.scripts import SCRIPTS
from django_rtq.inspector.jobs.dead_letters import BulkResult
from django_rtq.jobs.outcome import CANCELLED_UNRUN


class ClientCanceller:
    """Cancels the queued, scheduled and retrying jobs of clients. Any thread may use it. Raises BrokerUnavailable."""

    def __init__(self, broker: Broker, sender: type) -> None:
        self._broker, self._sender = broker, sender

    def steps(self, client: str, queues: Iterable[str], most: int | None = None) -> Iterator[BulkResult]:
        """Cancel the waiting jobs of a client in these queues, `most` in all, give or take one step.

        Without `most` it goes on for as long as the client enqueues faster. Running jobs go on. Repeating a step does
        no harm.
        """
        left = most
        for queue in queues:
            while left is None or left > 0:
                searched, ids = self._step(client, queue)
                if not searched:
                    break
                left = None if left is None else left - len(ids)
                yield BulkResult(done=ids, cursor=queue)
        yield BulkResult()

    def _step(self, client: str, queue: str) -> tuple[int, list[str]]:
        config = self._broker.config
        outcomes = f"{config.max_results} {config.cancelled_ttl_ms} {CANCELLED_UNRUN}"
        call = SCRIPTS["purge"].call(self._broker.keys.of(queue), (MAINTAIN_AT_ONCE, "client", client, outcomes))
        _, searched, *cancelled = self._broker.redis.execute_one(call, resend=True)
        ids = [job_id.decode() for job_id in cancelled]
        for job_id in ids:
            signals.job_cancelled.send_robust(self._sender, job_id=job_id, queue=queue)
        return int(searched), ids

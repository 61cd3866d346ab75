"""Waits for the work signals of a worker's queues, and puts back those that others need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from django_rtq.broker.broker import Broker
from django_rtq.broker.messages import ClaimResult
from django_rtq.broker.redis.blocking_reader import BlockingReader
from django_rtq.exceptions import BrokerError


class WorkSignalReader(BlockingReader):
    """Takes work signals. Each is there for one idle worker: who takes it and does other work has to put it back."""

    def __init__(self, broker: Broker, queues: Sequence[str], *, on_connect: Callable[[], None]) -> None:
        self._broker = broker
        self._queues = {broker.keys.of(queue).work_signal: queue for queue in queues}
        super().__init__(broker.connection_settings, list(self._queues), role="worker-wait", on_connect=on_connect)

    @property
    def has_token(self) -> bool:
        """Whether a signal was taken since the last claim."""
        return self.token_key is not None

    def return_signal(self, fetched: ClaimResult, queues: Sequence[str]) -> None:
        """Put back the signal that was taken last, if the claim from these queues did not come to its queue."""
        key, self.token_key = self.token_key, None
        if key is not None and fetched.claimed:
            queue, last = self._queues[key], fetched.claimed[-1].queue
            if queues.index(queue) > queues.index(last):
                with suppress(BrokerError):  # the next heartbeat sets it, too
                    self._broker.return_work_signal(queue)

    def leave(self) -> None:
        """Stop waiting: leave signals to other workers, also one that has just come."""
        with suppress(BrokerError):
            if self.is_waiting and self.wait(0) and self.token_key is not None:
                self._broker.return_work_signal(self._queues[self.token_key])
        self.token_key = None
        self.close()

"""The scheduler: queues what is due, and forgets what was kept long enough. Any number of them may run."""

from __future__ import annotations

import time
from collections.abc import Sequence

from django_rtq import signals
from django_rtq.broker.broker import Broker
from django_rtq.broker.redis.blocking_reader import BlockingReader
from django_rtq.loop import Loop
from django_rtq.scheduler.dispatcher import Dispatcher

MOST_CALLS = 4  # of the script, of a hundred jobs each, in one round trip: others wait for Redis meanwhile
LOOK_SECONDS = 1.0  # between two looks whether somebody else of this process has heard of a change of the plan
LONGEST_WAIT_SECONDS = 60.0  # should a token get lost, or who took it die, heartbeats promote as well


class Scheduler(Loop):
    """Promotes due jobs of some queues. Sleeps until the next is due, and is woken by an earlier one (G7)."""

    name = "scheduler"

    def __init__(self, broker: Broker, queues: Sequence[str]) -> None:
        super().__init__()
        self._broker = broker
        self._queues = list(queues)
        self._dispatcher = Dispatcher(broker, queues)
        self._calls = 1
        self._waiter = BlockingReader(
            broker.connection_settings,
            [broker.keys.of(queue).due_signal for queue in queues],
            role="scheduler",
            block_seconds=LONGEST_WAIT_SECONDS,
        )

    def tick(self) -> float:
        """One bounded step for each queue."""
        seconds, promoted, is_trimmed = self._broker.maintenance.run(self._queues, promote_calls=self._calls)
        signals.send_promoted(Scheduler, promoted)
        # A crowd whose time has come is promoted in several steps of one round trip.
        self._calls = MOST_CALLS if seconds == 0.0 else 1
        # Last: a full server refuses it, and nothing else.
        until_slot = self._dispatcher.fire_due()
        if seconds == 0.0 or not is_trimmed:
            return 0.0
        return min(wait for wait in (seconds, until_slot, LONGEST_WAIT_SECONDS) if wait is not None)

    def wait(self, seconds: float) -> None:
        """Until the next job is due, another became due earlier, or the plan was changed."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._dispatcher.is_outdated:
            if self._waiter.wait(min(left, LOOK_SECONDS)):
                return

    def interrupt(self) -> None:
        """The blocking read ends, and with it the thread."""
        self._waiter.interrupt()

    def close(self) -> None:
        self._waiter.close()

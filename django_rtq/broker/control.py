"""Remote control: what people want of a worker while it works.

What is wanted of a job stands in its queue (`stopping`), what is wanted of a worker in an order of its own; both are
states, to be read again and again. A token beside them only wakes the supervisor, so that it looks at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from django_rtq.broker.broker import Broker
from django_rtq.broker.messages import CancelRequest, read_cancel_requests
from django_rtq.broker.scripts import SCRIPTS, Command
from django_rtq.jobs.job import StrEnum

KEPT_MS = 3_600_000  # an order, and a token; a supervisor that has not looked for so long is dead


class WorkerCommand(StrEnum):
    """What a supervisor is to do."""

    WORK = "work"
    QUIET = "quiet"  # claim nothing, and stay
    STOP = "stop"  # as at a SIGTERM


class CancelAnswer(StrEnum):
    """What became of the wish to cancel a job."""

    CANCELLED = "cancelled"  # it will not run (again)
    ASKED = "asked"  # it runs, and was asked to stop: it is cancelled when it does, unless it succeeds before


def send_command(broker: Broker, supervisor: str, order: WorkerCommand | None = None) -> None:
    """Leave an order, and wake the supervisor; without one, it looks which of its jobs are to stop."""
    commands: list[Command] = []
    if order is not None:
        commands.append(("SET", broker.keys.control(supervisor), order.value, "PX", KEPT_MS))
    token = broker.keys.control_signal(supervisor)
    commands += [("ZADD", token, 0, "look"), ("PEXPIRE", token, KEPT_MS)]
    broker.redis.execute(commands, resend=True)


def read_commands(
    broker: Broker, supervisor: str, queues: Sequence[str], workers: Sequence[str]
) -> tuple[WorkerCommand | None, list[CancelRequest]]:
    """The last order, if there is one, and the jobs of these workers that are to stop. It renews their leases, too."""
    renew = [SCRIPTS["renew"].call(broker.keys.of(queue), (broker.lease_ms, *workers)) for queue in queues]
    order, *replies = broker.redis.execute([("GET", broker.keys.control(supervisor)), *renew], resend=True)
    return WorkerCommand(order.decode()) if order else None, read_cancel_requests(replies)


def supervisor_of(broker: Broker, worker: str) -> str:
    """The supervisor of a worker; "" when it is not known (yet, or any more)."""
    found = broker.redis.execute_one(("HGET", broker.keys.worker(worker), "supervisor_name"), resend=True)
    return found.decode() if found else ""

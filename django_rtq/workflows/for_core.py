"""What the core calls: see django_rtq/extensions.py. Processes load the rest where there are workflows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.redis.commands import Command
from django_rtq.core.broker.settlement import ACK_MEMBER, NOTE_TIME, Settlement, as_bytes
from django_rtq.core.extension import Chore
from django_rtq.core.jobs.job import is_member
from django_rtq.workflows import workflow_store


def settle_members(
    broker: Broker,
    settlements: Mapping[str, Settlement],
    calls: Sequence[tuple[tuple[Settlement, Sequence[Any]], Command]],
    commands: list[Command],
) -> Callable[[list[Any]], Callable[[], bool]] | None:
    """Tell workflows which of their jobs have ended, behind the calls that settle these. None: there is no such job."""
    acks = [place for place, ((_, sent), _) in enumerate(calls) if sent and sent[0][0] == ACK_MEMBER]
    noted: dict[str, list[bytes]] = {}  # members whose runs are over, and have not succeeded
    for queue, settlement in settlements.items():
        ended = [as_bytes(report.job_id) for report in settlement.reports if report.verb not in (ACK_MEMBER, NOTE_TIME)]
        if ids := list(filter(is_member, ended)):
            noted[queue] = ids
    return workflow_store(broker).tell_settled(noted, acks, commands) if acks or noted else None


def chores(broker: Broker, queues: Sequence[str]) -> Sequence[Chore]:
    """Let workflows go on where nobody else does, and compare quiet ones with their jobs, once in a lease."""
    store, compared_at = cache(partial(workflow_store, broker)), time.monotonic()

    def sweep(replies: Sequence[Any], until: float) -> bool:
        return bool(replies[0]) and store().sweep(queues, until=until)

    def compare(replies: Sequence[Any], until: float) -> bool:
        nonlocal compared_at
        if time.monotonic() - compared_at >= broker.config.lease_seconds:
            compared_at = time.monotonic()
            if _has_workflows(broker):
                store().compare(until=until)
        return False

    return Chore("workflows", sweep, [traces_command(broker, queues)]), Chore("lost jobs of workflows", compare)


def traces_command(broker: Broker, queues: Sequence[str]) -> Command:
    """The command that says whether a sweep has anything to do."""
    home = broker.keys.of(broker.config.default_queue)
    return ("EXISTS", home.unstarted, *(broker.keys.of(queue).ended_members for queue in queues))


def _has_workflows(broker: Broker) -> bool:
    home = broker.keys.of(broker.config.default_queue)
    return bool(broker.redis.execute_one(("EXISTS", home.workflow_states, home.stuck_workflows), resend=True))


def forgetting(broker: Broker, queues: Sequence[str]) -> Callable[[], bool]:
    """What a scheduler calls to forget old workflows."""
    store = cache(partial(workflow_store, broker))
    return lambda: not _has_workflows(broker) or store().forget_old()

"""How many workflows are in which state, and which of them are blocked: for incidents and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.redis.commands import Command
from django_rtq.core.jobs.job import clock_moment
from django_rtq.workflows.store import MOST_STUCK, STATE_PLACE, STATES, scores_of

MOST_BLOCKED = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedWorkflow:
    """A workflow that waits until somebody does something about its dead jobs."""

    id: str
    name: str
    since: datetime  # by the clock of Redis


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowStates:
    """All workflows that are kept."""

    counts: Mapping[str, int] = field(default_factory=dict)  # state -> how many
    blocked: Sequence[BlockedWorkflow] = ()  # the longest first
    stuck: Sequence[BlockedWorkflow] = ()  # nobody knows how some of their jobs have ended


def workflow_commands(broker: Broker) -> list[Command]:
    """The commands for read_workflow_states()."""
    keys = broker.keys.of(broker.config.default_queue)
    key = keys.workflow_states
    counts: list[Command] = [("ZCOUNT", key, *scores_of(state)) for state in STATES]
    blocked: Command = ("ZRANGEBYSCORE", key, *scores_of("blocked"), "WITHSCORES", "LIMIT", 0, MOST_BLOCKED)
    return [*counts, blocked, ("ZRANGE", keys.stuck_workflows, 0, MOST_STUCK - 1, "WITHSCORES")]


def read_workflow_states(replies: Sequence[Any]) -> WorkflowStates:
    """What the replies to workflow_commands() say."""
    *counts, blocked, stuck = replies
    return WorkflowStates(
        counts=dict(zip(STATES, counts, strict=True)), blocked=_read(blocked, STATE_PLACE), stuck=_read(stuck, 0)
    )


def _read(members: Sequence[bytes], place: int) -> list[BlockedWorkflow]:
    flows = []
    for member, score in zip(members[::2], members[1::2], strict=True):
        workflow, _, name = member.decode(errors="replace").partition(" ")
        flows.append(BlockedWorkflow(id=workflow, name=name, since=clock_moment(int(float(score)) - place)))
    return flows

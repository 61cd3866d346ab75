"""How many workflows are in which state, and which of them are blocked: for incidents and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django_rtq.broker.broker import Broker
from django_rtq.broker.redis.commands import Command
from django_rtq.broker.workflows import STATE_PLACE
from django_rtq.jobs.job import clock_moment

STATES = ("running", "blocked", "succeeded", "failed", "cancelled")  # in the order of their places
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


def workflow_commands(broker: Broker) -> list[Command]:
    """The commands for read_workflow_states()."""
    key = broker.keys.of(broker.config.default_queue).workflow_states
    bounds = [(place * STATE_PLACE, f"({(place + 1) * STATE_PLACE}") for place in range(len(STATES))]
    counts: list[Command] = [("ZCOUNT", key, *each) for each in bounds]
    return [*counts, ("ZRANGEBYSCORE", key, *bounds[1], "WITHSCORES", "LIMIT", 0, MOST_BLOCKED)]


def read_workflow_states(replies: Sequence[Any]) -> WorkflowStates:
    """What the replies to workflow_commands() say."""
    *counts, blocked = replies
    flows = []
    for member, score in zip(blocked[::2], blocked[1::2], strict=True):
        workflow, _, name = member.decode(errors="replace").partition(" ")
        flows.append(BlockedWorkflow(id=workflow, name=name, since=clock_moment(int(float(score)) - STATE_PLACE)))
    return WorkflowStates(counts=dict(zip(STATES, counts, strict=True)), blocked=flows)

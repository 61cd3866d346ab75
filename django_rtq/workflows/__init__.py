"""Workflows: jobs that wait for others, take their results, and are looked at as one thing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django_rtq.core.broker.broker import Broker
    from django_rtq.workflows.steps.store import StepStore
    from django_rtq.workflows.store import WorkflowStore


def workflow_store(broker: Broker) -> WorkflowStore:
    """The workflows in the Redis of a broker."""
    from django_rtq.workflows.store import WorkflowStore  # with it comes redis-py

    return broker.store_of(WorkflowStore)


def step_store(broker: Broker) -> StepStore:
    """What jobs there remember of earlier runs."""
    from django_rtq.workflows.steps.store import StepStore  # few jobs have steps

    return broker.store_of(StepStore)

"""Workflows: jobs that wait for others, take their results, and are looked at as one thing."""

from django_rtq.workflows.builder import Step, Steps, workflow
from django_rtq.workflows.handle import Workflow, WorkflowProgress, WorkflowState, get_workflow

__all__ = ["Step", "Steps", "Workflow", "WorkflowProgress", "WorkflowState", "get_workflow", "workflow"]

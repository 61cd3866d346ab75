"""Declare tasks with @task and enqueue calls of them."""

from django_rtq.core.tasks.decorator import task
from django_rtq.core.tasks.task import Task

__all__ = ["Task", "task"]

"""Declare tasks with @task and enqueue calls of them."""

from django_rtq.tasks.task import Task, task

__all__ = ["Task", "task"]

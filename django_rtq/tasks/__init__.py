"""Declaring tasks and calling them."""

from django_rtq.tasks.task import Task, task

__all__ = ["Task", "task"]

"""The models of the app."""

from __future__ import annotations

from django_rtq.menu import DeadLetter, Job, Queue, RegisteredTask, Worker

__all__ = ["DeadLetter", "Job", "Queue", "RegisteredTask", "Worker"]

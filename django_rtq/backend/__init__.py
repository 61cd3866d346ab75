"""The backend for django.tasks.

TASKS = {"default": {"BACKEND": "django_rtq.backend.RTQBackend"}}
"""

from django_rtq.backend.backend import RTQBackend
from django_rtq.backend.rtq_task import RTQTask, task

__all__ = ["RTQBackend", "RTQTask", "task"]

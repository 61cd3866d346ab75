"""The backend for django.tasks: TASKS = {"default": {"BACKEND": "django_rtq.backend.RTQBackend"}}."""

from django_rtq.backend.backend import RTQBackend
from django_rtq.backend.task import RTQTask

__all__ = ["RTQBackend", "RTQTask"]

"""Django admin pages that show queues, jobs and workers, and act on them.

Nothing is imported here that needs Django's admin, which not every project has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.apps import apps

if TYPE_CHECKING:
    from django.contrib.admin import AdminSite


def register(site: AdminSite) -> None:
    """Register all pages on an admin site. Done already for Django's default site."""
    from django_rtq import models
    from django_rtq.console.admin.pages.clients import ClientAdmin
    from django_rtq.console.admin.pages.dead_letters import DeadLetterAdmin
    from django_rtq.console.admin.pages.jobs import JobAdmin
    from django_rtq.console.admin.pages.queues import QueueAdmin
    from django_rtq.console.admin.pages.schedules import ScheduleAdmin
    from django_rtq.console.admin.pages.tasks import TaskAdmin
    from django_rtq.console.admin.pages.workers import WorkerAdmin
    from django_rtq.console.admin.pages.workflows import WorkflowAdmin

    site.register(models.Queue, QueueAdmin)
    site.register(models.Job, JobAdmin)
    site.register(models.DeadLetter, DeadLetterAdmin)
    site.register(models.Client, ClientAdmin)
    site.register(models.Worker, WorkerAdmin)
    site.register(models.Workflow, WorkflowAdmin)
    site.register(models.RegisteredTask, TaskAdmin)
    site.register(models.Schedule, ScheduleAdmin)


if apps.is_installed("django.contrib.admin"):
    from django.contrib import admin

    register(admin.site)

"""Django admin pages that show queues, jobs and workers, and act on them.

Nothing is imported here that needs Django's admin, which not every project has. A page is loaded when it is asked for:
many processes serve none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.utils.functional import SimpleLazyObject
from django.utils.module_loading import import_string

from django_rtq import models

if TYPE_CHECKING:
    from django.contrib.admin import AdminSite
    from django.db.models import Model

PAGES: dict[type[Model], str] = {
    models.Queue: "queues.QueueAdmin",
    models.Job: "jobs.JobAdmin",
    models.DeadLetter: "jobs.DeadLetterAdmin",
    models.Client: "clients.ClientAdmin",
    models.Worker: "jobs.WorkerAdmin",
    models.Workflow: "workflows.WorkflowAdmin",
    models.RegisteredTask: "tasks.TaskAdmin",
    models.Schedule: "schedules.ScheduleAdmin",
}


def register(site: AdminSite) -> None:
    """Register all pages on an admin site. Done already for Django's default site."""
    for model in PAGES:
        site.register(model, _page)  # type: ignore[arg-type]  # Django calls it as a class


def _page(model: type[Model], site: AdminSite) -> Any:
    return SimpleLazyObject(lambda: import_string(f"django_rtq.console.admin.pages.{PAGES[model]}")(model, site))


if apps.is_installed("django.contrib.admin"):
    from django.contrib import admin

    register(admin.site)

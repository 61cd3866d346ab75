"""Django admin pages that show queues, jobs and workers, and act on them."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.admin import AdminSite

from django_rtq.admin.pages.clients import ClientAdmin
from django_rtq.admin.pages.dead_letters import DeadLetterAdmin
from django_rtq.admin.pages.jobs import JobAdmin
from django_rtq.admin.pages.log import LogAdmin
from django_rtq.admin.pages.queues import QueueAdmin
from django_rtq.admin.pages.schedules import ScheduleAdmin
from django_rtq.admin.pages.tasks import TaskAdmin
from django_rtq.admin.pages.workers import WorkerAdmin
from django_rtq.admin.pages.workflows import WorkflowAdmin
from django_rtq.models import Client, DeadLetter, Job, Log, Queue, RegisteredTask, Schedule, Worker, Workflow

ENTRIES = (
    (Queue, QueueAdmin),
    (Job, JobAdmin),
    (DeadLetter, DeadLetterAdmin),
    (Client, ClientAdmin),
    (Worker, WorkerAdmin),
    (Workflow, WorkflowAdmin),
    (RegisteredTask, TaskAdmin),
    (Log, LogAdmin),
)


def register(site: AdminSite) -> None:
    """Register all pages on an admin site. Done already for Django's default site."""
    for model, model_admin in ENTRIES:
        site.register(model, model_admin)
    site.register(Schedule, ScheduleAdmin)


register(admin.site)

"""Pages in Django's admin: what the queues are like, and hands to act on it."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.admin import AdminSite

from django_rtq.admin.pages.dead_letters import DeadLetterAdmin
from django_rtq.admin.pages.jobs import JobAdmin
from django_rtq.admin.pages.queues import QueueAdmin
from django_rtq.admin.pages.schedules import ScheduleAdmin
from django_rtq.admin.pages.tasks import TaskAdmin
from django_rtq.admin.pages.workers import WorkerAdmin
from django_rtq.models import DeadLetter, Job, Queue, RegisteredTask, Schedule, Worker

ENTRIES = (
    (Queue, QueueAdmin),
    (Job, JobAdmin),
    (DeadLetter, DeadLetterAdmin),
    (Worker, WorkerAdmin),
    (RegisteredTask, TaskAdmin),
)


def register(site: AdminSite) -> None:
    """Put all pages on an admin site; on Django's own they are already."""
    for model, model_admin in ENTRIES:
        site.register(model, model_admin)
    site.register(Schedule, ScheduleAdmin)


register(admin.site)

"""The entries of the admin's menu: models without a table, for what lies in Redis.

They give the pages their content types, their permissions and their place in the list of apps. Nothing is ever
read or written through them.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _


class EmptyManager(models.Manager[Any]):
    """Finds nothing and never asks the database: there is no table (`dumpdata` would fail for the whole project)."""

    def get_queryset(self) -> models.QuerySet[Any]:
        """Always empty."""
        nothing: models.QuerySet[Any] = super().get_queryset().none()
        return nothing


class AdminEntry(models.Model):
    """What an entry of the menu stands for, by its name."""

    name = models.CharField(primary_key=True, max_length=255)

    objects = EmptyManager()

    class Meta:
        abstract = True
        managed = False
        default_permissions: ClassVar[tuple[str, ...]] = ()
        base_manager_name = "objects"

    def __str__(self) -> str:
        return self.name


class Queue(AdminEntry):
    """A queue. Who may do what on all pages are permissions of this entry."""

    class Meta(AdminEntry.Meta):
        verbose_name = _("queue")
        verbose_name_plural = _("queues")
        default_permissions = ("view",)
        permissions = [
            ("requeue_job", "Can requeue dead letters and run waiting jobs now"),
            ("cancel_job", "Can cancel and stop jobs"),
            ("discard_job", "Can discard dead letters"),
            ("pause_queue", "Can pause and resume queues"),
            ("purge_queue", "Can purge queues"),
            ("enqueue_job", "Can enqueue jobs by hand"),
            ("edit_job", "Can change the arguments of jobs"),
            ("control_worker", "Can quiet, wake and stop workers"),
        ]


class Job(AdminEntry):
    """A job; the entry opens the list of those that run."""

    class Meta(AdminEntry.Meta):
        verbose_name = _("job")
        verbose_name_plural = _("running jobs")


class DeadLetter(AdminEntry):
    """A job that will not run again by itself."""

    class Meta(AdminEntry.Meta):
        verbose_name = _("dead letter")
        verbose_name_plural = _("dead letters")


class Worker(AdminEntry):
    """A process that runs jobs."""

    class Meta(AdminEntry.Meta):
        verbose_name = _("worker")
        verbose_name_plural = _("workers")


class RegisteredTask(AdminEntry):
    """A task that this process knows."""

    class Meta(AdminEntry.Meta):
        verbose_name = _("task")
        verbose_name_plural = _("tasks")

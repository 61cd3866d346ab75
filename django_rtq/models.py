"""Schedule, rows of jobs, and one model without a table for each entry of the admin menu.

Schedules created in the admin are rows in the database. Jobs, queues and workers exist in Redis only: their models
give the admin pages a content type, permissions, a URL and an entry in the app list, and are never queried. Their
names are short because Django builds URLs, names of URLs and permissions from them, which people write down. Why models
at all: D40.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import DatabaseError, connections, models, router, transaction
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.task_backends import place_of, places
from django_rtq.core.conf.config import get_config
from django_rtq.core.tasks import registry
from django_rtq.core.tasks.calls import client_name
from django_rtq.core.tasks.options.kinds import QUEUE
from django_rtq.core.tasks.task import check_call
from django_rtq.core.validation import MAX_CAP, MAX_EXPRESSION_LENGTH, MAX_MISSED, MAX_NAME_LENGTH
from django_rtq.exceptions import BrokerError, InvalidTask, RTQError, TaskNotFound

if TYPE_CHECKING:
    from django_rtq.core.scheduler.registry import ScheduledTask

logger = logging.getLogger("django_rtq")


class Missed(models.TextChoices):
    ONCE = "once", _("run the latest one once")
    SKIP = "skip", _("skip those older than a minute")
    ALL = "all", _("run all of them, up to the maximum")


class Overlap(models.TextChoices):
    ALLOW = "allow", _("start the next run anyway")
    SKIP = "skip", _("skip the next run")


class Schedule(models.Model):
    """A periodic task: when to enqueue it, and with which arguments. Created by a person.

    Schedulers read a copy in Redis, which is updated when a row is saved or deleted. QuerySet.update() and
    bulk_create() do not send signals: call sync_schedules() after them.
    """

    name = models.CharField(_("name"), max_length=MAX_NAME_LENGTH, unique=True)
    task = models.CharField(
        _("task"), max_length=255, help_text=_("Full name of the task, such as shop.tasks.send_mail.")
    )
    args = models.JSONField(_("arguments"), default=list, blank=True, help_text=_("A JSON list, such as [7, 42]."))
    kwargs = models.JSONField(
        _("keyword arguments"), default=dict, blank=True, help_text=_('A JSON object, such as {"invoice_id": 42}.')
    )
    cron = models.CharField(
        _("cron"),
        max_length=MAX_EXPRESSION_LENGTH,
        blank=True,
        help_text=_("Minute, hour, day of month, month, day of week: 0 5 * * mon-fri. Or @hourly, @daily, …"),
    )
    every = models.FloatField(_("interval in seconds"), null=True, blank=True, help_text=_("Use this instead of cron."))
    tz = models.CharField(
        _("time zone"), max_length=100, blank=True, help_text=_("Time zone of the cron expression. Default: TIME_ZONE.")
    )
    queue = models.CharField(_("queue"), max_length=100, blank=True, help_text=_("Default: as declared by the task."))
    client = models.CharField(_("client"), max_length=200, blank=True, help_text=_("Default: as declared by the task."))
    missed = models.CharField(_("missed runs"), max_length=10, choices=Missed, default=Missed.ONCE)
    cap = models.PositiveSmallIntegerField(
        _("maximum of missed runs"),
        default=MAX_MISSED,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_CAP)],
        help_text=_("If all missed runs are run: how many of the latest."),
    )
    overlap = models.CharField(
        _("if the previous job is unfinished"), max_length=10, choices=Overlap, default=Overlap.ALLOW
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    enabled_at = models.DateTimeField(_("enabled since"), null=True, blank=True, editable=False)

    class Meta:
        ordering = ("name",)
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")

    def __str__(self) -> str:
        return self.name

    def save(self, **options: Any) -> None:
        """Validates enabled schedules, so that an invalid one is never active. Raises ValidationError."""
        from django_rtq.databases.clocks import database_now  # processes that only enqueue do not come here

        self.enabled_at = (self.enabled_at or database_now()) if self.enabled else None
        if options.get("update_fields") is not None:
            options["update_fields"] = {*options["update_fields"], "enabled_at"}
        if self.enabled:
            self.full_clean()
        super().save(**options)

    def clean(self) -> None:
        """Check all fields together. Raises ValidationError with a message for each invalid field."""
        self.args = [] if self.args is None else self.args
        self.kwargs = {} if self.kwargs is None else self.kwargs
        errors: dict[str, str] = {}
        for field, check in self._checks():
            try:
                check()
            except (TaskNotFound, InvalidTask, TypeError) as error:
                errors.setdefault(field, str(error))
        if errors:
            raise ValidationError(errors)

    def switch(self, *, on: bool) -> None:
        """Enable or disable it. Runs that fall into the disabled time are not caught up. Raises ValidationError."""
        self.enabled = on
        self.save(update_fields=["enabled"])

    def as_row(self) -> dict[str, Any]:
        """The fields as they are stored in Redis."""
        fields = ("task", "args", "kwargs", "cron", "every", "tz", "queue", "client", "missed", "cap", "overlap")
        since = self.enabled_at.isoformat() if self.enabled_at else ""
        return {name: getattr(self, name) for name in fields} | {"enabled": self.enabled, "since": since}

    def entry(self) -> ScheduledTask:
        """The schedule as schedulers read it. Raises TaskNotFound, InvalidTask, TypeError or ValueError if invalid."""
        from django_rtq.core.scheduler.registry import schedule_from_row

        return schedule_from_row(self.name, self.as_row())

    # -- validation

    def _checks(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """Pairs of a field and a function that raises if its value is invalid."""
        from django_rtq.core.schedules import cron, every  # processes that only enqueue do not come here

        yield "name", self._check_name
        yield "task", lambda: registry.get_public_task(self.task)
        yield "queue", lambda: QUEUE.checked("queue", self.queue, InvalidTask)
        yield "client", lambda: client_name("client", self.client)
        yield ("every" if self.cron else "cron"), self._check_either
        if self.cron:
            yield "cron", lambda: cron(self.cron)
        if self.every is not None:
            yield "every", lambda: every(seconds=self.every or 0)
        yield "tz", lambda: cron("* * * * *", tz=self.tz)
        yield "args", lambda: every(seconds=1, args=self.args)
        yield "kwargs", lambda: every(seconds=1, kwargs=self.kwargs)
        if self.task in registry.all_tasks() and isinstance(self.args, list) and isinstance(self.kwargs, dict):
            yield "args", lambda: check_call(registry.get_task(self.task), self.args, self.kwargs)

    def _check_name(self) -> None:
        from django_rtq.core.scheduler.registry import declared_schedules
        from django_rtq.core.schedules import every

        every(seconds=1, name=self.name)
        source = {entry.name: entry.source for entry in declared_schedules(get_config())}.get(self.name)
        if source:
            messages = {
                "code": gettext("The code already declares a schedule with this name. Choose another name."),
                "settings": gettext("The settings already declare a schedule with this name. Choose another name."),
            }
            raise InvalidTask(messages[source])

    def _check_either(self) -> None:
        if bool(self.cron) == (self.every is not None):
            raise InvalidTask(gettext("Enter either a cron expression or an interval in seconds, not both."))


class OutboxJob(models.Model):
    """A job that is committed and not known to be in Redis yet: see databases/outbox.py."""

    job_id = models.CharField(primary_key=True, max_length=255)
    backend = models.CharField(max_length=255, blank=True, default="")  # in TASKS; "": RTQ["REDIS"]
    queue = models.CharField(max_length=100)
    task = models.CharField(max_length=255)
    job = models.TextField()  # JSON: the fields of a NewJob, or a NewWorkflow
    format = models.PositiveSmallIntegerField(default=1)  # of `job`
    due_at = models.DateTimeField(db_index=True)  # when relays may take it
    attempts = models.PositiveIntegerField(default=0)  # of relays, that were refused
    error = models.TextField(blank=True, default="")  # of the last one

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.job_id


class CommittedJob(models.Model):
    """A job of a task with exactly_once that has committed: see databases/exactly_once.py."""

    job_id = models.CharField(primary_key=True, max_length=255)
    queue = models.CharField(max_length=100)
    committed_at = models.DateTimeField(db_index=True)
    result = models.TextField(null=True)  # noqa: DJ001 - JSON; "": not kept; NULL until the function has returned

    class Meta:
        db_table = "django_rtq_committedjob"
        default_permissions = ()

    def __str__(self) -> str:
        return self.job_id


def sync_schedules(backend: str | None = None, *, is_dry_run: bool = False) -> int:
    """Copy all rows to Redis, where schedulers read them. Returns the number of changed rows. Raises BrokerError.

    Each row goes to the Redis of its task; only those of one backend in TASKS, if it is given. A dry run only counts.
    """
    from django_rtq.databases.schedule_rows import sync_rows

    rows = Schedule.objects.using(router.db_for_write(Schedule))
    names = places() if backend is None else [place_of(backend)]
    changed, failed = 0, None
    for place in names:
        try:
            changed += sync_rows(lambda: {row.name: row.as_row() for row in rows.all()}, place, is_dry_run=is_dry_run)
        except BrokerError as error:  # the others get theirs
            failed = failed or error
    if failed is not None:
        raise failed
    return changed


def copy_schedules(backend: str = "") -> None:
    """Copy the schedules from the database to Redis before the schedulers start, which do not use the database.

    Errors are only logged: running jobs must not need a database. All connections are closed afterwards.
    """
    try:
        sync_schedules(backend)
    except (DatabaseError, ImproperlyConfigured, BrokerError) as error:
        from django_rtq.databases.migrating import with_advice

        text = with_advice(error, router.db_for_write(Schedule))
        logger.info("could not copy the schedules from the database to Redis: %s", text)
    finally:
        connections.close_all()
        get_broker(backend).close()


@receiver([post_save, post_delete], sender=Schedule)
def sync_on_commit(*, using: str, **kwargs: object) -> None:
    """Update the copy in Redis after the transaction commits."""
    transaction.on_commit(_mirror_or_log, using=using)


def _mirror_or_log() -> None:
    try:
        sync_schedules()
    except RTQError as error:  # the commit must not fail because of Redis or its settings
        logger.error("schedules were saved but not copied to Redis; run rtq_schedule sync to retry: %s", error)


class EmptyManager(models.Manager[Any]):
    """Returns no rows and sends no query: without a table, `dumpdata` would fail for the whole project."""

    def get_queryset(self) -> models.QuerySet[Any]:
        """Always empty."""
        nothing: models.QuerySet[Any] = super().get_queryset().none()
        return nothing


class AdminEntry(models.Model):
    """Base of the models without a table. `name` identifies the object in the admin log."""

    name = models.CharField(primary_key=True, max_length=255)

    objects = EmptyManager()

    class Meta:
        abstract = True
        managed = False
        default_permissions: ClassVar[tuple[str, ...]] = ()
        base_manager_name = "objects"

    def __str__(self) -> str:
        return self.name


def leave_out_of_shell() -> None:
    """`manage.py shell` imports models that name a module: ours would hide a Client or a Job of an app behind us."""
    for model in AdminEntry.__subclasses__():
        model.__module__ = ""


class Queue(AdminEntry):
    """A queue. Holds the permissions of all pages."""

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
            ("pause_task", "Can pause and resume tasks"),
            ("pause_client", "Can pause and resume clients"),
            ("change_limits", "Can change the limits of queues and clients"),
        ]


def _entry(name: str, one: Any, many: Any) -> type[AdminEntry]:
    """A model for a page whose permissions are those of Queue."""
    meta = type("Meta", (AdminEntry.Meta,), {"verbose_name": one, "verbose_name_plural": many})
    return type(name, (AdminEntry,), {"Meta": meta, "__module__": __name__})


Job = _entry("Job", _("job"), _("running jobs"))
DeadLetter = _entry("DeadLetter", _("dead letter"), _("dead letters"))
Worker = _entry("Worker", _("worker"), _("workers"))
Client = _entry("Client", _("client"), _("clients"))
Workflow = _entry("Workflow", _("workflow"), _("workflows"))
RegisteredTask = _entry("RegisteredTask", _("task"), _("tasks"))

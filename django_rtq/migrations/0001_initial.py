import django.core.validators
from django.db import migrations, models

PERMISSIONS = [
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
#: Entries of the admin menu, whose tables do not exist: name, in words, and of several.
ENTRIES = [
    ("Client", "client", "clients"),
    ("DeadLetter", "dead letter", "dead letters"),
    ("Job", "job", "running jobs"),
    ("Queue", "queue", "queues"),
    ("RegisteredTask", "task", "tasks"),
    ("Worker", "worker", "workers"),
    ("Workflow", "workflow", "workflows"),
]


def entry(name, verbose_name, verbose_name_plural):
    options = {
        "verbose_name": verbose_name,
        "verbose_name_plural": verbose_name_plural,
        "managed": False,
        "default_permissions": ("view",) if name == "Queue" else (),
        "base_manager_name": "objects",
    }
    if name == "Queue":
        options["permissions"] = PERMISSIONS
    fields = [("name", models.CharField(max_length=255, primary_key=True, serialize=False))]
    return migrations.CreateModel(name=name, fields=fields, options=options)


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        *(entry(*words) for words in ENTRIES),
        migrations.CreateModel(
            name="Schedule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=200, unique=True, verbose_name="name")),
                (
                    "task",
                    models.CharField(
                        help_text="Full name of the task, such as shop.tasks.send_mail.",
                        max_length=255,
                        verbose_name="task",
                    ),
                ),
                (
                    "args",
                    models.JSONField(
                        blank=True, default=list, help_text="A JSON list, such as [7, 42].", verbose_name="arguments"
                    ),
                ),
                (
                    "kwargs",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text='A JSON object, such as {"invoice_id": 42}.',
                        verbose_name="keyword arguments",
                    ),
                ),
                (
                    "cron",
                    models.CharField(
                        blank=True,
                        help_text="Minute, hour, day of month, month, day of week: 0 5 * * mon-fri. Or @hourly, @daily, …",
                        max_length=200,
                        verbose_name="cron",
                    ),
                ),
                (
                    "every",
                    models.FloatField(
                        blank=True, help_text="Use this instead of cron.", null=True, verbose_name="interval in seconds"
                    ),
                ),
                (
                    "tz",
                    models.CharField(
                        blank=True,
                        help_text="Time zone of the cron expression. Default: TIME_ZONE.",
                        max_length=100,
                        verbose_name="time zone",
                    ),
                ),
                (
                    "queue",
                    models.CharField(
                        blank=True, help_text="Default: as declared by the task.", max_length=100, verbose_name="queue"
                    ),
                ),
                (
                    "client",
                    models.CharField(
                        blank=True, help_text="Default: as declared by the task.", max_length=200, verbose_name="client"
                    ),
                ),
                (
                    "missed",
                    models.CharField(
                        choices=[
                            ("once", "run the latest one once"),
                            ("skip", "skip those older than a minute"),
                            ("all", "run all of them, up to the maximum"),
                        ],
                        default="once",
                        max_length=10,
                        verbose_name="missed runs",
                    ),
                ),
                (
                    "cap",
                    models.PositiveSmallIntegerField(
                        default=100,
                        help_text="If all missed runs are run: how many of the latest.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000),
                        ],
                        verbose_name="maximum of missed runs",
                    ),
                ),
                (
                    "overlap",
                    models.CharField(
                        choices=[("allow", "start the next run anyway"), ("skip", "skip the next run")],
                        default="allow",
                        max_length=10,
                        verbose_name="if the previous job is unfinished",
                    ),
                ),
                ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                (
                    "enabled_at",
                    models.DateTimeField(blank=True, editable=False, null=True, verbose_name="enabled since"),
                ),
            ],
            options={
                "verbose_name": "schedule",
                "verbose_name_plural": "schedules",
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="CommittedJob",
            fields=[
                ("job_id", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("queue", models.CharField(max_length=100)),
                ("committed_at", models.DateTimeField(db_index=True)),
                ("result", models.TextField(null=True)),
            ],
            options={
                "db_table": "django_rtq_committedjob",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="OutboxJob",
            fields=[
                ("job_id", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("backend", models.CharField(blank=True, default="", max_length=255)),
                ("queue", models.CharField(max_length=100)),
                ("task", models.CharField(max_length=255)),
                ("job", models.TextField()),
                ("due_at", models.DateTimeField(db_index=True)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("error", models.TextField(blank=True, default="")),
                ("format", models.PositiveSmallIntegerField(default=1)),
            ],
            options={
                "default_permissions": (),
            },
        ),
    ]

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="DeadLetter",
            fields=[
                ("name", models.CharField(max_length=255, primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "dead letter",
                "verbose_name_plural": "dead letters",
                "abstract": False,
                "managed": False,
                "default_permissions": (),
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                ("name", models.CharField(max_length=255, primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "job",
                "verbose_name_plural": "running jobs",
                "abstract": False,
                "managed": False,
                "default_permissions": (),
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="Queue",
            fields=[
                ("name", models.CharField(max_length=255, primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "queue",
                "verbose_name_plural": "queues",
                "permissions": [
                    ("requeue_job", "Can requeue dead letters and run waiting jobs now"),
                    ("cancel_job", "Can cancel and stop jobs"),
                    ("discard_job", "Can discard dead letters"),
                    ("pause_queue", "Can pause and resume queues"),
                    ("purge_queue", "Can purge queues"),
                    ("enqueue_job", "Can enqueue jobs by hand"),
                    ("edit_job", "Can change the arguments of jobs"),
                    ("control_worker", "Can quiet, wake and stop workers"),
                ],
                "abstract": False,
                "managed": False,
                "default_permissions": ("view",),
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="RegisteredTask",
            fields=[
                ("name", models.CharField(max_length=255, primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "task",
                "verbose_name_plural": "tasks",
                "abstract": False,
                "managed": False,
                "default_permissions": (),
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                ("name", models.CharField(max_length=255, primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "worker",
                "verbose_name_plural": "workers",
                "abstract": False,
                "managed": False,
                "default_permissions": (),
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="Schedule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=200, unique=True, verbose_name="name")),
                (
                    "task",
                    models.CharField(help_text="The full name of the function.", max_length=255, verbose_name="task"),
                ),
                (
                    "args",
                    models.JSONField(blank=True, default=list, help_text="A list in JSON.", verbose_name="arguments"),
                ),
                (
                    "kwargs",
                    models.JSONField(
                        blank=True, default=dict, help_text="An object in JSON.", verbose_name="keyword arguments"
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
                        blank=True, help_text="Instead of cron.", null=True, verbose_name="every … seconds"
                    ),
                ),
                (
                    "tz",
                    models.CharField(
                        blank=True,
                        help_text="Of the cron expression; TIME_ZONE if empty.",
                        max_length=100,
                        verbose_name="time zone",
                    ),
                ),
                (
                    "queue",
                    models.CharField(
                        blank=True, help_text="That of the task if empty.", max_length=100, verbose_name="queue"
                    ),
                ),
                (
                    "client",
                    models.CharField(
                        blank=True, help_text="That of the task if empty.", max_length=200, verbose_name="client"
                    ),
                ),
                (
                    "missed",
                    models.CharField(
                        choices=[
                            ("once", "the newest of them fires once"),
                            ("skip", "they are skipped, if older than a minute"),
                            ("all", "all fire, up to a number"),
                        ],
                        default="once",
                        max_length=10,
                        verbose_name="slots that were missed",
                    ),
                ),
                (
                    "cap",
                    models.PositiveSmallIntegerField(
                        default=100,
                        help_text="If all that were missed fire: the newest so many.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000),
                        ],
                        verbose_name="at most",
                    ),
                ),
                (
                    "overlap",
                    models.CharField(
                        choices=[("allow", "the next one starts all the same"), ("skip", "the next slot is skipped")],
                        default="allow",
                        max_length=10,
                        verbose_name="while the last job lives",
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
    ]

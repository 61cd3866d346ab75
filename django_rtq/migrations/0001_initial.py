# The permissions and content types of the pages: no table is made.

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
    ]

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("django_rtq", "0003_outbox"),
    ]

    operations = [
        migrations.AddField(
            model_name="committedjob",
            name="result",
            field=models.TextField(null=True),
        ),
        migrations.AddField(
            model_name="outboxjob",
            name="format",
            field=models.PositiveSmallIntegerField(default=1),
        ),
    ]

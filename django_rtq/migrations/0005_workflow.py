from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("django_rtq", "0004_results_and_formats"),
    ]

    operations = [
        migrations.DeleteModel(name="Log"),
        migrations.CreateModel(
            name="Workflow",
            fields=[
                ("name", models.CharField(max_length=255, primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "workflow",
                "verbose_name_plural": "workflows",
                "abstract": False,
                "managed": False,
                "default_permissions": (),
                "base_manager_name": "objects",
            },
        ),
    ]

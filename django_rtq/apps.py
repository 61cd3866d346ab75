"""The app configuration: imports the task modules of a project at startup."""

import sys
from importlib import import_module
from typing import Any

from django.apps import AppConfig
from django.core import checks as django_checks
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _

from django_rtq.core import logs
from django_rtq.core.checks import (
    check_commits,
    check_databases,
    check_email,
    check_middleware,
    check_schedules,
    check_server,
    check_settings,
    check_tables,
)
from django_rtq.core.conf.config import has_celery_stand_in, task_modules, uses_task_backend


class RTQConfig(AppConfig):
    """INSTALLED_APPS += ["django_rtq"]"""

    name = "django_rtq"
    verbose_name = _("Redis task queues")
    default_auto_field = "django.db.models.BigAutoField"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if has_celery_stand_in():  # before other apps import their models, which may import their tasks
            import_module("django_rtq.compat.celery").stand_in()

    def ready(self) -> None:
        """Does not connect to Redis: `migrate` and `collectstatic` must work without it."""
        logs.connect_operator_events()
        django_checks.register(check_settings, "rtq")
        django_checks.register(check_server, "rtq", deploy=True)
        django_checks.register(check_databases, "rtq", deploy=True)
        django_checks.register(check_schedules, "rtq")
        django_checks.register(check_middleware, "rtq")
        django_checks.register(check_email, "rtq")
        django_checks.register(check_commits, "rtq", deploy=True)
        django_checks.register(check_tables, django_checks.Tags.database)
        if uses_task_backend():
            import_module("django_rtq.backend")  # for the tasks of django.tasks in modules that are not imported here
        autodiscover_modules(*task_modules())
        if sys.argv[1:2] == ["shell"]:
            import_module("django_rtq.models").leave_out_of_shell()
        if "django.core.wsgi" in sys.modules or "django.core.asgi" in sys.modules:
            import_module("django_rtq.core.broker.broker")  # no request of this process waits for imports

"""The app configuration: imports the task modules of a project at startup."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from django.apps import AppConfig
from django.core import checks as django_checks
from django.utils.module_loading import autodiscover_modules, import_string
from django.utils.translation import gettext_lazy as _

from django_rtq.core.conf.config import has_celery_stand_in, task_modules, uses_task_backend
from django_rtq.core.signals import connect_operator_events


def _when_run(path: str) -> Callable[..., Any]:
    """A check that is imported when it runs: few processes do that."""

    def check(**options: Any) -> Any:
        return import_string(path)(**options)

    return check


CHECKS = {
    name: _when_run(f"django_rtq.core.checks.check_{name}")
    for name in ("settings", "declarations", "server", "databases", "commits")
}
IN_DEPLOY = ("server", "databases", "commits")
CHECK_OF_TABLES = _when_run("django_rtq.core.checks.check_tables")


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
        connect_operator_events()
        for name, check in CHECKS.items():
            django_checks.register(check, "rtq", deploy=name in IN_DEPLOY)
        django_checks.register(CHECK_OF_TABLES, django_checks.Tags.database)
        if uses_task_backend():
            import_module("django_rtq.backend")  # for the tasks of django.tasks in modules that are not imported here
        autodiscover_modules(*task_modules())
        if sys.argv[1:2] == ["shell"]:
            import_module("django_rtq.models").leave_out_of_shell()
        if "django.core.wsgi" in sys.modules or "django.core.asgi" in sys.modules:
            import_module("django_rtq.core.broker.broker")  # no request of this process waits for imports

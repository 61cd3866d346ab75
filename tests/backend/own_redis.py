"""Settings for a backend of TASKS with a Redis of its own."""

from contextlib import contextmanager

from django.test import override_settings

from django_rtq.core.broker.brokers import get_broker

BACKEND = "django_rtq.backend.RTQBackend"


def tasks_setting(**options):
    """TASKS with "reports", whose jobs are elsewhere."""
    return {
        "default": {"BACKEND": BACKEND, "QUEUES": []},
        "reports": {"BACKEND": BACKEND, "QUEUES": ["default", "reports"], "OPTIONS": options},
    }


@contextmanager
def reports_in(**options):
    """A block in which TASKS has "reports"."""
    with override_settings(TASKS=tasks_setting(**options)):
        yield
        get_broker("reports").close()

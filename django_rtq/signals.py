"""Django signals about jobs. Sent with send_robust, in the process where it happens."""

from django_rtq.core.signals import *  # noqa: F403

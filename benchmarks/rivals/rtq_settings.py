"""Settings for django_rtq among its rivals."""

from benchmarks.settings import *  # noqa: F403
from benchmarks.settings import RTQ

RTQ = {**RTQ, "TASK_MODULES": ["rivals.django_rtq"]}

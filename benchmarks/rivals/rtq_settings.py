"""Settings for django_rtq among its rivals."""

import json
import os

from benchmarks.settings import *  # noqa: F403
from benchmarks.settings import DATABASES, RTQ

RTQ = {**RTQ, "TASK_MODULES": ["rivals.django_rtq"]}
if "RTQ_BENCH_DATABASE" in os.environ:
    DATABASES = {"default": json.loads(os.environ["RTQ_BENCH_DATABASE"])}

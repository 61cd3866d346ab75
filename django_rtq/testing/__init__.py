"""Jobs in the tests of projects: collected, run at once, or from a private Redis.

Import it in tests only.
"""

from django_rtq.testing.captured import CapturedJobs, captured
from django_rtq.testing.drain import adrain, drain
from django_rtq.testing.eager import EagerJobs, eager
from django_rtq.testing.jobs import CapturedJob, FinishedJob
from django_rtq.testing.mixins import CapturedMixin, DrainMixin, EagerMixin
from django_rtq.testing.private_redis import private_redis

__all__ = [
    "CapturedJob",
    "CapturedJobs",
    "CapturedMixin",
    "DrainMixin",
    "EagerJobs",
    "EagerMixin",
    "FinishedJob",
    "adrain",
    "captured",
    "drain",
    "eager",
    "private_redis",
]

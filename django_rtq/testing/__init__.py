"""For the tests of projects: collect jobs, run them at once, or run them from a private Redis.

Import it in tests only.
"""

from django_rtq.testing.captured import CapturedJobs, captured
from django_rtq.testing.captured_job import CapturedJob

__all__ = ["CapturedJob", "CapturedJobs", "captured"]

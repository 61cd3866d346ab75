"""Log lines, Prometheus, Sentry, OpenTelemetry.

What needs a package that may be missing is a module of its own.
"""

from django_rtq.monitoring.log_records import JobLogFilter, add_job_fields

__all__ = ["JobLogFilter", "add_job_fields"]

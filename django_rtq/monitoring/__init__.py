"""Log lines, Prometheus, Sentry, OpenTelemetry. Here: log lines get the fields of the job that wrote them.

What needs a package that may be missing is a module of its own.
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any

from django_rtq.core.jobs.context import about_current_job
from django_rtq.core.jobs.job import LOG_FIELDS

__all__ = ["JobLogFilter", "add_job_fields"]


class JobLogFilter(logging.Filter):
    """Sets `job_id`, `task`, `queue`, `client` and `attempt` on log records.

    They are those of the job that runs in this thread or coroutine. A record that has one of them already, such as our
    own lines about other jobs, keeps what it has. `default` is for fields without a value. Attach it to handlers: a
    logger does not filter the records of the loggers below it.
    """

    def __init__(self, default: Any = "-") -> None:
        super().__init__()
        self._default = default

    def filter(self, record: logging.LogRecord) -> bool:
        """Accepts all records."""
        fields = vars(record)
        current = {} if _names_a_job(fields) else about_current_job()
        for name in LOG_FIELDS:
            fields.setdefault(name, current.get(name, self._default))
        return True


def add_job_fields(logger: Any, method_name: str, event_dict: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A processor for structlog: adds the fields of the job that runs in this thread or coroutine.

    It adds nothing outside a job, and leaves fields that the event has as they are.
    """
    if not _names_a_job(event_dict):
        for name, value in about_current_job().items():
            event_dict.setdefault(name, value)
    return event_dict


def _names_a_job(fields: MutableMapping[str, Any]) -> bool:
    return "job_id" in fields or "job_ids" in fields

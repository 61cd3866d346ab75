"""Language and time zone of a job: those that were active where it was enqueued."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.utils import timezone, translation
from django.utils.decorators import sync_and_async_middleware

if TYPE_CHECKING:
    from django_rtq.jobs.job import Job


class LanguageMiddleware:
    """Headers `language` and `timezone`. A job without them has the language and time zone of the settings."""

    @sync_and_async_middleware
    def enqueue(self, enqueue: Callable[..., Any]) -> Callable[..., Any]:
        """Set the headers, unless the call has them."""

        def set_headers(call: Any) -> Any:
            if language := translation.get_language():
                call.headers.setdefault("language", language)
            call.headers.setdefault("timezone", timezone.get_current_timezone_name())
            return enqueue(call)

        return set_headers

    @sync_and_async_middleware
    def run(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """Activate them. Each job has a context of its own, so nothing has to be restored."""

        def activate(job: Job) -> Any:
            if language := job.headers.get("language"):
                translation.activate(str(language))
            if zone := job.headers.get("timezone"):
                _activate_zone(str(zone))
            return run(job)

        return activate


def _activate_zone(name: str) -> None:
    """An offset such as "UTC+02:00" has no name that could be looked up: then the zone stays as it is."""
    try:
        timezone.activate(ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        timezone.deactivate()

"""The options of Celery's apply_async(), as those of using()."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypedDict

from django_rtq.core.clocks import utc_now
from django_rtq.exceptions import InvalidTask


class CeleryOptions(TypedDict, total=False):
    """Options of Celery's apply_async() that have a counterpart."""

    countdown: float | None
    eta: datetime | None
    expires: float | timedelta | datetime | None
    queue: str | None
    priority: int | None
    time_limit: float | None
    headers: Mapping[str, Any] | None


_NAMES = {"queue": "queue_name", "priority": "priority", "time_limit": "time_limit", "headers": "headers"}

NAMES = CeleryOptions.__optional_keys__


def using_options(task: str, options: CeleryOptions) -> dict[str, Any]:
    """The options for using(), of those in NAMES. Raises InvalidTask."""
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if "countdown" in given and "eta" in given:
        raise InvalidTask(f"{task}: apply_async() takes countdown or eta, not both.")
    changed: dict[str, Any] = {_NAMES[name]: value for name, value in given.items() if name in _NAMES}
    run_after = given.get("countdown", given.get("eta"))
    if run_after is not None:
        changed["run_after"] = run_after
    if "expires" in given:
        changed["expires"] = _expires(given["expires"], is_delayed=run_after is not None)
    return changed


def _expires(value: Any, *, is_delayed: bool) -> Any:
    """Celery counts from now, and we count from the moment when the job is ready."""
    if not is_delayed or isinstance(value, datetime | bool):
        return value
    return utc_now() + (value if isinstance(value, timedelta) else timedelta(seconds=value))

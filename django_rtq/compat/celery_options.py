"""The options of Celery's apply_async(), as those of using()."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django_rtq.core.tasks.options.types import CeleryOptions
from django_rtq.core.tasks.task import check_names
from django_rtq.databases.clocks import utc_now
from django_rtq.exceptions import InvalidTask

_NAMES = {"queue": "queue_name", "priority": "priority", "time_limit": "time_limit", "headers": "headers"}


def checked_options(task: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of apply_async() for using(). Raises InvalidTask."""
    check_names(f"{task}: apply_async()", options, CeleryOptions.__optional_keys__)
    given = {name: value for name, value in options.items() if value is not None}
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

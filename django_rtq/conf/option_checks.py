"""Checks of options that need no other option. They raise ConfigurationError."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from django_rtq.conf.queue_options import is_queue_name
from django_rtq.exceptions import ConfigurationError


def check_names(prefix: Any, default_queue: Any, modules: Any) -> None:
    """Check PREFIX, DEFAULT_QUEUE and TASK_MODULES."""
    if not isinstance(prefix, str) or not prefix or set(prefix) & set("{}:*? \n"):
        raise ConfigurationError(f'RTQ["PREFIX"] is {prefix!r}, but has to be a word without {{}}:*? or spaces.')
    if not is_queue_name(default_queue):
        raise ConfigurationError(
            f'RTQ["DEFAULT_QUEUE"] is {default_queue!r}, but has to be 1 to 100 of the letters A-Z and a-z, '
            "digits, '.', '_' and '-'."
        )
    if not are_names(modules):
        raise ConfigurationError(f'RTQ["TASK_MODULES"] is {modules!r}, but has to be a list of names, like ["tasks"].')


def check_schedules(schedules: Any) -> None:
    """Check that SCHEDULES has the form of schedules. Their options are checked when they are read."""
    if not isinstance(schedules, Mapping) or not all(
        isinstance(name, str) and name and isinstance(options, Mapping) for name, options in schedules.items()
    ):
        raise ConfigurationError(
            'RTQ["SCHEDULES"] has to be a dictionary of names and options, like '
            '{"report": {"task": "shop.tasks.report", "cron": "0 5 * * *"}}.'
        )


def are_names(value: object) -> TypeGuard[Sequence[str]]:
    """Whether it is a list of texts."""
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)

"""System checks: settings that contradict themselves. None of them talks to Redis."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, Warning

from django_rtq.broker.recipe import read_recipe
from django_rtq.conf import get_config
from django_rtq.exceptions import ConfigurationError


def check_settings(**kwargs: Any) -> list[CheckMessage]:
    """rtq.E001: RTQ, or the alias or factory that it names, cannot be read. rtq.W001: the lease is very short."""
    try:
        config = get_config()
        read_recipe(config)
    except ConfigurationError as error:
        return [Error(str(error), id="rtq.E001")]
    if config.lease_seconds < 5:
        return [
            Warning(
                f'RTQ["LEASE_SECONDS"] is {config.lease_seconds}: a busy machine may miss it, and its jobs run twice.',
                hint="Set it to 5 or more; the default is 15.",
                id="rtq.W001",
            )
        ]
    return []

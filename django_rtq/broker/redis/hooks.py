"""Functions around the commands that are sent to Redis."""

from django_rtq.core.broker.redis.commands import (
    command_hooks,
)

__all__ = [
    "command_hooks",
]

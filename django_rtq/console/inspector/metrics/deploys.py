"""Deploys: which version of the project workers began to run, and when. See RTQ["VERSION"]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.redis.commands import Command
from django_rtq.core.jobs.job import clock_moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Deploy:
    """A version of the project, from when on it was the latest."""

    at: datetime  # by the clock of Redis
    version: str


def deploy_commands(broker: Broker) -> list[Command]:
    """The command for read_deploys(); none without RTQ["VERSION"]."""
    return [("LRANGE", broker.keys.of(broker.config.default_queue).deploys, 0, -1)] if broker.config.version else []


def read_deploys(replies: Sequence[Any]) -> list[Deploy]:
    """The deploys in the replies to deploy_commands(), the newest first: those of the last 31 days, 50 at most."""
    pairs = [entry.decode(errors="replace").partition(" ") for reply in replies for entry in reply]
    return [Deploy(at=clock_moment(int(at_ms)), version=version) for at_ms, _, version in pairs]

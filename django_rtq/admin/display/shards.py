"""The banner of the overview of all shards: what is wrong in each, and which of them do not answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from django.utils.translation import gettext as _

from django_rtq.admin.display.incidents import Health, health_of
from django_rtq.admin.urls import PageUrl
from django_rtq.incidents.detection import reported, silent_shard
from django_rtq.incidents.incident import Incident
from django_rtq.inspector.all_shards import Answers
from django_rtq.inspector.overview import Overview
from django_rtq.transactions.outbox import OutboxLag


def health_of_shards(
    answers: Answers, found: Mapping[int, Sequence[Incident]], overview: Overview, url: PageUrl
) -> Health:
    """The banner: the incidents of each shard, with links to its pages."""
    silent = [silent_shard(each.number, each.error, since=each.since, is_missing=True) for each in answers.silent]
    health = health_of(reported(silent), overview, url)
    lines = list(health.lines)
    for number, incidents in found.items():
        of_shard = health_of(incidents, answers.by_shard[number][0], partial(_url_in, url, number))
        name = _("Shard %(number)d") % {"number": number}
        lines += [replace(line, text=f"{name}: {line.text}") for line in of_shard.lines]
        health.worst = _worse(health.worst, of_shard.worst)
    health.lines = sorted(lines, key=lambda line: not line.is_critical)
    return health


def _url_in(url: PageUrl, number: int, name: str, *args: str, query: Mapping[str, object] | None = None) -> str:
    return url(name, *args, query={**(query or {}), "shard": str(number)})


def _worse(one: str, other: str) -> str:
    return min(one, other, key=("critical", "warning", "ok").index)


def sum_of_lags(lags: Iterable[OutboxLag | None]) -> OutboxLag | None:
    """What waits in the outbox for all shards."""
    every: list[Any] = [lag for lag in lags if lag is not None]
    if not every:
        return None
    return OutboxLag(jobs=sum(lag.jobs for lag in every), oldest_seconds=max(lag.oldest_seconds for lag in every))

"""Versions of the project: how many runs of a task, or of a queue, failed with each, and how long they took."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from django.utils.translation import gettext_lazy as _

from django_rtq.console.reading.metrics.reader import VersionRuns
from django_rtq.console.render.column import DURATION, MOMENT, NUMBER, SHARE, Column, Kind
from django_rtq.console.render.sheet import Sheet


def _metric(name: str, title: Any, kind: Kind) -> Column:
    return Column(name, title, attrgetter(f"metrics.{name}"), kind)


class Versions(Sheet[VersionRuns]):
    """The table on the page of a task, and of a queue."""

    model, title, key = "version", _("Versions"), "version"
    columns = (
        Column("version", _("Version")),
        Column("since", _("Since"), kind=MOMENT, under="version"),
        _metric("done", _("Done"), NUMBER),
        _metric("failed", _("Failed"), NUMBER),
        _metric("failure_rate", _("Failure rate"), SHARE),
        _metric("run_p50", _("Run p50"), DURATION),
        _metric("run_p95", _("Run p95"), DURATION),
    )


VERSIONS = Versions()

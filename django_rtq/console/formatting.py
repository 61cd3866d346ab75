"""Formats numbers, percentages, durations and times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.utils.formats import number_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

from django_rtq.core.jobs.job import JobState

EMPTY_VALUE = "\N{EN DASH}"
#: The state of one job.
STATE_LABELS: dict[JobState, Any] = {
    JobState.SCHEDULED: gettext_lazy("scheduled"),
    JobState.QUEUED: gettext_lazy("queued"),
    JobState.RUNNING: gettext_lazy("running"),
    JobState.RETRYING: gettext_lazy("retrying"),
    JobState.SUCCEEDED: gettext_lazy("succeeded"),
    JobState.DEAD: gettext_lazy("dead"),
    JobState.CANCELLED: gettext_lazy("cancelled"),
    JobState.EXPIRED: gettext_lazy("expired"),
}


#: The lists of jobs on the page of a queue.
LIST_LABELS: dict[str, Any] = {
    "queued": pgettext_lazy("jobs", "Queued"),
    "scheduled": pgettext_lazy("jobs", "Scheduled"),
    "running": pgettext_lazy("jobs", "Running"),
    "retrying": pgettext_lazy("jobs", "Retrying"),
    "dead": pgettext_lazy("jobs", "Dead"),
    "finished": pgettext_lazy("jobs", "Finished"),
}


def format_number(value: float | None) -> str:
    """1234 as 1,234 in the current locale; 0.25 keeps two digits."""
    if value is None:
        return EMPTY_VALUE
    if 0 <= value < 1000 and value == int(value):
        return str(int(value))
    digits = 0 if value == int(value) or value >= 100 else 1 if value >= 1 else 2
    return number_format(round(value, digits), decimal_pos=digits, force_grouping=True)


def number_text(count: int, *, is_cut: bool) -> str:
    """A number of jobs that were found; if the search was cut there may be more. "?": it was, and found none."""
    if is_cut and not count:
        return "?"
    return _("≥ %(count)s") % {"count": format_number(count)} if is_cut else format_number(count)


def format_percent(part: float | None) -> str:
    """0.25 as 25 %."""
    if part is None:
        return EMPTY_VALUE
    if 0 < part < 0.001:
        return _("< %(number)s %%") % {"number": number_format(0.1, decimal_pos=1)}
    digits = 1 if 0 < part < 0.1 else 0
    return _("%(number)s %%") % {"number": number_format(round(100 * part, digits), decimal_pos=digits)}


def format_duration(seconds: float | None) -> str:
    """A duration, in the unit that suits its size."""
    if seconds is None:
        return EMPTY_VALUE
    if 0 < seconds < 0.0005:
        return _("< 1 ms")
    if seconds < 0.9995:
        return _("%(number)s ms") % {"number": number_format(round(seconds * 1000))}
    if seconds < 9.95:
        return _("%(number)s s") % {"number": number_format(round(seconds, 1), decimal_pos=1)}
    size, unit = next((size, unit) for most, size, unit in _UNITS if seconds < most)
    return str(unit % {"number": number_format(round(seconds / size), force_grouping=True)})


def format_moment(moment: datetime) -> str:
    """A time in the current time zone, to the second."""
    local = localtime(moment)
    return f"{local.isoformat(' ', 'seconds')[:19]} {local:%Z}"


class Grouped(int):
    """A number that texts show with groups of digits, and that chooses between their singular and plural."""

    def __str__(self) -> str:
        return format_number(int(self))


def names_text(names: Sequence[str], limit: int) -> str:
    """The first names, and the number of the others."""
    shown, more = ", ".join(names[:limit]), len(names) - limit
    if more <= 0:
        return shown
    text = ngettext("%(names)s and %(count)d more", "%(names)s and %(count)d more", more)
    return text % {"names": shown, "count": more}


_UNITS: tuple[tuple[float, int, Any], ...] = (
    (119.5, 1, gettext_lazy("%(number)s s")),
    (7200, 60, gettext_lazy("%(number)s min")),
    (172_800, 3600, gettext_lazy("%(number)s h")),
    (math.inf, 86_400, gettext_lazy("%(number)s d")),
)


def short_name(name: str) -> str:
    """The last part of a dotted name, truncated."""
    return name.rpartition(".")[2][:80]

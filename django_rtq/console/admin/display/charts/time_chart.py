"""A chart over time as the template _chart.html shows it: the picture, its axes, a key, and a table of its values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.utils.formats import date_format
from django.utils.text import Truncator
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from django_rtq.console.admin.display.charts.svg import Band, Line, Mark, draw, scale_maximum
from django_rtq.console.formatting import EMPTY_VALUE, format_duration, format_number

SEPARATOR = " \N{MIDDLE DOT} "
EXACT_ROWS, TABLE_ROWS = 31, 12  # of the data table: up to so many steps each has a row; else so many means are told
BURST = 10  # a chart is cut off if its largest value is so many times as high as nine tenths of the others
LEAST_VALUES = 10  # with fewer values nothing is cut off
_DAY, _HOUR, _MINUTE = 86_400, 3600, 60
_TICKS = (10 * _MINUTE, 4 * _HOUR, _DAY, 5 * _DAY)  # seconds between times on the axis: the first with few enough
_MOST_TICKS = 8
_LABEL_PERCENT, _LABEL_LENGTH = 30, 12  # of the width for each label; characters of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The steps of a chart, all of the same length."""

    begins_at: datetime  # the first step
    seconds: int  # of a step
    number: int

    def moment(self, step: float) -> datetime:
        """When a step begins, in the current time zone."""
        return localtime(self.begins_at + timedelta(seconds=self.seconds * step))

    def place_of(self, moment: datetime) -> float | None:
        """Where a moment is, in steps; None if it is outside. The step that is not over yet is at the end."""
        step = (moment - self.begins_at).total_seconds() / self.seconds
        return min(step, float(self.number)) if 0 <= step <= self.number + 1 else None


class Event(NamedTuple):
    """Something that happened, to be marked in charts."""

    at: datetime
    text: str
    label: str = ""  # above the chart, as far as there is room


def time_chart(
    name: str,
    title: str,
    steps: Steps,
    shown: Sequence[Band | Line],
    *,
    events: Iterable[Event] = (),
    write: Callable[[float], str] = format_number,
) -> dict[str, Any]:
    """The context `chart` of the template _chart.html. `name` is unique on a page, `write` formats a value.

    Each band and line has a value for each step. Bands are stacked: succeeded, then failed, for example.
    """
    heights = _heights(steps, shown)
    top, note = _scale(heights, steps, write)
    if write is format_duration:
        top = max(top, 0.002)  # s: half of it is still to be read
    placed_events = _within(steps, events)
    marks = [Mark(step, f"{time_text(steps, step)} {event.text}") for step, event in placed_events]
    label = _("%(title)s from %(from)s to %(to)s. The data table has the values.") % {
        "title": title,
        "from": time_text(steps, 0),
        "to": time_text(steps, steps.number),
    }
    return {
        "name": name,
        "title": title,
        "key": [{"title": shape.title, "css": shape.css} for shape in shown],
        "svg": draw(label, top, shown, tips=_tips(steps, shown, write, marks), marks=marks),
        "heights": [write(top), write(top / 2), write(0)],
        "ticks": _ticks(steps),
        "zone": f"{steps.moment(steps.number):%Z}",
        "note": note,
        "labels": _labels(steps, placed_events),
        "has_marks": bool(marks),
        "rows": _rows(steps, shown, write, marks),
    }


def _tips(
    steps: Steps, shown: Sequence[Band | Line], write: Callable[[float], str], marks: Sequence[Mark]
) -> list[str]:
    """What is said of each step: its values, and what was marked then."""
    tips = [
        SEPARATOR.join([time_text(steps, i), *(f"{shape.title} {_text(shape.values[i], write)}" for shape in shown)])
        for i in range(steps.number)
    ]
    for mark in marks:
        tips[min(int(mark.step), steps.number - 1)] += SEPARATOR + mark.title
    return tips


def _within(steps: Steps, events: Iterable[Event]) -> list[tuple[float, Event]]:
    """The events within the time of the chart, and where they are."""
    places = ((steps.place_of(event.at), event) for event in events)
    return [(step, event) for step, event in places if step is not None]


def _labels(steps: Steps, placed_events: Iterable[tuple[float, Event]]) -> list[dict[str, str]]:
    """The labels of events for which there is room, the latest first: where they are, in percent, and what they say."""
    labels: list[dict[str, str]] = []
    free = 100.0  # percent from the left, where no label is yet
    for step, event in sorted(placed_events, key=lambda pair: -pair[0]):
        percent = 100 * step / steps.number
        left = min(max(0.0, percent - _LABEL_PERCENT / 2), 100.0 - _LABEL_PERCENT)
        anchor = "start" if left == 0 else "end" if left == 100.0 - _LABEL_PERCENT else "middle"
        right = percent + {"start": _LABEL_PERCENT, "middle": _LABEL_PERCENT / 2, "end": 0.0}[anchor]
        if event.label and right <= free:
            free = right - _LABEL_PERCENT
            text = Truncator(event.label).chars(_LABEL_LENGTH)
            labels.append({"percent": f"{percent:.1f}", "text": text, "anchor": anchor})
    return labels


def time_text(steps: Steps, step: float) -> str:
    """When a step begins: the time of day, and the day if the chart is longer than one."""
    # Without names of days or months: the same in every language, and Django's date_format() takes much longer.
    return f"{steps.moment(step):{'%H:%M' if steps.seconds * steps.number <= _DAY else '%Y-%m-%d %H:%M'}}"


def _heights(steps: Steps, shown: Sequence[Band | Line]) -> list[float]:
    """How high each step reaches."""
    bands = [band.values for band in shown if isinstance(band, Band)]
    lines = [line.values for line in shown if isinstance(line, Line)]
    return [
        max([sum(values[i] for values in bands), *(values[i] or 0.0 for values in lines)]) for i in range(steps.number)
    ]


def _scale(heights: Sequence[float], steps: Steps, write: Callable[[float], str]) -> tuple[float, str]:
    """The value at the upper edge, and what to say of it: a burst that would flatten all others is cut off."""
    most, others = max(heights, default=0.0), sorted(height for height in heights if height > 0)
    usual = others[len(others) * 9 // 10] if len(others) >= LEAST_VALUES else most
    if most <= BURST * usual:
        return scale_maximum(most), ""
    top = scale_maximum(2 * usual)
    when = time_text(steps, heights.index(most))
    note = _("Cut off at %(top)s: the highest value is %(most)s, at %(time)s.")
    return top, note % {"top": write(top), "most": write(most), "time": when}


def _ticks(steps: Steps) -> list[dict[str, str]]:
    """Round times for the axis, in the current time zone: where they are, in percent, and what they say."""
    whole = steps.seconds * steps.number
    every = next((seconds for seconds in _TICKS if whole / seconds <= _MOST_TICKS), _TICKS[-1])
    first = steps.moment(0)
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    passed = int((first - midnight).total_seconds())
    ticks = []
    for second in range(-passed % every or every, whole, every):
        moment = steps.moment(second / steps.seconds)
        if 0.04 < second / whole < 0.96:
            text = date_format(moment, "H:i" if every < _DAY else "D j" if every == _DAY else "j M")
            ticks.append({"percent": f"{100 * second / whole:.1f}", "text": text})
    return ticks


def _rows(
    steps: Steps, shown: Sequence[Band | Line], write: Callable[[float], str], marks: Sequence[Mark]
) -> list[tuple[str, list[str], list[str]]]:
    """When each row begins, its values, and what was marked then."""
    every = 1 if steps.number <= EXACT_ROWS else steps.number // TABLE_ROWS
    return [
        (
            time_text(steps, i),
            [_text(_mean(shape.values[i : i + every]), write) for shape in shown],
            [mark.title for mark in marks if i <= min(mark.step, steps.number - 1) < i + every],
        )
        for i in range(0, steps.number, every)
    ]


def _mean(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present else None


def _text(value: float | None, write: Callable[[float], str]) -> str:
    return EMPTY_VALUE if value is None else write(value)

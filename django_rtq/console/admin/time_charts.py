"""Charts over time as the template _chart.html shows them: the picture, its axes, a key, and a table of the values.

The picture is SVG, which is stretched to the width of the page. Texts would be stretched, too, so the axes stand beside
it. Colours and patterns are CSS classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from math import floor, log10
from typing import Any, NamedTuple

from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_rtq.console.formatting import format_duration, format_number
from django_rtq.console.reading.metrics.reader import Deploy
from django_rtq.console.reading.metrics.time_series import Series
from django_rtq.console.sanitize import clean_text

STEP_WIDTH, HEIGHT = 10, 200  # of a chart, in the units of its picture
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

    def text(self, step: float) -> str:
        """When a step begins: the time of day, and the day if the chart is longer than one."""
        # Without names of days or months: the same in every language, and Django's date_format() takes much longer.
        return f"{self.moment(step):{'%H:%M' if self.seconds * self.number <= _DAY else '%Y-%m-%d %H:%M'}}"


class Line(NamedTuple):
    """One line of a chart, or one area. Areas are stacked, the first at the bottom."""

    title: str
    css: str  # the CSS class
    values: Sequence[float | None]  # one for each step; None: no value, which no area has
    is_area: bool = False


class _Mark(NamedTuple):
    """A version that has started, marked in the chart."""

    step: float  # where it is, in steps
    text: str
    version: str


def time_chart(
    name: str,
    title: str,
    steps: Steps,
    shown: Sequence[Line],
    *,
    deploys: Iterable[Deploy] = (),
    write: Callable[[float | None], str] = format_number,
) -> dict[str, Any]:
    """The context `chart` of the template _chart.html. `name` is unique on a page, `write` formats a value."""
    heights = [
        max([sum(line.values[i] or 0.0 for line in shown if line.is_area), *(line.values[i] or 0.0 for line in shown)])
        for i in range(steps.number)
    ]
    top, note = _scale(heights, steps, write)
    if write is format_duration:
        top = max(top, 0.002)  # s: half of it is still to be read
    marks = list(_marks(steps, deploys))
    label = _("%(title)s from %(from)s to %(to)s. The data table has the values.") % {
        "title": title,
        "from": steps.text(0),
        "to": steps.text(steps.number),
    }
    tips = [
        SEPARATOR.join([steps.text(i), *(f"{line.title} {write(line.values[i])}" for line in shown)])
        for i in range(steps.number)
    ]
    for mark in marks:
        tips[min(int(mark.step), steps.number - 1)] += SEPARATOR + mark.text
    return {
        "name": name,
        "title": title,
        "key": shown,
        "svg": _draw(label, top, shown, tips, marks),
        "heights": [write(top), write(top / 2), write(0)],
        "ticks": _ticks(steps),
        "zone": f"{steps.moment(steps.number):%Z}",
        "note": note,
        "labels": _labels(steps, marks),
        "has_marks": bool(marks),
        "rows": _rows(steps, shown, write, marks),
    }


def _marks(steps: Steps, deploys: Iterable[Deploy]) -> Iterator[_Mark]:
    """The deploys within the time of the chart. Those of the step that is not over yet are at the end."""
    for deploy in deploys:
        step = (deploy.at - steps.begins_at).total_seconds() / steps.seconds
        if 0 <= step <= steps.number + 1:
            step, version = min(step, float(steps.number)), clean_text(deploy.version, 100)
            text = _("Version %(version)s started") % {"version": version}
            yield _Mark(step, f"{steps.text(step)} {text}", version)


def _scale(heights: Sequence[float], steps: Steps, write: Callable[[float | None], str]) -> tuple[float, str]:
    """The value at the upper edge, and what to say of it: a burst that would flatten all others is cut off."""
    most, others = max(heights, default=0.0), sorted(height for height in heights if height > 0)
    usual = others[len(others) * 9 // 10] if len(others) >= LEAST_VALUES else most
    if most <= BURST * usual:
        return scale_maximum(most), ""
    top = scale_maximum(2 * usual)
    when = steps.text(heights.index(most))
    note = _("Cut off at %(top)s: the highest value is %(most)s, at %(time)s.")
    return top, note % {"top": write(top), "most": write(most), "time": when}


def scale_maximum(most: float) -> float:
    """The smallest round number (1, 2 or 5 times a power of ten) that is not below the largest value."""
    if most <= 0:
        return 1.0
    size = 10.0 ** floor(log10(most))
    return next(size * n for n in (1, 2, 5, 10) if most <= size * n)


def _labels(steps: Steps, marks: Iterable[_Mark]) -> list[dict[str, str]]:
    """The versions for which there is room, the latest first: where they are, in percent, and what they say."""
    labels: list[dict[str, str]] = []
    free = 100.0  # percent from the left, where no label is yet
    for mark in sorted(marks, key=lambda mark: -mark.step):
        percent = 100 * mark.step / steps.number
        left = min(max(0.0, percent - _LABEL_PERCENT / 2), 100.0 - _LABEL_PERCENT)
        anchor = "start" if left == 0 else "end" if left == 100.0 - _LABEL_PERCENT else "middle"
        right = percent + {"start": _LABEL_PERCENT, "middle": _LABEL_PERCENT / 2, "end": 0.0}[anchor]
        if right <= free:
            free = right - _LABEL_PERCENT
            text = Truncator(mark.version).chars(_LABEL_LENGTH)
            labels.append({"percent": f"{percent:.1f}", "text": text, "anchor": anchor})
    return labels


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
    steps: Steps, shown: Sequence[Line], write: Callable[[float | None], str], marks: Sequence[_Mark]
) -> list[tuple[str, list[str], list[str]]]:
    """When each row begins, its values, and what was marked then."""
    every = 1 if steps.number <= EXACT_ROWS else steps.number // TABLE_ROWS
    return [
        (
            steps.text(i),
            [write(_mean(line.values[i : i + every])) for line in shown],
            [mark.text for mark in marks if i <= min(mark.step, steps.number - 1) < i + every],
        )
        for i in range(0, steps.number, every)
    ]


def _mean(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present else None


# -- the picture


def _draw(label: str, top: float, shown: Sequence[Line], tips: Sequence[str], marks: Iterable[_Mark]) -> SafeString:
    """`top` is the value at the upper edge; the rest is cut off. `tips` are what a mouse shows of each step."""
    width = STEP_WIDTH * max(1, len(tips))
    areas, sums = list[str](), [0.0] * len(tips)
    for line in shown:
        if line.is_area:
            sums = [a + (b or 0.0) for a, b in zip(sums, line.values, strict=True)]
            areas.append(f'<path class="{line.css}" d="{_area_path(sums, top)}"/>')
    drawn = [
        *(f'<path class="rtq-grid" d="M0 {round(HEIGHT * part / 4)}H{width}"/>' for part in range(5)),
        *reversed(areas),  # the highest first: each is drawn over the lower part of the one before
        *(f'<path class="{line.css}" d="{_line_path(line.values, top)}"/>' for line in shown if not line.is_area),
        *(
            f'<path class="rtq-mark" d="M{round(step * STEP_WIDTH)} 0V{HEIGHT}"><title>{escape(text)}</title></path>'
            for step, text, _version in marks
        ),
        f'<path class="rtq-cursor" d="M0 0V{HEIGHT}"/>',
        *(
            f'<rect x="{x}" width="{STEP_WIDTH}" height="{HEIGHT}"><title>{escape(tip)}</title></rect>'
            for x, tip in zip(range(0, width, STEP_WIDTH), tips, strict=False)
        ),
    ]
    return format_html(
        '<svg class="rtq-chart" data-rtq-steps="{}" viewBox="0 0 {} {}" role="img" aria-label="{}" '
        'preserveAspectRatio="none">{}</svg>',
        len(tips), width, HEIGHT, label, SafeString("".join(drawn)),  # its texts are escaped
    )  # fmt: skip


def _area_path(values: Sequence[float], top: float) -> str:
    """Steps from value to value, down to the axis."""
    path, last = f"M0 {HEIGHT}", HEIGHT
    for index, value in enumerate(values):
        y = _y(value, top)
        if y != last:
            path += f"H{index * STEP_WIDTH}V{y}"
        last = y
    return f"{path}H{len(values) * STEP_WIDTH}V{HEIGHT}Z"


def _line_path(values: Sequence[float | None], top: float) -> str:
    """Lines between the middles of the steps, gaps without a value, and a single value as wide as a step."""
    path, is_drawing = "", False
    for index, value in enumerate(values):
        if value is not None:
            path += f"{'L' if is_drawing else 'M'}{index * STEP_WIDTH + STEP_WIDTH // 2} {_y(value, top)}"
            if not is_drawing and (index + 1 == len(values) or values[index + 1] is None):
                path += f"m{-STEP_WIDTH // 2} 0h{STEP_WIDTH}"
        is_drawing = value is not None
    return path


def _y(value: float, top: float) -> int:
    return HEIGHT - round(HEIGHT * min(1.0, value / top))


# -- the charts of a queue, or of all queues together: runs by outcome, wait and run time


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """How far charts look back."""

    title: str | Promise
    minutes: int
    step: int  # minutes
    compares: bool = False  # with the same time before it

    @property
    def read_minutes(self) -> int:
        """How many minutes have to be read."""
        return self.minutes * (2 if self.compares else 1)


SPANS: Mapping[str, Span] = {
    "1h": Span(title=gettext_lazy("Last hour"), minutes=60, step=1),
    "24h": Span(title=gettext_lazy("Last 24 hours"), minutes=1440, step=20),
    "7d": Span(title=gettext_lazy("Last 7 days"), minutes=7 * 1440, step=120, compares=True),
    "30d": Span(title=gettext_lazy("Last 30 days"), minutes=30 * 1440, step=720),
}


def history_charts(series: Sequence[Series], span: Span, deploys: Sequence[Deploy] = ()) -> list[dict[str, Any]]:
    """Charts of throughput, and of wait and run time, for these queues together."""
    number = span.minutes // span.step - 1  # without the step that is not over yet: every line would end in a drop
    begins_at = series[0].begins_at + timedelta(minutes=span.read_minutes - span.minutes)
    steps = Steps(begins_at=begins_at, seconds=series[0].step_seconds, number=number)

    def summed(name: str) -> list[int]:
        return [sum(numbers) for numbers in zip(*(one.of(name) for one in series), strict=True)]

    def per_minute(numbers: Sequence[int]) -> list[float]:
        return [count / span.step for count in numbers]

    done, failed, crashed, run_ms, wait_ms = (
        summed(name)[-number - 1 : -1] for name in ("succeeded", "failed", "crashed", "run_ms", "wait_ms")
    )
    lines = outcome_areas(*map(per_minute, (done, failed, crashed)))
    if span.compares:
        runs = list(map(sum, zip(summed("succeeded"), summed("failed"), strict=True)))
        lines.append(Line(_("a week before"), "rtq-line-before", per_minute(runs[:number])))
    times = [
        Line(title, css, [ms / count / 1000 if count else None for ms, count in zip(sums, done, strict=True)])
        for title, css, sums in ((_("wait"), "rtq-line-wait", wait_ms), (_("run"), "rtq-line-run", run_ms))
    ]
    return [
        time_chart("throughput", _("Runs per minute"), steps, lines, deploys=deploys),
        time_chart("times", _("Average wait and run time"), steps, times, deploys=deploys, write=format_duration),
    ]


def outcome_areas(done: Sequence[float], failed: Sequence[float], crashed: Sequence[float]) -> list[Line]:
    """Runs by outcome. `failed` contains the runs that crashed their worker."""
    only_failed = [max(0, a - b) for a, b in zip(failed, crashed, strict=True)]
    return [
        Line(_("succeeded"), "rtq-band-succeeded", done, is_area=True),
        Line(_("failed"), "rtq-band-failed", only_failed, is_area=True),
        Line(_("crashed"), "rtq-band-crashed", crashed, is_area=True),
    ]

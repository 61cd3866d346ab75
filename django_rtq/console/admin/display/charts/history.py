"""The charts of a queue, or of all queues together: runs by outcome, wait and run time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_rtq.console.admin.display.charts.svg import Band, Line
from django_rtq.console.admin.display.charts.time_chart import Event, Steps, time_chart
from django_rtq.console.formatting import format_duration
from django_rtq.console.reading.metrics.reader import Deploy
from django_rtq.console.reading.metrics.time_series import Series
from django_rtq.console.sanitize import clean_text


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


def span_links(spans: Mapping[str, Span], chosen: str, url: Callable[[str], str]) -> list[dict[str, Any]]:
    """Links to the spans of a page."""
    return [{"title": span.title, "url": url(key), "is_current": key == chosen} for key, span in spans.items()]


def history_charts(series: Sequence[Series], span: Span, events: Iterable[Event] = ()) -> list[dict[str, Any]]:
    """Charts of throughput, and of wait and run time, for these queues together."""
    number = span.minutes // span.step - 1  # without the step that is not over yet: every line would end in a drop
    steps = Steps(
        begins_at=series[0].begins_at + timedelta(minutes=span.read_minutes - span.minutes),
        seconds=series[0].step_seconds,
        number=number,
    )
    done, failed, crashed, run_ms, wait_ms = (
        _summed(series, name)[-number - 1 : -1] for name in ("succeeded", "failed", "crashed", "run_ms", "wait_ms")
    )
    bands = outcome_bands(*(_per_minute(numbers, span) for numbers in (done, failed, crashed)))
    before = []
    if span.compares:
        runs = [a + b for a, b in zip(*(_summed(series, name) for name in ("succeeded", "failed")), strict=True)]
        before = [Line(_("a week before"), "rtq-line-before", _per_minute(runs[:number], span))]
    times = [
        Line(_("wait"), "rtq-line-wait", _means(wait_ms, done)),
        Line(_("run"), "rtq-line-run", _means(run_ms, done)),
    ]
    events = list(events)
    return [
        time_chart("throughput", _("Runs per minute"), steps, [*bands, *before], events=events),
        time_chart("times", _("Average wait and run time"), steps, times, events=events, write=format_duration),
    ]


def deploy_events(deploys: Iterable[Deploy]) -> list[Event]:
    """The marks of deploys."""
    marks = []
    for deploy in deploys:
        version = clean_text(deploy.version, 100)
        text = _("Version %(version)s started") % {"version": version}
        marks.append(Event(deploy.at, text, version))
    return marks


def outcome_bands(done: Sequence[float], failed: Sequence[float], crashed: Sequence[float]) -> list[Band]:
    """The bands of runs by outcome. `failed` contains the runs that crashed their worker."""
    return [
        Band(_("succeeded"), "rtq-band-succeeded", done),
        Band(_("failed"), "rtq-band-failed", [max(0, a - b) for a, b in zip(failed, crashed, strict=True)]),
        Band(_("crashed"), "rtq-band-crashed", crashed),
    ]


def _summed(series: Sequence[Series], name: str) -> list[int]:
    return [sum(numbers) for numbers in zip(*(one.of(name) for one in series), strict=True)]


def _per_minute(numbers: Sequence[int], span: Span) -> list[float]:
    return [number / span.step for number in numbers]


def _means(sums_ms: Sequence[int], numbers: Sequence[int]) -> list[float | None]:
    """Averages in seconds."""
    return [ms / number / 1000 if number else None for ms, number in zip(sums_ms, numbers, strict=True)]

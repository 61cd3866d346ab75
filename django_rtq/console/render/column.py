"""A column of a list, and the kinds of values: how each looks on a page, on a terminal and in JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from django.template.defaultfilters import filesizeformat
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_rtq.console.formatting import STATE_LABELS, format_duration, format_moment, format_number, format_percent
from django_rtq.console.output import ago, duration, number, on_clock
from django_rtq.console.sanitize import clean_text
from django_rtq.core.commands.command import one_line
from django_rtq.core.jobs.details import Progress
from django_rtq.databases.clocks import utc_now

POINTS, HEIGHT = 30, 24  # of a sparkline: small, as an open page fetches fifty of them at a time
PageUrl = Callable[..., str]  # the address of a page, by its name and what it is about


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How a value looks that is known."""

    html: Callable[[Any], str]  # a text, which is escaped, or safe HTML
    plain: Callable[[Any], str]  # on a terminal, in English
    in_full: Callable[[Any], str] | None = None  # with -v 2, if that is another text
    raw: Callable[[Any], Any] = lambda value: value  # in JSON
    is_number: bool = False  # aligned right, and sorted from the greatest
    is_state: bool = False


class State(NamedTuple):
    """How a state is shown on pages. Without `css`, which is that of its label or "plain", it is not worth a word."""

    title: Any
    css: str = ""


def states(by_word: Mapping[Any, State]) -> Kind:
    """The kind of a column of states, by the words that terminals and JSON say."""

    def label(word: Any) -> str:
        title, css = by_word.get(word) or State(clean_text(word, 20), "plain")
        more = "" if css == "plain" else f" rtq-state-{css}"
        return format_html('<span class="rtq-state{}">{}</span>', more, title) if css else ""

    return Kind(html=label, plain=lambda word: word.replace("_", " "), is_state=True)


def moment_html(moment: datetime, text: str = "") -> str:
    """A time in the current time zone, to the second; or a text with the time as a tooltip."""
    whole = format_moment(moment)
    return format_html('<time datetime="{}" title="{}" dir="auto">{}</time>', moment.isoformat(), whole, text or whole)


def ago_html(moment: datetime, now: datetime | None = None) -> str:
    """The time since or until then, with the exact time as a tooltip."""
    seconds = ((now or utc_now()) - moment).total_seconds()
    text = _("in %(duration)s") if seconds < 0 else _("%(duration)s ago")
    return moment_html(moment, text % {"duration": format_duration(abs(seconds) if abs(seconds) >= 1 else 1.0)})


def _part_text(part: Sequence[int]) -> str:
    return _("%(busy)d of %(slots)d") % {"busy": part[0], "slots": part[1]}


JOB_STATE = states({
    **{str(state): State(label, str(state)) for state, label in STATE_LABELS.items()},
    "stopping": State(gettext_lazy("asked to stop"), "stopping"),
    "held": State(gettext_lazy("task paused"), "paused"),
})  # fmt: skip


class Steps(NamedTuple):
    """Counters of a time, step by step, and what they say together."""

    counts: Sequence[int]
    label: str


def sparkline(values: Sequence[float], label: str) -> SafeString:
    """A small line without axes. Empty if there are no values."""
    every = max(1, -(-len(values) // POINTS))
    buckets = [sum(values[i : i + every]) for i in range(len(values) % every, len(values), every)]
    return format_html(
        '<svg class="rtq-spark" viewBox="0 0 {} {}" role="img" preserveAspectRatio="none">'
        '<title>{}</title><polyline points="{}"/></svg>',
        POINTS - 1,
        HEIGHT,
        label,
        polyline_points(buckets, POINTS - 1, HEIGHT, max(buckets, default=0)),
    )


def polyline_points(values: Sequence[float], width: float, height: float, maximum: float) -> str:
    """The `points` attribute of an SVG polyline. `maximum` is the value at the upper edge."""
    step = width / max(1, len(values) - 1)
    scale = (height - 2) / maximum if maximum > 0 else 0
    last = len(values) - 1
    return " ".join(
        f"{index * step:.0f},{height - 1 - value * scale:.0f}"
        for index, value in enumerate(values)
        # Leave out the middle of flat stretches, which are most of the points.
        if index in (0, last) or not values[index - 1] == value == values[index + 1]
    )


def _progress(part: Sequence[int]) -> str:
    done, size = part
    text = _("%(done)s of %(size)s") % {"done": format_number(done), "size": format_number(size)}
    bar = '<progress max="{}" value="{}" aria-hidden="true"></progress> {}'
    return format_html(bar, size, done, text) if size else text


def _meter(part: float) -> str:
    text = '<meter min="0" max="1" value="{}" title="{}" aria-label="{}">{}</meter>'
    return format_html(text, f"{part:.2f}", *[format_percent(part)] * 3)


def _reported(progress: Progress) -> str:
    text, bar = clean_text(progress, 200), '<progress max="{}" value="{}" aria-label="{}"></progress> {}'
    numbers = (f"{number:f}" for number in (progress.total or 0, progress.done))
    return format_html(bar, *numbers, _("Progress"), text) if progress.total else text


TEXT = Kind(html=lambda text: clean_text(text, 200), plain=str)
TASK = Kind(html=lambda name: clean_text(name, 300).rpartition(".")[2], plain=str)
NAMES = Kind(html=", ".join, plain=",".join)  # several; a link is made for each
NUMBER = Kind(html=format_number, plain=number, is_number=True)
DURATION = Kind(html=format_duration, plain=duration, is_number=True)  # of seconds
SIZE = Kind(html=filesizeformat, plain=lambda size: filesizeformat(size).replace("\xa0", " "), is_number=True)
SHARE = Kind(html=format_percent, plain=lambda part: f"{100 * part:.1f} %", is_number=True)
PART = Kind(html=_part_text, plain=lambda part: f"{part[0]}/{part[1]}", raw=lambda part: part[0], is_number=True)
BAR = replace(SHARE, html=lambda part: format_html("{} {}", _meter(part), format_percent(part)))
LINES = Kind(
    html=lambda lines: format_html_join("", "<div>{}</div>", ([clean_text(line, 300)] for line in lines)),
    plain="; ".join,
)
PROGRESS = replace(PART, html=_progress, plain=lambda part: f"{part[0]} of {part[1]}")
MOMENT = Kind(html=ago_html, plain=ago, in_full=on_clock)
MESSAGE = Kind(html=lambda text: clean_text(text, 160), plain=lambda text: one_line(text, 80), in_full=str)
REPORTED = Kind(html=_reported, plain=str, raw=str)  # what a job said of its progress
METER = Kind(html=_meter, plain=lambda part: f"{100 * part:.0f} %")
RATE = Kind(html=format_number, plain=lambda rate: f"{rate:,.1f}", is_number=True)
LINE = Kind(
    html=lambda steps: format_html(
        "{} {}", sparkline(steps.counts, steps.label), format_number(max(steps.counts, default=0))
    ),
    plain=lambda steps: number(sum(steps.counts)),
    raw=lambda steps: list(steps.counts),
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a list."""

    name: str  # its key in JSON, and in the address of a list that is sorted by it
    title: Any  # marked for translation
    value: Callable[[Any], Any] | None = None  # of a row; None: its attribute of that name
    kind: Kind = TEXT
    #: The column below whose value pages show it, small, with its title. States stand beside the value.
    under: str = ""
    link: Callable[[Any, PageUrl], str] | None = None  # where a row leads to, or each of its NAMES; "": nowhere
    css: Callable[[Any], str] | None = None  # of the cell of a row, if its value is not nothing
    hint: Callable[[Any], str] | None = None  # what a row tells beside it, as a tooltip
    is_sortable: bool = False
    is_of_shards: bool = False  # shown on pages about all shards only

    def of(self, row: Any) -> Any:
        """The value of a row."""
        return getattr(row, self.name) if self.value is None else self.value(row)

    def raw(self, row: Any) -> Any:
        """The value of a row, for JSON."""
        value = self.of(row)
        return None if value is None else self.kind.raw(value)

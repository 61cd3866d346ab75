"""Which jobs: a selection, and the text that people write for it: ``state:dead task:ship since:1h no stock``.

The search, the forms of the admin, rtq_jobs, bulk actions and the jobs that do the rest of one all use it. This is the
only parser of that text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_naive, make_aware
from django.utils.translation import gettext as _

from django_rtq.console.reading.jobs.job_filter import ALL_JOBS, JobFilter
from django_rtq.console.reading.jobs.walk import LISTS
from django_rtq.core.conf.queue_options import is_queue_name
from django_rtq.core.validation import did_you_mean
from django_rtq.databases.clocks import utc_now

LONGEST = 500  # characters of a query
OUTCOMES = ("succeeded", "cancelled", "expired")  # the states of the list "finished"
WAITING = ("queued", "scheduled", "retrying")
FIELDS = ("id", "task", "client", "workflow", "error", "class", "queue", "state", "since", "before")

_WORD = re.compile(r'(?:[^\s"\\]|\\.|"(?:[^"\\]|\\.)*")+')
_FIELD = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*):(.*)", re.DOTALL)
_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
_AGO = re.compile(rf"(\d{{1,6}})\s*({'|'.join(_UNITS)})")
#: Field of a query -> attribute of JobFilter, for fields that may be given once.
_SINGLE = {
    "id": "id",
    "task": "task",
    "client": "client",
    "workflow": "workflow",
    "error": "error",
    "class": "error_class",
    "since": "since",
    "before": "until",
}


class QueryError(ValueError):
    """A query cannot be understood. The text names the word, what is wrong with it, and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Some jobs: those of these queues and states that match a filter, or those with these ids."""

    queues: Sequence[str] = ()  # empty: all
    states: Sequence[str] = ()  # of LISTS; empty: all
    filter: JobFilter = ALL_JOBS
    ids: Sequence[str] = ()  # then the filter is not asked
    #: The moment of a snapshot. Dead letters that died later, and other jobs that were made later, are left out.
    until_ms: int | None = None

    @classmethod
    def parse(cls, text: str) -> Selection:
        """Read a query. All of it has to match. Raises QueryError.

        What is left of it without each ``field:value`` is one text to search for, its words with a space between them.
        Quotes keep spaces, and make text of what looks like a field: ``client:"Big Corp" "https://example.com"``.
        """
        return cls().narrowed(text)

    def narrowed(self, text: str = "", **fields: str | datetime | Iterable[str]) -> Selection:
        """Those of them that match a query, and have these fields of one. Raises QueryError."""
        texts, given = [self.filter.text] if self.filter.text else [], list[tuple[str, Any, str]]()
        for word in words_of(text):
            if parts := _FIELD.fullmatch(word):
                given.append((parts[1], _unquoted(parts[2]), word))
            else:
                texts.append(_unquoted(word))
        for name, value in fields.items():
            if not isinstance(value, Iterable | datetime):
                raise TypeError(f"{name}={value!r}: give a text, a datetime, or several texts.")
            values = [value] if isinstance(value, str | datetime) else list(value)
            # No value must not become all of them.
            given += [(name, each, f"{name}:{each}") for each in values] or [(name, None, f"{name}:")]
        several: dict[str, list[str]] = {"queue": [], "state": []}
        before = {name: getattr(self.filter, name) for name in _SINGLE.values()}
        single = {name: value for name, value in before.items() if value != getattr(ALL_JOBS, name)}
        for name, value, word in given:
            checked = _checked(name, value, word)
            if name in several:
                several[name].append(checked)
            elif _SINGLE[name] in single:
                raise query_error(word, _("%(field)s is given twice") % {"field": name})
            else:
                single[_SINGLE[name]] = checked
        outcome = self.filter.outcome
        states = _within("state", several["state"], [outcome] if outcome else self.states)
        outcomes = [state for state in states if state in OUTCOMES]
        if outcomes and len(states) > 1:
            raise query_error(f"state:{outcomes[0]}", _("it cannot be combined with another state"))
        return replace(
            self,
            filter=replace(self.filter, **single, text=" ".join(texts), outcome="".join(outcomes)),
            queues=_within("queue", several["queue"], self.queues),
            states=("finished",) if outcomes else states,
        )

    def __str__(self) -> str:
        """The query, without the moment of the snapshot: parse() reads it as the same selection."""
        wanted = self.filter
        states = [wanted.outcome] if wanted.outcome else self.states
        fields: list[tuple[str, str | None]] = [("queue", queue) for queue in self.queues]
        fields += [("state", state) for state in states]
        fields += [(name, _value_text(getattr(wanted, attribute))) for name, attribute in _SINGLE.items()]
        words = [f"{name}:{_quoted(value)}" for name, value in fields if value or (name == "client" and value == "")]
        text = [_quoted(wanted.text, always=bool(_FIELD.fullmatch(wanted.text)))] if wanted.text else []
        return " ".join([*words, *text])

    @property
    def only_text(self) -> str:
        """The text, if nothing else is asked for: it may be the id of a job. Else ""."""
        text = self.filter.text
        return text if self == Selection(filter=JobFilter(text=text)) else ""


def past_moment(text: str) -> datetime | None:
    """A time ago, such as 90s, 30min, 2h or 7d, or a date or time, by default in TIME_ZONE.

    None if it is neither, or before 1970.
    """
    text = text.strip()
    moment: datetime | None
    try:
        if ago := _AGO.fullmatch(text):
            moment = utc_now() - timedelta(seconds=int(ago[1]) * _UNITS[ago[2]])
        else:
            moment = parse_datetime(text if len(text) > 10 else f"{text}T00:00")
    except (ValueError, OverflowError):
        return None
    if moment is None or not 1970 <= moment.year < 3000:
        return None
    return make_aware(moment) if is_naive(moment) else moment


def _checked(name: str, value: Any, word: str) -> Any:
    """The value of a field. `word`: it and its value, for errors. Raises QueryError."""
    if value is None or (not value and name != "client"):
        raise query_error(word, _("a value is missing behind the colon"))
    if name in ("since", "before"):
        if moment := past_moment(value if isinstance(value, str) else value.isoformat()):
            return moment
        raise query_error(word, _("this is not a time; write for example 90s, 30min, 2h, 7d or 2026-01-31T08:00"))
    if name not in FIELDS:
        reason = _("there is no such field; the fields are %(fields)s. To search for this text, put it in quotes")
        raise query_error(word, reason % {"fields": ", ".join(FIELDS)}, did_you_mean(name, FIELDS))
    value = value.isoformat() if isinstance(value, datetime) else str(value)
    if name == "queue" and not is_queue_name(value):
        raise query_error(word, _("no queue can have this name"))
    if name == "state" and value not in (allowed := (*LISTS, *OUTCOMES)):
        reason = _("there is no such state; the states are %(states)s") % {"states": ", ".join(allowed)}
        raise query_error(word, reason, did_you_mean(value, allowed))
    return value


def _within(field: str, values: Iterable[str], before: Sequence[str]) -> tuple[str, ...]:
    """The values of a field, or else those before. Raises QueryError for one that was not among these."""
    for value in values:
        if before and value not in before and not ("finished" in before and value in OUTCOMES):
            raise query_error(f"{field}:{value}", _("%(field)s is given twice") % {"field": field})
    return tuple(dict.fromkeys(values)) or tuple(before)


def query_error(word: str, reason: str, hint: str = "") -> QueryError:
    """That a word cannot be used, and why."""
    return QueryError(f"{word[:100]}: {reason}.{hint}")


def words_of(text: str) -> Iterator[str]:
    """The words of a query, as they are written. Raises QueryError."""
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        word = _WORD.match(text, at)
        if word is None or text[word.end() : word.end() + 1] in ('"', "\\"):
            raise QueryError(_("%(word)s: a quotation mark is missing at its end.") % {"word": text[at:]})
        yield word[0]
        at = word.end()


def _value_text(value: str | datetime | None) -> str | None:
    return value.isoformat() if isinstance(value, datetime) else value


def _quoted(text: str, *, always: bool = False) -> str:
    """As a part of a query, in quotes if it needs them."""
    escaped = re.sub(r'(["\\])', r"\\\1", text)
    return f'"{escaped}"' if always or escaped != text or re.search(r"\s", text) else text


def _unquoted(text: str) -> str:
    """Without quotes, and without the backslashes before quotes and backslashes."""
    return re.sub(r'\\(.)|"', lambda found: found[1] or "", text)

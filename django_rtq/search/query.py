"""The query language of the search: ``state:dead task:ship args.order_id:42 since:1h "no stock"``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from django_rtq.conf.queue_options import is_queue_name
from django_rtq.inspector.jobs.job_filter import JobFilter
from django_rtq.inspector.jobs.job_refs import LISTS
from django_rtq.redaction import hidden
from django_rtq.search.moments import past_moment
from django_rtq.tasks.registry import all_tasks
from django_rtq.validation import did_you_mean

LONGEST = 500  # characters of a query
OUTCOMES = ("succeeded", "cancelled", "expired")  # the states of the list "finished"
FIELDS = ("id", "task", "client", "error", "args.NAME", "queue", "state", "since", "before")

_WORD = re.compile(r'(?:[^\s"\\]|\\.|"(?:[^"\\]|\\.)*")+')
_FIELD = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*):(.*)", re.DOTALL)


class QueryError(ValueError):
    """A query cannot be understood. The text names the word, what is wrong with it, and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is searched for, and where."""

    filter: JobFilter
    queues: Sequence[str] = ()  # empty: all
    states: Sequence[str] = ()  # of LISTS; empty: all

    @property
    def only_word(self) -> str:
        """The query, if it is one word: it may be the id of a job. Else ""."""
        alone = self.filter == JobFilter(words=self.filter.words) and not self.queues and not self.states
        return self.filter.words[0] if alone and len(self.filter.words) == 1 else ""


def parse(text: str) -> Query:
    """Read a query. All words have to match. Raises QueryError.

    A word is text to search for, or ``field:value``. Quotes keep spaces together, and make text of what looks like a
    field: ``client:"Big Corp" "https://example.com"``.
    """
    if len(text) > LONGEST:
        raise QueryError(_("The query is longer than %(most)s characters.") % {"most": LONGEST})
    draft = _Draft()
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        found = _WORD.match(text, at)
        if found is None or text[found.end() : found.end() + 1] in ('"', "\\"):
            raise QueryError(_("%(word)s: a quotation mark is missing at its end.") % {"word": text[at:]})
        draft.add(found[0])
        at = found.end()
    return draft.query()


@dataclass(slots=True)
class _Draft:
    """A query that is being read."""

    queues: list[str] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    arguments: dict[str, str] = field(default_factory=dict)
    single: dict[str, Any] = field(default_factory=dict)  # fields that may be given once

    def add(self, word: str) -> None:
        found = _FIELD.fullmatch(word)
        if found is None:
            self.words.append(_unquoted(word))
            return
        name, value = found[1], _unquoted(found[2])
        if not value and name != "client":
            raise _error(word, _("a value is missing behind the colon"))
        if name.startswith("args."):
            self._add_argument(word, name.removeprefix("args."), value)
        elif name == "queue":
            if not is_queue_name(value):
                raise _error(word, _("no queue can have this name"))
            self.queues.append(value)
        elif name == "state":
            self.states.append(_state(word, value))
        elif name in _READERS:
            self._add_single(word, name, _READERS[name](word, value))
        else:
            raise _unknown_field(word, name)

    def query(self) -> Query:
        outcomes = [state for state in self.states if state in OUTCOMES]
        if outcomes and len(self.states) > 1:
            hint = _("it cannot be combined with another state")
            raise _error(f"state:{outcomes[0]}", hint)
        return Query(
            filter=JobFilter(
                **self.single,
                words=tuple(self.words),
                arguments=self.arguments,
                positions={path.partition(".")[0]: _positions(path.partition(".")[0]) for path in self.arguments},
                outcome=outcomes[0] if outcomes else "",
            ),
            queues=tuple(dict.fromkeys(self.queues)),
            states=("finished",) if outcomes else tuple(dict.fromkeys(self.states)),
        )

    def _add_argument(self, word: str, path: str, value: str) -> None:
        if not all(path.split(".")):
            raise _error(word, _("a name is missing before or behind a dot"))
        if path in self.arguments:
            raise _error(word, _("args.%(path)s is given twice") % {"path": path})
        nested: Any = value
        for name in reversed(path.split(".")):
            nested = {name: nested}
        if hidden(nested) != nested:
            raise _error(word, _("values of this name are hidden, so they cannot be searched for"))
        self.arguments[path] = value

    def _add_single(self, word: str, name: str, value: Any) -> None:
        target = {"before": "until"}.get(name, name)
        if target in self.single:
            raise _error(word, _("%(field)s is given twice") % {"field": name})
        self.single[target] = value


def _text(word: str, value: str) -> str:
    return value


def _moment(word: str, value: str) -> datetime:
    found = past_moment(value)
    if found is None:
        raise _error(word, _("this is not a time; write for example 90s, 30min, 2h, 7d or 2026-01-31T08:00"))
    return found


_READERS: dict[str, Callable[[str, str], Any]] = {
    **dict.fromkeys(("id", "task", "client", "error"), _text),
    **dict.fromkeys(("since", "before"), _moment),
}


def _state(word: str, value: str) -> str:
    allowed = (*LISTS, *OUTCOMES)
    if value not in allowed:
        reason = _("there is no such state; the states are %(states)s") % {"states": ", ".join(allowed)}
        raise _error(word, reason, did_you_mean(value, allowed))
    return value


def _unknown_field(word: str, name: str) -> QueryError:
    reason = _("there is no such field; the fields are %(fields)s. To search for this text, put it in quotes") % {
        "fields": ", ".join(FIELDS)
    }
    known = [field.partition(".")[0] for field in FIELDS]
    return _error(word, reason, did_you_mean(name, [*known, "args"]))


def _error(word: str, reason: str, hint: str = "") -> QueryError:
    return QueryError(f"{word[:100]}: {reason}.{hint}")


def _unquoted(text: str) -> str:
    """Without quotes, and without the backslashes before quotes and backslashes."""
    return re.sub(r'\\(.)|"', lambda found: found[1] or "", text)


def _positions(name: str) -> dict[str, int]:
    """The tasks that have a positional parameter of this name -> its position."""
    found = {each: list(task.parameter_names) for each, task in all_tasks().items()}
    return {each: names.index(name) for each, names in found.items() if name in names}

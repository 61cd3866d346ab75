"""Which jobs: a selection, and the text that people write for it: ``state:dead task:ship since:1h no stock``.

The search, the forms of the admin, rtq_jobs, bulk actions and the jobs that do the rest of one all use it. This is the
only parser of that text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Any

from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_naive, make_aware
from django.utils.translation import gettext as _

from django_rtq.core.broker.redis.commands import Argument
from django_rtq.core.conf.queue_options import is_queue_name
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.tasks.registry import other_names
from django_rtq.core.validation import did_you_mean
from django_rtq.databases.clocks import utc_now
from django_rtq.workflows.store import workflow_of

#: The states that can be listed, and the order of each list. Queued: in the order of the clients' turns at this moment,
#: but all jobs of a client together, although they will be claimed in turn with those of others. Scheduled and
#: retrying: what is due first, and last what paused tasks hold. Running: the oldest first. Dead: the newest first.
#: Finished: those whose outcome is kept, what finished last first.
LISTS = ("queued", "scheduled", "running", "retrying", "dead", "finished")
LONGEST = 500  # characters of a query
#: The order in which states are searched.
STATES = ("running", "dead", "retrying", "queued", "scheduled", "finished")
OUTCOMES = ("succeeded", "cancelled", "expired")  # the states of the list "finished"
WAITING = ("queued", "scheduled", "retrying")
FIELDS = ("id", "task", "client", "workflow", "error", "class", "queue", "state", "since", "before")

_WORD = re.compile(r'(?:[^\s"\\]|\\.|"(?:[^"\\]|\\.)*")+')
_FIELD = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*):(.*)", re.DOTALL)
_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
_AGO = re.compile(rf"(\d{{1,6}})\s*({'|'.join(_UNITS)})")
#: Field of a query -> attribute of Selection, for fields that may be given once.
_SINGLE = {name: "error_class" if name == "class" else name for name in FIELDS if name not in ("queue", "state")}


class QueryError(ValueError):
    """A query cannot be understood. The text names the word, what is wrong with it, and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Some jobs: those for which all of this is true, or those with these ids. Empty: all jobs.

    It is applied inside Redis, so that jobs that do not match are never sent. The scripts do not decode what is escaped
    in JSON. A job of which they cannot tell whether it matches they return as a whole, and Python decides.
    """

    queues: Sequence[str] = ()  # empty: all
    states: Sequence[str] = ()  # of LISTS; empty: all
    #: The full name, or its end after a dot; "=" and the full name: no other. Jobs under aliases match, too.
    task: str = ""
    client: str | None = None  # "" selects the jobs without a client
    error_class: str = ""  # of the newest failure: the full name, or its end after a dot
    error: str = ""  # part of the newest failure's message, or its class as above
    id: str = ""  # the id, or its beginning
    workflow: str = ""  # the id of a workflow, or a name if `workflow_ids` are given
    workflow_ids: Sequence[str] = ()  # of the workflows with that name
    since: datetime | None = None  # dead: died; scheduled, retrying: due; finished: finished; else: became ready
    before: datetime | None = None  # or at that time
    outcome: str = ""  # succeeded, cancelled or expired; "": any state
    text: str = ""  # in the id, task, client, arguments, or newest failure's class or message
    ids: Sequence[str] = ()  # then nothing else is asked
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
        texts, given = [self.text] if self.text else [], list[tuple[str, Any, str]]()
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
        before = {name: getattr(self, name) for name in _SINGLE.values()}
        single = {name: value for name, value in before.items() if value != getattr(ALL_JOBS, name)}
        for name, value, word in given:
            checked = _checked(name, value, word)
            if name in several:
                several[name].append(checked)
            elif _SINGLE[name] in single:
                raise query_error(word, _("%(field)s is given twice") % {"field": name})
            else:
                single[_SINGLE[name]] = checked
        outcome = self.outcome
        states = _within("state", several["state"], [outcome] if outcome else self.states)
        outcomes = [state for state in states if state in OUTCOMES]
        if outcomes and len(states) > 1:
            raise query_error(f"state:{outcomes[0]}", _("it cannot be combined with another state"))
        return replace(
            self,
            **single,
            text=" ".join(texts),
            outcome="".join(outcomes),
            queues=_within("queue", several["queue"], self.queues),
            states=("finished",) if outcomes else states,
        )

    def __str__(self) -> str:
        """The query, without the moment of the snapshot: parse() reads it as the same selection."""
        states = [self.outcome] if self.outcome else self.states
        fields: list[tuple[str, str | None]] = [("queue", queue) for queue in self.queues]
        fields += [("state", state) for state in states]
        fields += [(name, _value_text(getattr(self, attribute))) for name, attribute in _SINGLE.items()]
        words = [f"{name}:{_quoted(value)}" for name, value in fields if value or (name == "client" and value == "")]
        text = [_quoted(self.text, always=bool(_FIELD.fullmatch(self.text)))] if self.text else []
        return " ".join([*words, *text])

    @property
    def anywhere(self) -> Selection:
        """The same in all queues and states, at any time."""
        return replace(self, queues=(), states=(), ids=(), until_ms=None)

    @property
    def is_filtered(self) -> bool:
        """Whether not all jobs of its queues and states match."""
        return self.anywhere != ALL_JOBS

    # -- which jobs match

    def fits(self, job: JobDetails) -> bool:
        """Whether the job matches."""
        at, (kind, message) = job.died_at or job.due_at or job.finished_at or job.ready_at, job.newest_error
        return (
            job.id.startswith(self.id)
            and (not self.workflow or workflow_of(job.id) in self._workflows)
            and (self.since is None or (at is not None and at >= self.since))
            and (self.before is None or (at is not None and at <= self.before))
            and (not self.outcome or job.state == self.outcome)
            and (not self.task or any(_is_or_ends(job.task, name) for name in self._task_names))
            and (self.client is None or job.client == self.client)
            and (not self.error_class or _is_or_ends(kind, self.error_class))
            and (not self.error or _is_or_ends(kind, self.error) or self.error in message)
            and (not self.text or has_text(job, self.text))
        )

    def script_arguments(self, until_ms: int | None = None) -> tuple[Argument, ...]:
        """The first arguments of search_jobs. `until_ms`: no later, whatever else is asked."""
        client = "" if self.client is None else f"={self.client}"
        since, until = (None if at is None else round(at.timestamp() * 1000, 3) for at in (self.since, self.before))
        latest = min((ms for ms in (until, until_ms) if ms is not None), default=None)
        moments = ["" if ms is None else repr(ms) for ms in (since, latest)]
        return ("\n".join(self._task_names), client, self.error_class, self.error, *moments, spellings(self.text))

    @property
    def ids_argument(self) -> str:
        """Which ids match, for scripts."""
        return "\n".join((self.id, *self._workflows))

    @property
    def outcome_texts(self) -> str:
        """Texts that are all in the outcome of a finished job that matches, or in its id: for search_jobs."""
        texts = [in_json(text) for text in (self.error_class, self.error, self.text)]
        texts += [f'"state":"{self.outcome}"'] if self.outcome in ("cancelled", "expired") else []
        task = "" if len(self._task_names) > 1 else self.task.removeprefix("=")
        texts += [in_json(task), in_json(self.client or "")]
        return "\n".join(filter(None, texts))

    @property
    def _workflows(self) -> Sequence[str]:
        return self.workflow_ids or ([self.workflow] if self.workflow else ())

    @property
    def _task_names(self) -> list[str]:
        """The name of the task, and with "=" its aliases: jobs may have any of them."""
        aliases = other_names(lambda name: _is_or_ends(name, self.task)) if self.task else []
        return [self.task, *(f"={alias}" for alias in aliases)]


ALL_JOBS = Selection()


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


def _is_or_ends(full: str, name: str) -> bool:
    """Whether this is the full name, or its end after a dot; with a "=" before it, only the full name."""
    if name.startswith("="):
        return full == name[1:]
    return full == name or full.endswith(f".{name}")


# -- a text anywhere in a job


def in_json(text: str) -> str:
    """How the text is written inside a string of JSON."""
    return serializer.dumps(text)[1:-1]


def spellings(text: str) -> str:
    """How the text may be written in a record or failure, a line each: in JSON, or as it is."""
    return "\n".join(dict.fromkeys((in_json(text), *([text] if "\n" not in text else ()))))


def has_text(job: JobDetails, text: str) -> bool:
    """Whether the text is anywhere in what lists show of a job."""
    kind, message = job.newest_error
    if any(text in part for part in (job.id, job.task, job.client, kind, message)):
        return True
    return any(text in _written(part) for value in (job.args, job.kwargs) for part in _parts(value))


def _written(value: Any) -> str:
    if value is None or isinstance(value, bool | float):
        return json.dumps(value)
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _parts(value: Any) -> Iterator[Any]:
    """Keys and values, at any depth."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _parts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _parts(item)
    else:
        yield value

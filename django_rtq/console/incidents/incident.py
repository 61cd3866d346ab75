"""What an incident is, as a value, and what a detector is: the kind of an incident with all that is known of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Any

from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop, ngettext

from django_rtq.console.formatting import EMPTY_VALUE, format_duration, format_number, names_text, short_name
from django_rtq.console.merging import EVERY, FIRST, LEAST, ONE, by, joined, merge_by
from django_rtq.console.reading.details import QueueDetails
from django_rtq.console.reading.overview import Overview
from django_rtq.console.schedule_status import ScheduleStatus
from django_rtq.core.jobs.job import StrEnum
from django_rtq.databases.outbox import OutboxLag, sum_of_lags

MAX_NAMED = 5  # queues, hosts or workers in one text


class Severity(StrEnum):
    """How bad an incident is, the worst first."""

    CRITICAL = "critical"  # jobs do not run, or may get lost
    WARNING = "warning"
    INFO = "info"  # somebody wants it so

    @property
    def rank(self) -> int:
        """0: the worst."""
        return list(Severity).index(self)


class Action(Enum):
    """What a person can do about an incident: its name, its page, and the field that is in the address of that."""

    SHOW_QUEUE = (gettext_noop("Show the queue"), "queue_change", "queue")
    SHOW_DEAD = (gettext_noop("Show the dead letters"), "queue_change", "queue")  # of its queue, task and error
    SHOW_RETRYING = (gettext_noop("Show the jobs"), "queue_change", "queue")
    SHOW_JOB = (gettext_noop("Show the job"), "job_change", "job_id")
    SHOW_RUNNING = (gettext_noop("Show running jobs"), "job_changelist", "")
    SHOW_WORKERS = (gettext_noop("Show workers"), "worker_changelist", "")
    SHOW_CLIENT = (gettext_noop("Show the client"), "client_change", "")
    SHOW_SCHEDULES = (gettext_noop("Show schedules"), "schedule_changelist", "")
    SHOW_WORKFLOW = (gettext_noop("Show the workflow"), "workflow_change", "workflow")
    SHOW_OUTBOX = (gettext_noop("Show the outbox"), "job_outbox", "")
    REQUEUE, RESUME = ("requeue",), ("resume",)  # a button: these dead letters, its queue


def _sum_of_values(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The values of one incident in several shards: numbers add up, names are joined."""
    sums = dict(found[0])
    for name, value in (pair for values in found[1:] for pair in values.items()):
        if name not in sums or name in ("duration", "share", "share_before"):
            sums[name] = max(sums.get(name, value), value)
        elif isinstance(value, int | float):
            sums[name] += value
        elif isinstance(value, list):
            sums[name] = list(dict.fromkeys([*sums[name], *value]))
    return sums


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Something that is wrong, with its subject: the fields that are not empty."""

    kind: str  # that of its detector
    severity: Severity = field(metadata=by(lambda found: min(found, key=lambda each: each.rank)))
    since: datetime | None = field(default=None, metadata=LEAST)  # when it began, as Redis knows it; None: unknown
    #: It may have begun before `since`, where what Redis was asked for begins.
    began_earlier: bool = field(default=False, metadata=by(any))
    queue: str = ""
    task: str = ""  # the full name
    client: str | None = None  # "" is a client, too
    host: str = ""
    workflow: str = ""  # its id
    shard: str = ""  # its number
    error_class: str = ""  # of the newest failure
    job_id: str = ""
    #: For the text: names, some of which are lists, numbers, and "duration", seconds. `count` chooses between singular
    #: and plural.
    values: Mapping[str, Any] = field(default_factory=dict, metadata=by(_sum_of_values))
    also: tuple[str, ...] = ()  # names of further sentences of its detector
    actions: tuple[Action, ...] = ()
    command: str = field(default="", metadata=FIRST)  # what to run in a shell; "": nothing
    shards: tuple[int, ...] = field(default=(), metadata=EVERY)  # those that have it, if several were asked

    @property
    def id(self) -> str:
        """Kind and subject, which stay the same as long as the incident lasts."""
        client = "" if self.client is None else f"={self.client}"
        more = filter(None, (self.workflow, self.shard))
        return "\n".join((self.kind, self.queue, self.task, client, self.host, *more))

    @property
    def is_critical(self) -> bool:
        """Whether jobs do not run, or may get lost."""
        return self.severity is Severity.CRITICAL

    @property
    def text(self) -> str:
        """What is wrong, in the active language. May contain any character: it has names and messages of errors."""
        before, text = self._sentences()
        return _after(self.where_text, _after(before, text))

    @property
    def short_text(self) -> str:
        """The same without what comes before a colon: the shards, and the subject."""
        before, text = self._sentences()
        return text[:1].upper() + text[1:] if before else text

    @property
    def subject(self) -> str:
        """What it is about, as "Queue mail"; "": nothing but the whole."""
        return str(DETECTORS[self.kind].of.text) % _Blanks(self.values)

    @property
    def where_text(self) -> str:
        """The shards, if several were asked."""
        where = ngettext("Shard %(numbers)s", "Shards %(numbers)s", len(self.shards))
        return where % {"numbers": ", ".join(map(str, self.shards))} if self.shards else ""

    def _sentences(self) -> tuple[str, str]:
        """The subject, or "" if the sentences name it; and these."""
        shown = _Blanks(number=self.values.get("count", 1), subject=self.subject)
        for name, value in self.values.items():
            if isinstance(value, str):
                shown[name] = value
            elif isinstance(value, list):
                shown[name] = names_text(value, MAX_NAMED)
            else:
                shown[name] = format_duration(value) if name == "duration" else format_number(value)
        kind = DETECTORS[self.kind]
        sentences = (kind.text, *(kind.also[name] for name in self.also))
        is_named = any("subject" in _needs(each) for each in sentences)
        return "" if is_named else self.subject, " ".join(str(each % shown) for each in sentences)

    def since_text(self, now: datetime) -> str:
        """Since when, in the active language and the current time zone; "" if that is unknown."""
        if self.since is None:
            return ""
        duration = format_duration(max(0.0, (now - self.since).total_seconds()))
        if self.began_earlier:
            return _("for more than %(duration)s") % {"duration": duration}
        local = localtime(self.since)
        time = f"{local:%H:%M}" if local.date() == localtime(now).date() else f"{local:%Y-%m-%d %H:%M}"
        return _("since %(time)s (%(duration)s)") % {"time": time, "duration": duration}

    def as_dict(self) -> dict[str, Any]:
        """All but the actions, for JSON. Has the text in the active language."""
        subject = {name: getattr(self, name) for name in _SUBJECT if getattr(self, name) not in ("", None)}
        return {
            "kind": self.kind,
            "severity": str(self.severity),
            "since": self.since.isoformat() if self.since else None,
            "began_earlier": self.began_earlier,
            **subject,
            **({"shards": list(self.shards)} if self.shards else {}),
            "values": dict(self.values),
            "text": self.text,
        }

    def dump(self) -> str:
        """All but the actions as JSON, for load()."""
        fields = {name: getattr(self, name) for name in _STORED}
        return json.dumps({**fields, "since": self.since.timestamp() if self.since else None})

    @classmethod
    def load(cls, text: str) -> Incident:
        """From what dump() made, also that of another version of this package."""
        stored = {name: value for name, value in json.loads(text).items() if name in _STORED}
        since = stored.pop("since", None)
        return cls(
            **{
                **stored,
                "severity": Severity(stored["severity"]),
                "also": tuple(stored.get("also", ())),
                "since": None if since is None else datetime.fromtimestamp(since, timezone.utc),
            }
        )


_SUBJECT = ("queue", "task", "client", "host", "workflow", "shard", "error_class", "job_id", "command")
_STORED = ("kind", "severity", "since", "began_earlier", *_SUBJECT, "values", "also")
_FIELDS = {each.name for each in fields(Incident)}


def _after(what: str, text: str) -> str:
    return _("%(what)s: %(text)s") % {"what": what, "text": text} if what else text


def worst_of(incidents: Sequence[Incident]) -> str:
    """The status of a system with these incidents, the worst of which comes first: "critical", "warning" or "ok"."""
    return "ok" if not incidents or incidents[0].severity is Severity.INFO else str(incidents[0].severity)


def worst_first(incidents: Iterable[Incident]) -> list[Incident]:
    """The critical ones, then warnings, then what somebody wants so."""
    return sorted(incidents, key=lambda incident: incident.severity.rank)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What detectors look at in a Redis, and what they find there; or in all shards together."""

    overview: Overview = field(metadata=ONE)
    lag: OutboxLag | None = field(default=None, metadata=by(sum_of_lags))
    schedules: Sequence[ScheduleStatus] = ()
    oldest_seconds: float | None = None  # that a job may wait; None: what the settings say
    host: str = ""  # only the workers of this host are of interest
    place: str = ""  # the Redis that it is about
    #: Queues that nobody serves, of which some are declared only.
    unserved: Sequence[str] = field(default=(), metadata=by(lambda names: sorted({*joined(names)})))
    #: The worst first. Of one kind and subject they are one, however many shards have it.
    incidents: Sequence[Incident] = field(
        default=(), metadata=by(lambda found: worst_first(merge_by("id", joined(found))))
    )

    @property
    def queues(self) -> list[QueueDetails]:
        """The details of all queues."""
        return [row.details for row in self.overview.queues]

    def ago(self, seconds: float | None) -> datetime | None:
        """The moment so many seconds before the server's time; None if these are unknown."""
        return None if seconds is None else self.overview.now - timedelta(seconds=seconds)


Find = Callable[[Seen], Iterator[Incident]]
Texts = Mapping[str, Any]  # lazy ones, by name
DETECTORS: dict[str, Detector] = {}  # by kind


@dataclass(slots=True)
class Detector:
    """A kind of incident, which is named as the function that finds it."""

    of: Subject
    title: Any  # the kind, for people
    text: Any
    actions: tuple[Action, ...]
    also: Texts  # further sentences, which some incidents of the kind have
    severities: tuple[Severity, ...]  # the usual one, and what it may be else
    kind: str = ""
    find: Find = field(init=False)

    def __call__(self, find: Find) -> Detector:
        return self.named(find.__name__, find)

    def named(self, kind: str, find: Find) -> Detector:
        """Declare it under another name than that of the function."""
        self.kind, self.find, DETECTORS[kind] = kind, find, self
        return self

    def incident(self, *, also: Collection[str] | None = None, **facts: Any) -> Incident:
        """One of this kind. `facts`: its fields, and values for the text, those that are known.

        `also`: of these further sentences it has those whose values are known; by default of all.
        """
        names = {name: facts[name] for name in ("host", "task", "client") if facts.get(name) is not None}
        values = {
            "name": facts.get("queue"),
            "shard": facts.get("shard"),
            **{
                name: (short_name(text) if name == "task" else text[:80]) or EMPTY_VALUE for name, text in names.items()
            },
            **{name: value for name, value in facts.items() if name not in _FIELDS},
            **facts.get("values", {}),
        }
        values = {name: value for name, value in values.items() if value not in (None, "")}
        more = [name for name in (self.also if also is None else also) if _needs(self.also[name]) <= values.keys()]
        chosen = {"severity": self.severities[0], "actions": self.actions, **facts, "kind": self.kind, "values": values}
        return Incident(**{name: chosen[name] for name in chosen.keys() & _FIELDS}, also=tuple(more))


class _Blanks(dict[str, Any]):
    """Values of a text. Those that are unknown are empty."""

    def __missing__(self, name: str) -> str:
        self[name] = ""
        return ""


def _needs(text: Any) -> set[str]:
    """The names of the values that a text has."""
    asked = _Blanks(number=1)
    str(text % asked)
    return asked.keys() - {"number"}


@dataclass(frozen=True, slots=True)
class Subject:
    """What incidents are about. Declares kinds of them, each by the function that finds it.

    A kind has a name and a sentence for people, which are lazy texts, and actions, if not those of its subject. The
    sentence names the subject as `%(subject)s`, or else the subject and a colon are put before it.
    """

    text: Any = ""
    actions: tuple[Action, ...] = ()

    def _declare(
        self, severity: Severity, title: Any, text: Any, *actions: Action, also: Texts | None = None, worst: str = ""
    ) -> Detector:
        severities = (severity, *([Severity(worst)] if worst else []))
        return Detector(self, title, text, actions or self.actions, also or {}, severities)

    def critical(self, title: Any, text: Any, *actions: Action, **more: Any) -> Detector:
        """A kind that is critical."""
        return self._declare(Severity.CRITICAL, title, text, *actions, **more)

    def warning(self, title: Any, text: Any, *actions: Action, **more: Any) -> Detector:
        """A kind that is a warning; some of its incidents are as bad as `worst`."""
        return self._declare(Severity.WARNING, title, text, *actions, **more)

    def info(self, title: Any, text: Any, *actions: Action, **more: Any) -> Detector:
        """A kind that somebody wants so."""
        return self._declare(Severity.INFO, title, text, *actions, **more)


SYSTEM, TASK = Subject(), Subject("%(task)s")
QUEUE = Subject(gettext_lazy("Queue %(name)s"), (Action.SHOW_QUEUE,))
HOST = Subject(gettext_lazy("Host %(host)s"), (Action.SHOW_WORKERS,))
CLIENT = Subject(gettext_lazy("Client %(client)s"), (Action.SHOW_CLIENT,))
WORKFLOW = Subject(gettext_lazy("Workflow %(name)s"), (Action.SHOW_WORKFLOW,))
SHARD = Subject(gettext_lazy("Shard %(shard)s"))

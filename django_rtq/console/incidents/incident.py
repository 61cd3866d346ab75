"""What an incident is, as a value, and what a detector is: the kind of an incident with all that is known of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_rtq.console.formatting import format_duration, format_number
from django_rtq.console.inspector.overview import Overview
from django_rtq.console.merging import EVERY, FIRST, LEAST, by
from django_rtq.console.schedule_status import KnownSchedules
from django_rtq.core.jobs.job import StrEnum
from django_rtq.databases.outbox import OutboxLag


class Severity(StrEnum):
    """How bad an incident is."""

    CRITICAL = "critical"  # jobs do not run, or may get lost
    WARNING = "warning"
    INFO = "info"  # somebody wants it so


class Action(StrEnum):
    """What a person can do about an incident. The admin has a link or a button for each."""

    SHOW_QUEUE = "show_queue"
    SHOW_DEAD = "show_dead"  # the dead letters of its queue, task and error
    SHOW_RETRYING = "show_retrying"
    REQUEUE = "requeue"  # these dead letters
    RESUME = "resume"  # its queue
    SHOW_JOB = "show_job"
    SHOW_RUNNING = "show_running"
    SHOW_WORKERS = "show_workers"
    SHOW_CLIENT = "show_client"
    SHOW_SCHEDULES = "show_schedules"
    SHOW_WORKFLOW = "show_workflow"


def _sum_of_values(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The values of one incident in several shards: numbers add up, names of queues are joined."""
    sums = dict(found[0])
    for name, value in (pair for values in found[1:] for pair in values.items()):
        if name not in sums or name in ("duration", "share", "share_before"):
            sums[name] = max(sums.get(name, value), value)
        elif isinstance(value, int | float):
            sums[name] += value
        elif name in ("names", "queues"):
            sums[name] = ", ".join(dict.fromkeys([*sums[name].split(", "), *value.split(", ")]))
    return sums


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Something that is wrong, with its subject: the fields that are not empty."""

    kind: str  # that of its detector
    severity: Severity = field(metadata=by(lambda found: min(found, key=list(Severity).index)))
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
    #: For the text: names, numbers, and "duration", seconds. `count` chooses between singular and plural.
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
        return self.where_text + self._sentences(self.values)

    @property
    def where_text(self) -> str:
        """The shards, if several were asked."""
        where = ngettext("Shard %(numbers)s: ", "Shards %(numbers)s: ", len(self.shards))
        return where % {"numbers": ", ".join(map(str, self.shards))} if self.shards else ""

    def subject_and_text(self) -> tuple[str, str]:
        """What the text begins with, as "Queue mail", or ""; and the text, without that if a colon follows it."""
        values = {name: f"\0{value}\0" if name in _NAMES else value for name, value in self.values.items()}
        marked = self._sentences(values)
        found = _BEGINNING.match(marked)
        subject, text = found[1] if found else "", marked
        if found and found[2]:
            text = marked[found.end() :]
            text = text[:1].upper() + text[1:]
        return subject.replace("\0", ""), text.replace("\0", "")

    def _sentences(self, values: Mapping[str, Any]) -> str:
        shown: dict[str, Any] = {"number": values.get("count", 1)}
        for name, value in values.items():
            if isinstance(value, str):
                shown[name] = value
            else:
                shown[name] = format_duration(value) if name == "duration" else format_number(value)
        kind = DETECTORS[self.kind]
        return " ".join(str(each % shown) for each in (kind.text, *(kind.also[name] for name in self.also)))

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
_NAMES = ("name", "host", "client", "task", "shard")  # the values that name a subject
_BEGINNING = re.compile(r"([^\0:\uff1a]{0,20}\0[^\0]*\0)([:\uff1a]\s*)?")
_STORED = ("kind", "severity", "since", "began_earlier", *_SUBJECT, "values", "also")


def worst_of(incidents: Sequence[Incident]) -> str:
    """The status of a system with these incidents, the worst of which comes first: "critical", "warning" or "ok"."""
    return "ok" if not incidents or incidents[0].severity is Severity.INFO else str(incidents[0].severity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What detectors look at."""

    overview: Overview
    lag: OutboxLag | None = None
    schedules: KnownSchedules | None = None
    oldest_seconds: float | None = None  # that a job may wait; None: what the settings say
    host: str = ""  # only the workers of this host are of interest


Find = Callable[[Seen], Iterator[Incident]]
DETECTORS: dict[str, detector] = {}  # by kind


class detector:
    """Declares a kind of incident, which is named as the function that finds it.

    It says how bad it is (usually), its sentence (a lazy text, which may name the queue and the host), what a person
    can do, and further sentences, which some incidents of the kind have.
    """

    find: Find

    def __init__(
        self, severity: Severity, text: Any, *actions: Action, also: Mapping[str, Any] | None = None, worst: str = ""
    ) -> None:
        self.severities = (severity, *([Severity(worst)] if worst else []))
        self.text, self.actions, self.also, self.kind = text, actions, also or {}, ""

    def __call__(self, find: Find) -> detector:
        return self.named(find.__name__, find)

    def named(self, kind: str, find: Find) -> detector:
        """Declare it under another name than that of the function."""
        self.kind, self.find, DETECTORS[kind] = kind, find, self
        return self

    def incident(self, *, queue: str = "", host: str = "", **fields: Any) -> Incident:
        """One of this kind."""
        names = {name: text for name, text in (("name", queue), ("host", host)) if text}
        fields = {"severity": self.severities[0], "actions": self.actions, "queue": queue, "host": host, **fields}
        return Incident(**{**fields, "kind": self.kind, "values": {**names, **fields.get("values", {})}})

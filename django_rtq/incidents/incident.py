"""One incident, as a value."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from django_rtq.formatting import format_duration, format_number
from django_rtq.incidents.texts import DURATIONS, sentence
from django_rtq.jobs.job import StrEnum


class Severity(StrEnum):
    """How bad an incident is."""

    CRITICAL = "critical"  # jobs do not run, or may get lost
    WARNING = "warning"
    INFO = "info"  # somebody wants it so


def worst_of(incidents: Sequence[Incident]) -> str:
    """The status of a system with these incidents, the worst of which comes first: "critical", "warning" or "ok"."""
    return "ok" if not incidents or incidents[0].severity is Severity.INFO else str(incidents[0].severity)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Something that is wrong, with its subject: the fields that are not empty."""

    kind: str  # one of incident_options.KINDS
    severity: Severity
    since: datetime | None = None  # when it began, as Redis knows it; None: unknown
    #: It may have begun before `since`, where what Redis was asked for begins.
    began_earlier: bool = False
    queue: str = ""
    task: str = ""  # the full name
    client: str | None = None  # "" is a client, too
    host: str = ""
    error_class: str = ""  # of the newest failure
    job_id: str = ""
    #: For the text; numbers, names, and seconds where the name is one of texts.DURATIONS. Secrets are hidden.
    values: Mapping[str, Any] = field(default_factory=dict)
    also: tuple[str, ...] = ()  # names of further sentences in texts.TEXTS
    actions: tuple[Action, ...] = ()
    command: str = ""  # what to run in a shell; "": nothing

    @property
    def id(self) -> str:
        """The same for as long as it is the same incident."""
        client = "" if self.client is None else f"={self.client}"
        return "\n".join((self.kind, self.queue, self.task, client, self.host))

    @property
    def is_critical(self) -> bool:
        """Whether jobs do not run, or may get lost."""
        return self.severity is Severity.CRITICAL

    @property
    def text(self) -> str:
        """What is wrong, in the active language. May contain any character: it has names and messages of errors."""
        shown: dict[str, Any] = {"number": self.values.get("count", 1)}  # chooses between singular and plural
        for name, value in self.values.items():
            if isinstance(value, str):
                shown[name] = value
            else:
                shown[name] = format_duration(value) if name in DURATIONS else format_number(value)
        return " ".join(sentence(name, shown) for name in (self.kind, *self.also))

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
        found = {name: value for name, value in json.loads(text).items() if name in _STORED}
        since = found.pop("since", None)
        return cls(
            **{
                **found,
                "severity": Severity(found["severity"]),
                "also": tuple(found.get("also", ())),
                "since": None if since is None else datetime.fromtimestamp(since, timezone.utc),
            }
        )


_SUBJECT = ("queue", "task", "client", "host", "error_class", "job_id", "command")
_STORED = ("kind", "severity", "since", "began_earlier", *_SUBJECT, "values", "also")

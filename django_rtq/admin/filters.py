"""The filter of a list of jobs: read from a query string or a form, and written back as URL parameters."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from django.http import QueryDict
from django.utils.dateparse import parse_datetime
from django.utils.timezone import get_current_timezone, is_naive, localtime, make_aware
from django.utils.translation import gettext as _

from django_rtq.admin.query_params import get_client, get_text
from django_rtq.inspector.jobs.job_filter import JobFilter

_CLASS = re.compile(r"[A-Za-z_][\w.]*|")  # the name of a class, or nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterParams:
    """A filter as it was entered: strings, each "" if not given."""

    task: str = ""  # the full name, or the end of it
    client: str = ""
    error: str = ""  # a class: the full name, or the end of it
    id: str = ""  # or a prefix
    since: str = ""  # in the current time zone: 2026-11-21T08:15
    until: str = ""

    @classmethod
    def read(cls, data: QueryDict) -> FilterParams:
        """From a query string or a form. Invalid values are ignored."""
        texts = {name: get_text(data, name) for name in ("task", "error", "id")}
        return cls(client=get_client(data), **texts, **read_moments(data))

    @classmethod
    def of(cls, wanted: JobFilter) -> FilterParams | None:
        """What the form of a list says for a filter of the search. None if it cannot say it."""
        found = cls(
            task=wanted.task,
            client=wanted.client or "",
            error=wanted.error if _CLASS.fullmatch(wanted.error) else "",
            id=wanted.id,
            since=_entered(wanted.since),
            until=_entered(wanted.until),
        )
        asked = replace(found.filter, error=found.error, error_class="", since=wanted.since, until=wanted.until)
        return found if asked == wanted else None

    def __bool__(self) -> bool:
        return any(self.query.values())

    @property
    def query(self) -> dict[str, str]:
        """As URL parameters."""
        return asdict(self)

    @property
    def filter(self) -> JobFilter:
        """As the inspector expects it."""
        return JobFilter(
            task=self.task,
            client=self.client or None,
            error_class=self.error,
            id=self.id,
            since=parse_moment(self.since),
            until=parse_moment(self.until),
        )

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Pairs of a label and a value, for confirmation pages."""
        titles = {
            "task": _("Task"),
            "client": _("Client"),
            "error": _("Error class"),
            "id": _("ID starts with"),
            "since": _("From"),
            "until": _("Until"),
        }
        return [(titles[name], text) for name, text in self.query.items() if text]


def _entered(moment: datetime | None) -> str:
    """As a form has it: in the current time zone, to the second."""
    return localtime(moment).replace(tzinfo=None).isoformat(timespec="seconds") if moment else ""


def read_moments(data: QueryDict) -> dict[str, str]:
    """The parameters `since` and `until`, each "" if it is missing or invalid."""
    moments = {name: get_text(data, name, 40) for name in ("since", "until")}
    return {name: text if parse_moment(text) else "" for name, text in moments.items()}


def parse_moment(text: str) -> datetime | None:
    """Parse a datetime from a form, in the current time zone. None if it is invalid."""
    try:
        moment = parse_datetime(text) if text else None
    except ValueError:
        return None
    if moment is None or not 1970 < moment.year < 3000:
        return None
    return make_aware(moment, get_current_timezone()) if is_naive(moment) else moment

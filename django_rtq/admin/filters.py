"""Which jobs of a queue are meant: read from an address or a form, written back into addresses, said in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime

from django.http import QueryDict
from django.utils.dateparse import parse_datetime
from django.utils.timezone import get_current_timezone, is_naive, make_aware
from django.utils.translation import gettext as _

from django_rtq.admin.query_params import get_text
from django_rtq.inspector.job_list import JobFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterParams:
    """A filter as people write it: texts, each "" when it is not given."""

    task: str = ""  # its full name, or the end of it
    client: str = ""
    error: str = ""  # a class: its full name, or the end of it
    id: str = ""  # or the beginning of one
    since: str = ""  # a moment in the zone of the reader: 2026-11-21T08:15
    until: str = ""

    @classmethod
    def read(cls, given: QueryDict) -> FilterParams:
        """What the address or the form says. What makes no sense is left out."""
        texts = {name: get_text(given, name) for name in ("task", "client", "error", "id")}
        moments = {name: get_text(given, name, 40) for name in ("since", "until")}
        return cls(**texts, **{name: text if parse_moment(text) else "" for name, text in moments.items()})

    def __bool__(self) -> bool:
        return any(self.query.values())

    @property
    def query(self) -> dict[str, str]:
        """As the parameters of an address."""
        return asdict(self)

    @property
    def filter(self) -> JobFilter:
        """As the inspector takes it."""
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
        """In words, for a page that asks whether this is meant."""
        titles = {
            "task": _("Task"),
            "client": _("Client"),
            "error": _("Error class"),
            "id": _("ID starts with"),
            "since": _("From"),
            "until": _("Until"),
        }
        return [(titles[name], text) for name, text in self.query.items() if text]


def parse_moment(text: str) -> datetime | None:
    """A moment as forms write it, in the zone of the reader; None for what is none."""
    try:
        moment = parse_datetime(text) if text else None
    except ValueError:
        return None
    if moment is None or not 1970 < moment.year < 3000:
        return None
    return make_aware(moment, get_current_timezone()) if is_naive(moment) else moment

"""The filter of a list of jobs as fields of a form, which are the parameters of its URL, too."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

from django.http import QueryDict
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from django_rtq.console.admin.query_params import get_client, get_text
from django_rtq.console.inspector.jobs.job_filter import JobFilter
from django_rtq.console.inspector.selection import past_moment

_CLASS = re.compile(r"[A-Za-z_][\w.]*|")  # the name of a class, or nothing


def read_filter(data: QueryDict) -> JobFilter:
    """From a query string or a form. Invalid values are ignored."""
    return JobFilter(
        task=get_text(data, "task"),
        client=get_client(data) or None,
        error_class=get_text(data, "error"),
        id=get_text(data, "id"),
        since=past_moment(get_text(data, "since", 40)),
        until=past_moment(get_text(data, "until", 40)),
    )


def filter_query(wanted: JobFilter) -> dict[str, str]:
    """The fields as they are entered, each "" if it is empty. Times are in the current time zone."""
    return {
        "task": wanted.task,
        "client": wanted.client or "",
        "error": wanted.error_class,
        "id": wanted.id,
        "since": _entered(wanted.since),
        "until": _entered(wanted.until),
    }


def query_of_search(wanted: JobFilter) -> dict[str, str] | None:
    """What the form of a list says for a filter of the search. None if it cannot say it."""
    if not wanted.error_class and _CLASS.fullmatch(wanted.error):
        wanted = replace(wanted, error_class=wanted.error, error="")
    unsayable = replace(wanted, task="", client=None, error_class="", id="", since=None, until=None)
    return None if unsayable or wanted.client == "" else filter_query(wanted)


def filter_facts(wanted: JobFilter) -> list[tuple[str, str]]:
    """Pairs of a label and a value, for confirmation pages."""
    titles = {
        "task": _("Task"),
        "client": _("Client"),
        "error": _("Error class"),
        "id": _("ID starts with"),
        "since": _("From"),
        "until": _("Until"),
    }
    return [(titles[name], text) for name, text in filter_query(wanted).items() if text]


def _entered(moment: datetime | None) -> str:
    """In the current time zone, to the second."""
    return localtime(moment).replace(tzinfo=None).isoformat(timespec="seconds") if moment else ""

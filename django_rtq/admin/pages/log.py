"""The log: who did what, when, with how many jobs."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils.translation import gettext as _

from django_rtq.admin import permissions, query_params
from django_rtq.admin.action_log import LogFilter, read_log
from django_rtq.admin.display.log import ACTION_LABELS, log_rows
from django_rtq.admin.filters import read_moments
from django_rtq.admin.pages.page_admin import PageAdmin, Route
from django_rtq.inspector.selection import past_moment

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class LogParams:
    """A filter as it was entered: strings, each "" if not given."""

    user: str = ""
    action: str = ""
    queue: str = ""
    task: str = ""
    client: str = ""
    job: str = ""
    since: str = ""  # in the current time zone
    until: str = ""

    @classmethod
    def read(cls, data: QueryDict) -> LogParams:
        """From a query string. Invalid values are ignored."""
        texts = {name: query_params.get_text(data, name) for name in ("user", "action", "queue", "task", "job")}
        return cls(client=query_params.get_client(data), **texts, **read_moments(data))

    @property
    def filter(self) -> LogFilter:
        """As read_log() expects it."""
        return LogFilter(
            user=self.user,
            action=self.action,
            queue=self.queue,
            task=self.task,
            client=self.client or None,
            job=self.job,
            since=past_moment(self.since),
            until=past_moment(self.until),
        )


class LogAdmin(PageAdmin):
    """The page of the log."""

    def routes(self) -> list[Route]:
        return [Route("", "changelist", self.log, permissions.LOG)]

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return super().has_view_permission(request, obj) and request.user.has_perm(permissions.LOG)

    def log(self, request: HttpRequest) -> HttpResponse:
        """The entries that match, the newest first."""
        params, before = LogParams.read(request.GET), query_params.get_int(request.GET, "before", 0)
        entries = read_log(params.filter, limit=PAGE_SIZE + 1, before=before)
        given = asdict(params)
        more = {**given, "before": entries[PAGE_SIZE - 1].id} if len(entries) > PAGE_SIZE else {}
        context = {
            "title": _("Log"),
            "rows": log_rows(entries[:PAGE_SIZE], self.url),
            "given": given,
            "actions": [{"name": name, "title": title} for name, title in ACTION_LABELS.items()],
            "is_filtered": any(given.values()),
            "unfiltered_url": self.url("log_changelist"),
            "first_url": self.url("log_changelist", query=given) if before else "",
            "next_url": self.url("log_changelist", query=more) if more else "",
        }
        return self.render(request, "log.html", context)

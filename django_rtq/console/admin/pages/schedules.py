"""The admin of schedules: create, change, enable, disable and run them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.views.main import SEARCH_VAR
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from django_rtq.console import permissions
from django_rtq.console.admin import query_params
from django_rtq.console.admin.forms import restore_secrets
from django_rtq.console.admin.navigation import navigation, page_url
from django_rtq.console.admin.pages.page_admin import all_shards_of, show
from django_rtq.console.nouns import Place
from django_rtq.console.reading.readers import Readers, readers_of
from django_rtq.console.redaction import hidden, hidden_args
from django_rtq.console.render.html import Viewer, cell_html, tables
from django_rtq.console.schedule_status import ScheduleStatus
from django_rtq.console.shards import AllShards
from django_rtq.console.subjects.schedules import SCHEDULES
from django_rtq.core.broker.task_backends import shard_numbers
from django_rtq.core.tasks import registry
from django_rtq.exceptions import RTQError
from django_rtq.models import Schedule

EMPTY_VALUE = "-"
MAX_SHOWN = 200  # rows of a table
_DECLARED = gettext_lazy("Declared in the code and in the settings")


class TaskInput(forms.TextInput):
    """A text field that suggests the registered tasks. The model validates the name."""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        tasks = format_html_join("", '<option value="{}"></option>', ((name,) for name in _task_names()))
        field = super().render(name, value, {**(attrs or {}), "list": f"{name}-names"}, renderer)
        return format_html('{}<datalist id="{}-names">{}</datalist>', field, name, tasks)


class ScheduleForm(forms.ModelForm):
    """The form of a schedule. A hidden secret that is not changed keeps its value."""

    class Meta:
        widgets = {"task": TaskInput(attrs={"class": "vTextField"})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._redacted_arguments = _redacted_arguments(self.instance, may_edit=True)
        self.initial.update(self._redacted_arguments)

    def clean_args(self) -> Any:
        return restore_secrets(self.cleaned_data["args"], self._redacted_arguments["args"], self.instance.args)

    def clean_kwargs(self) -> Any:
        return restore_secrets(self.cleaned_data["kwargs"], self._redacted_arguments["kwargs"], self.instance.kwargs)


class ScheduleAdmin(admin.ModelAdmin):
    """The list of schedules and the form of each."""

    form = ScheduleForm
    change_list_template = "admin/django_rtq/schedules.html"
    list_display = ("name", "task", "when", "next_run", "last_run", "enabled")
    list_filter = ("enabled",)
    search_fields = ("name", "task", "client", "queue")
    actions = ("run_now", "enable", "disable")
    readonly_fields = ("when", "next_run", "last_run")
    fieldsets = (
        (None, {"fields": ("name", "task", "args", "kwargs", "enabled")}),
        (pgettext_lazy("of a schedule", "Time"), {"fields": ("cron", "every", "tz", "missed", "cap", "overlap")}),
        (gettext_lazy("Queue and client"), {"fields": ("queue", "client")}),
        (gettext_lazy("Next and last run"), {"fields": ("when", "next_run", "last_run")}),
    )

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The standard list, with our navigation links above it."""
        context = {
            "title": capfirst(str(self.opts.verbose_name_plural)),
            **navigation(request, self.admin_site, self.opts),
            **(extra_context or {}),
        }
        page = super().changelist_view(request, context)
        if "cl" in (found := getattr(page, "context_data", {})):
            found["cl"].result_list = rows = list(found["cl"].result_list)
            every = attach_status(rows, request)
            found |= {"of_all_shards": all_shards_of(request), **self._declared(request, every)}
        return page

    def _declared(self, request: HttpRequest, every: Iterable[ScheduleStatus]) -> dict[str, Any]:
        """The schedules that are no rows, and fit the search of the list."""
        wanted = query_params.get_text(request.GET, SEARCH_VAR).casefold()
        may_see = request.user.has_perm(permissions.VIEW)

        def url(name: str, *args: str, **options: Any) -> str:
            is_here = name == "schedule_changelist"
            return page_url(self.admin_site.name, name, *args, **options) if may_see and not is_here else ""

        declared = (row for row in every if row.row is None)
        rows = [row for row in declared if any(wanted in text.casefold() for text in (row.name, row.task, row.queue))]
        shown = tables(SCHEDULES, rows[:MAX_SHOWN], Viewer(url=url, may=request.user.has_perm), label=_DECLARED)
        return {"tables": shown, "more_schedules": max(0, len(rows) - MAX_SHOWN)}

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Schedule | None:
        """The schedule with its status."""
        row: Schedule | None = super().get_object(request, object_id, from_field)
        if row is not None:
            attach_status([row], request)
            if not self.has_change_permission(request, row):  # read-only: the secrets are never saved
                vars(row).update(_redacted_arguments(row, may_edit=False))
        return row

    # -- permissions

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Needs enqueue_job too: a schedule enqueues jobs of any task with any arguments."""
        return super().has_add_permission(request) and request.user.has_perm(permissions.ENQUEUE)

    def has_change_permission(self, request: HttpRequest, obj: Schedule | None = None) -> bool:
        """Needs enqueue_job too: for changing, enabling and running."""
        return super().has_change_permission(request, obj) and request.user.has_perm(permissions.ENQUEUE)

    def has_disable_permission(self, request: HttpRequest) -> bool:
        """Disabling and deleting do not need enqueue_job."""
        return super().has_change_permission(request)

    # -- columns

    @admin.display(description=gettext_lazy("when"))
    def when(self, row: Schedule) -> str:
        """The schedule in words, and why it does not run."""
        status, text = _status_of(row), self._cell(row, "when")
        problem = status.problem if status else ""
        return format_html("{}<div><strong>{}</strong></div>", text, problem) if problem else text

    @admin.display(description=gettext_lazy("next run"))
    def next_run(self, row: Schedule) -> str:
        """The time of the next run, and the time until then."""
        status = _status_of(row)
        if row.enabled and status is None and "status" in vars(row):
            return _("not in Redis yet: run rtq_schedule sync")
        return self._cell(row, "next_slot")

    @admin.display(description=gettext_lazy("last run"))
    def last_run(self, row: Schedule) -> str:
        """The time of the last run, how long ago, and its job."""
        return self._cell(row, "last_slot")

    def _cell(self, row: Schedule, column: str) -> str:
        status, url = _status_of(row), partial(page_url, self.admin_site.name)
        return cell_html(SCHEDULES, column, status, url) if status and status.entry else EMPTY_VALUE

    # -- actions

    @admin.action(permissions=["change"], description=gettext_lazy("Run now"))
    def run_now(self, request: HttpRequest, rows: QuerySet[Schedule]) -> None:
        """Enqueue a job of each now. Their regular runs are not affected."""

        def run(row: Schedule) -> str:
            entry = row.entry()
            return entry.task.delay(*entry.schedule.args, **entry.schedule.kwargs).id

        self._each(request, rows, run, _("Run now: job %(id)s."))

    @admin.action(permissions=["change"], description=gettext_lazy("Enable"))
    def enable(self, request: HttpRequest, rows: QuerySet[Schedule]) -> None:
        """Enable them from now on."""
        self._each(request, rows.filter(enabled=False), partial(Schedule.switch, on=True), _("Enabled."))

    @admin.action(permissions=["disable"], description=gettext_lazy("Disable"))
    def disable(self, request: HttpRequest, rows: QuerySet[Schedule]) -> None:
        """Disable them."""
        self._each(request, rows.filter(enabled=True), partial(Schedule.switch, on=False), _("Disabled."))

    def _each(
        self, request: HttpRequest, rows: QuerySet[Schedule], act: Callable[[Schedule], object], done: str
    ) -> None:
        """Do it with each of them. `done`: the entry of the log, in which `id` is what `act` returns."""
        for row in rows:
            try:
                text = done % {"id": act(row)}
            except (RTQError, TypeError, ValueError, ValidationError) as error:
                why = " ".join(getattr(error, "messages", [str(error)]))
                self.message_user(request, f"{_('Schedule')} {row}: {why}", messages.ERROR)
            else:
                self.log_change(request, row, text)
                self.message_user(request, f"{_('Schedule')} {row}: {text}")


def _readers_of_all(request: HttpRequest) -> Readers:
    """That of all shards, which the rows of the database are about. Raises RTQError."""
    if of_all := all_shards_of(request):
        return of_all
    if len(shard_numbers()) < 2:
        return readers_of()
    return show(request, Place(readers=AllShards())).readers


def attach_status(rows: Iterable[Schedule], request: HttpRequest) -> Sequence[ScheduleStatus]:
    """Set `status` on each row whose Redis answers; None: it does not have what the database has. Returns those of all
    schedules; none if Redis does not answer, which is told."""
    try:
        readers = _readers_of_all(request)
        every = SCHEDULES.read(readers)
    except RTQError as error:
        messages.error(request, str(error))
        return ()
    by_name = {each.name: each for each in every if each.row is not None}
    for row in rows:
        status = by_name.get(row.name)
        if status is None or status.row != row.as_row():
            status = None
        elif status.entry is not None and not status.enabled:
            status = replace(status, problem="")
        if status is not None or not readers.silent:
            vars(row)["status"] = status
    return every


def _status_of(row: Schedule) -> ScheduleStatus | None:
    return getattr(row, "status", None)


def _redacted_arguments(row: Schedule, *, may_edit: bool) -> dict[str, Any]:
    """The arguments with secrets hidden."""
    return {"args": hidden_args(row.task, row.args, shows_unknown=may_edit), "kwargs": hidden(row.kwargs)}


def _task_names() -> list[str]:
    """The tasks that people may schedule."""
    return [name for name, task in registry.all_tasks().items() if not task.internal]

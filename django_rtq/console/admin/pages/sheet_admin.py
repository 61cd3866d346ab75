"""The pages of a sheet: its list, and what is done with one row, asked before where its verb says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from django_rtq.console.acting.verb import Said, Switch, Target, Verb
from django_rtq.console.admin import query_params
from django_rtq.console.admin.action_log import log_action
from django_rtq.console.admin.pages.page_admin import PageAdmin, Route, is_typed, place_of
from django_rtq.console.render.html import listing
from django_rtq.console.render.sheet import Sheet, Wanted
from django_rtq.models import AdminEntry

MAX_PAGES = 10**6
_LEVELS = {"done": messages.SUCCESS, "nothing": messages.WARNING, "refused": messages.WARNING}


class SheetAdmin(PageAdmin):
    """The pages of a sheet. Without a page of one row, actions lead back to the list."""

    sheet: ClassVar[Sheet[Any]]
    page: Callable[..., HttpResponse] | None = None  # of one row

    def routes(self) -> list[Route]:
        of_row = [Route("<str:name>/", "change", self.page)] if self.page else []
        return [Route("", "changelist", self.list), *self.action_routes(), *of_row]

    def action_routes(self, path: str = "<str:name>/", actions: Sequence[Verb | Switch] = ()) -> list[Route]:
        """The addresses of what can be done with one row. A form is a method of the name of its verb."""
        verbs = (verb for action in actions or self.sheet.actions for verb in action.verbs)
        by_name = {verb.name: verb for verb in verbs if not (verb.jobs or verb.page)}
        return [
            Route(
                f"{path}{name.replace('_', '-')}/",
                name,
                getattr(self, name, None) or partial(self.act, verb=verb),
                verb.permission,
                "BOTH" if verb.question else "POST",
            )
            for name, verb in by_name.items()
        ]

    # -- views

    def list(self, request: HttpRequest) -> HttpResponse:
        """The list: filtered, sorted and paged."""
        return self.listed(request, self.sheet)

    def listed(self, request: HttpRequest, sheet: Sheet[Any]) -> HttpResponse:
        """The list of any sheet."""
        wanted = wanted_in(request, sheet)
        found = sheet.find(place_of(request).readers, wanted)
        context = listing(sheet, found, wanted, self.viewer(request))
        return self.render(request, "list.html", {**context, **self.list_context(request, found.rows)})

    def act(self, request: HttpRequest, name: str = "", *, verb: Verb) -> HttpResponse:
        """Do something with one row, or ask before."""
        return self.act_on(request, verb, self.target(request, name))

    def act_on(self, request: HttpRequest, verb: Verb, target: Target) -> HttpResponse:
        """The same with what was found."""
        if verb.question and not self.is_confirmed(request, verb, target):
            return self.ask(request, verb, target)
        said = self.run(request, verb, target)
        if said.problem and said.how != "refused":
            messages.error(request, said.problem)
        messages.add_message(request, _LEVELS[said.how], said.text)
        is_refused = said.how == "refused" and verb.question
        return HttpResponseRedirect(request.get_full_path() if is_refused else self.back(request, verb, target))

    def ask(self, request: HttpRequest, verb: Verb, target: Target, /, **more: Any) -> HttpResponse:
        """The page that asks, with what is lost."""
        words = target.words
        context = {
            "title": verb.title % words,
            "question": verb.question % words,
            "consequence": verb.consequence,
            "verb": verb.label,
            "is_harmless": verb.is_harmless,
            "typed": target.name if verb.is_typed else "",
            "back": query_params.get_next_url(request, self.home(target)),
            **self.ask_context(request, verb, target),
            **more,
        }
        return self.render(request, "confirm.html", context, is_form=True)

    # -- what a subject may say otherwise

    def list_context(self, request: HttpRequest, rows: Any) -> Mapping[str, Any]:
        """What the template of the list shows beside."""
        return {}

    def is_confirmed(self, request: HttpRequest, verb: Verb, target: Target) -> bool:
        """Whether the question was answered. The user is told why not."""
        return request.method == "POST" and is_typed(request, target.name if verb.is_typed else "")

    def ask_context(self, request: HttpRequest, verb: Verb, target: Target) -> Mapping[str, Any]:
        """What the page that asks shows beside."""
        return {}

    def target(self, request: HttpRequest, name: str) -> Target:
        """What an action is about. Raises Http404."""
        return Target(name, by=request.user.get_username())

    def entry(self, target: Target) -> AdminEntry:
        """What the log names."""
        entry: AdminEntry = self.model(name=target.name[:255])
        return entry

    def run(self, request: HttpRequest, verb: Verb, target: Target) -> Said:
        """Do it, and log it."""
        said = verb.run(place_of(request), target)
        if said.log:
            log_action(request, self.entry(target), said.log)
        return said

    def home(self, target: Target) -> str:
        """The page of what an action was about."""
        model = self.sheet.model
        return self.url(f"{model}_change", target.name) if self.page else self.url(f"{model}_changelist")

    def back(self, request: HttpRequest, verb: Verb, target: Target) -> str:
        """Where an action leads."""
        return query_params.get_next_url(request, self.home(target))


def wanted_in(request: HttpRequest, sheet: Sheet[Any]) -> Wanted:
    """Which rows of a sheet the address names. Invalid values are ignored."""
    data, sort = request.GET, request.GET.get("sort", "")
    is_known = sort.removeprefix("-") in [column.name for column in sheet.columns if column.is_sortable]
    return Wanted(
        search=query_params.get_text(data, "search") if sheet.searches else "",
        state=query_params.get_choice(data, "state", sheet.filters, ""),
        sort=sort.removeprefix("-") if is_known else sheet.order,
        is_reversed=is_known and sort.startswith("-"),
        page=query_params.get_int(data, "page", 1, minimum=1, maximum=MAX_PAGES),
    )

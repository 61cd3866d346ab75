"""Base class of the admin pages: the list of a sheet, what is done with one row, routing, permissions and errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, update_wrapper
from typing import Any, ClassVar, NamedTuple, cast
from urllib.parse import parse_qs, urlsplit

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.context_processors import PermWrapper
from django.core.exceptions import PermissionDenied
from django.forms import Form
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBadRequest,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.middleware.gzip import GZipMiddleware
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from django_rtq.console.acting.verb import Target, Verb
from django_rtq.console.admin import query_params
from django_rtq.console.admin.action_log import log_action
from django_rtq.console.admin.navigation import navigation, page_url
from django_rtq.console.nouns import Place
from django_rtq.console.permissions import VIEW
from django_rtq.console.reading.readers import Readers
from django_rtq.console.reading.selection import QueryError
from django_rtq.console.render.column import PageUrl
from django_rtq.console.render.html import Viewer, listing
from django_rtq.console.render.sheet import Sheet, Wanted
from django_rtq.console.shards import AllShards
from django_rtq.core.broker.task_backends import place_of_job, shard_numbers, shard_of, shard_place
from django_rtq.core.conf.config import get_config
from django_rtq.exceptions import (
    BrokerError,
    BrokerRefused,
    BrokerUnavailable,
    JobNotFound,
    PayloadError,
    WorkflowNotFound,
)
from django_rtq.models import AdminEntry
from django_rtq.scale.placement import pinned_in

MAX_PAGES = 10**6
ALL = "all"  # shards
_OF_LISTS = ("shard", "after", "before", "page", "seen", "stop")  # parameters that are of one choice only
_LEVELS = {"done": messages.SUCCESS, "nothing": messages.WARNING, "refused": messages.WARNING}
_GZIP = GZipMiddleware(lambda request: HttpResponse())  # tables shrink to a tenth
View = Callable[..., HttpResponse]


class Route(NamedTuple):
    """One URL of a PageAdmin."""

    path: str
    name: str  # of the URL, after "django_rtq_<model>_"
    view: View
    permission: str = VIEW  # needed in addition to VIEW
    method: str = "GET"  # "POST": an action; "BOTH": a form or a confirmation page


def place_of(request: HttpRequest) -> Place:
    """What a page is about: a Redis, one shard, or all shards."""
    return cast(Place, vars(request)["rtq_place"])


def show(request: HttpRequest, place: Place) -> Place:
    """Let a page be about this."""
    vars(request)["rtq_place"] = place
    return place


def all_shards_of(request: HttpRequest) -> Readers | None:
    """The readers of all shards, if a page is about them."""
    place: Place | None = vars(request).get("rtq_place")
    return place.readers if place is not None and place.readers.is_of_all_shards else None


class PageAdmin(admin.ModelAdmin):
    """A ModelAdmin with the pages of a sheet. There are no rows to add, change or delete.

    Without a page of one row, actions lead back to the list.
    """

    sheet: ClassVar[Sheet[Any]]
    page: Callable[..., HttpResponse] | None = None  # of one row

    def routes(self) -> list[Route]:
        """The URLs of this admin, in matching order."""
        of_row = [Route("<str:name>/", "change", self.page)] if self.page else []
        return [Route("", "changelist", self.list), *self.action_routes(), *of_row]

    def action_routes(self, path: str = "<str:name>/", actions: Sequence[Verb] = ()) -> list[Route]:
        """The addresses of what can be done with one row. One that has a view of its own is a method of its name."""
        by_name = {verb.name: verb for verb in actions or self.sheet.actions if not verb.page}
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

    # -- ModelAdmin API

    def get_urls(self) -> list[URLPattern]:
        """Replaces the standard URLs, whose views would query a table."""
        pages = ((page, update_wrapper(partial(self._dispatch, page), page.view)) for page in self.routes())
        name, protect = f"django_rtq_{self.opts.model_name}", self.admin_site.admin_view
        return [path(page.path, protect(view), name=f"{name}_{page.name}") for page, view in pages]

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm(VIEW)

    def _has_no_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_add_permission = has_change_permission = has_delete_permission = _has_no_permission

    # -- views

    def list(self, request: HttpRequest, sheet: Sheet[Any] | None = None) -> HttpResponse:
        """The list, or that of another sheet: filtered, sorted and paged."""
        sheet = sheet or self.sheet
        wanted = wanted_in(request, sheet)
        found = sheet.find(place_of(request).readers, wanted)
        context = listing(sheet, found, wanted, self.viewer(request))
        return self.render(request, "list.html", {**context, **self.list_context(request, found.rows)})

    def act(self, request: HttpRequest, name: str = "", *, verb: Verb) -> HttpResponse:
        """Do something with one row, or ask before."""
        return self.act_on(request, verb, self.target(request, name))

    def act_on(self, request: HttpRequest, verb: Verb, target: Target) -> HttpResponse:
        """The same with what was found."""
        form = self.form_of(request, verb, target)
        is_sure = request.method == "POST" and is_typed(request, target.name if verb.is_typed else "")
        if verb.question and not (is_sure and (form is None or form.is_valid())):
            return self.ask(request, verb, target, form)
        try:
            said = verb.run(place_of(request), target._replace(value=form and form.cleaned_data))
        except (ValueError, PayloadError) as error:
            if form is None:
                raise
            form.add_error(None, str(error))
            return self.ask(request, verb, target, form)
        if said.log:
            log_action(request, self.entry(target), said.log)
        if said.problem and said.how != "refused":
            messages.error(request, said.problem)
        messages.add_message(request, _LEVELS[said.how], said.text)
        is_refused = said.how == "refused" and verb.question
        return HttpResponseRedirect(request.get_full_path() if is_refused else self.back(request, verb, target))

    def ask(self, request: HttpRequest, verb: Verb, target: Target, form: Form | None = None) -> HttpResponse:
        """The page that asks, with what is lost, or the form."""
        words = target.words
        context = {
            "title": (verb.title or verb.label) % words,
            "question": verb.question % words,
            "consequence": verb.consequence,
            "verb": getattr(form, "submit", verb.label),
            "is_harmless": verb.is_harmless,
            "typed": target.name if verb.is_typed else "",
            "back": query_params.get_next_url(request, self.home(target)),
            "form": form,
            **self.ask_context(request, verb, target),
        }
        return self.render(request, "confirm.html", context, is_form=True)

    # -- what a subject may say otherwise

    def list_context(self, request: HttpRequest, rows: Any) -> Mapping[str, Any]:
        """What the template of the list shows beside."""
        return {}

    def form_of(self, request: HttpRequest, verb: Verb, target: Target) -> Form | None:
        """What asks for the values that it needs."""
        return None

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

    def home(self, target: Target) -> str:
        """The page of what an action was about."""
        model = self.sheet.model
        return self.url(f"{model}_change", target.name) if self.page else self.url(f"{model}_changelist")

    def back(self, request: HttpRequest, verb: Verb, target: Target) -> str:
        """Where an action leads."""
        return query_params.get_next_url(request, self.home(target))

    # -- for the views

    def viewer(self, request: HttpRequest, url: PageUrl | None = None) -> Viewer:
        """Who looks at a page. `url`: how it writes addresses."""
        return Viewer(
            url=url or self.url,
            may=request.user.has_perm,
            here=request.get_full_path(),
            sees_all_shards=all_shards_of(request) is not None,
        )

    def render(
        self,
        request: HttpRequest,
        template: str,
        context: Mapping[str, Any],
        *,
        status: int = 200,
        is_form: bool = False,
    ) -> TemplateResponse:
        """Render a page within the admin layout, or only its live regions for a refresh.

        Forms and confirmation pages are not refreshed, so that they do not change while someone uses them.
        """
        refreshes, readers = query_params.REFRESH_HEADER in request.headers, place_of(request).readers
        seconds = get_config().admin_refresh_seconds
        frame = {} if refreshes else self._site_context(request)
        whole = {
            **frame,
            "layout": "admin/django_rtq/refresh.html" if refreshes else "admin/base_site.html",
            "opts": self.opts,
            "may": PermWrapper(request.user)["django_rtq"],
            "site_name": self.admin_site.name,
            "known_digests": query_params.get_digests(request),
            "counts": {} if is_form or status != 200 else _counts(readers),
            "refresh_seconds": None if is_form or status != 200 else seconds or None,
            "of_all_shards": all_shards_of(request),
            "here": "" if is_form or refreshes or status != 200 else request.get_full_path(),
            **context,
        }
        page = TemplateResponse(request, f"admin/django_rtq/{template}", whole, status=status)
        if refreshes and status == 200:
            page.add_post_render_callback(partial(_GZIP.process_response, request))
        return page

    def url(self, name: str, *args: str, query: Mapping[str, object] | None = None) -> str:
        """The URL of a page on this admin site."""
        return page_url(self.admin_site.name, name, *args, query=query)

    # -- helpers

    def _site_context(self, request: HttpRequest) -> dict[str, Any]:
        return {
            **self.admin_site.each_context(request),
            **navigation(request, self.admin_site, self.opts),
            "shard_links": shard_links(request, self.url("queue_changelist")),
            "is_in_english": _is_left_in_english(),
        }

    def _dispatch(self, page: Route, request: HttpRequest, **names: str) -> HttpResponse:
        # admin_view() has only checked that the user is staff.
        if not request.user.has_perm(VIEW) or not request.user.has_perm(page.permission):
            raise PermissionDenied
        methods = {"GET": ["GET", "HEAD"], "POST": ["POST"], "BOTH": ["GET", "HEAD", "POST"]}[page.method]
        if request.method not in methods:
            return HttpResponseNotAllowed(methods)
        request.current_app = self.admin_site.name
        texts = {name: unquote(text) for name, text in names.items()}
        if shard_numbers():
            return in_shard(request, partial(self._view, page, request, texts))
        return self._view(page, request, texts, Place())

    def _view(
        self,
        page: Route,
        request: HttpRequest,
        names: Mapping[str, str],
        place: Place,
        shard: int | None = None,
    ) -> HttpResponse:
        show(request, place)
        try:
            if shard is not None:  # it has to answer in the time in which pages of all shards do without it
                AllShards().ask(lambda readers: readers.queues.names(), [shard])
            return page.view(request, **names)
        except JobNotFound as error:
            why = _(
                "Job %(id)s was not found. The ID is wrong, the job was discarded, or it finished and its result has "
                "expired."
            )
            return self._render_problem(request, _("Job not found"), why % {"id": error.job_id}, status=404)
        except WorkflowNotFound as error:
            why = _("Workflow %(id)s was not found. The ID is wrong, or it ended long ago.")
            return self._render_problem(request, _("Workflow not found"), why % {"id": error.workflow_id}, status=404)
        except QueryError as error:
            return self._render_problem(request, _("Search jobs"), str(error), status=400)
        except BrokerError as error:
            return self._render_redis_error(request, error)

    def _render_problem(
        self, request: HttpRequest, title: str, problem: str, *, status: int, **more: Any
    ) -> HttpResponse:
        context = {"title": title, "problem": problem, "status": status, **more}
        return self.render(request, "problem.html", context, status=status)

    def _render_redis_error(self, request: HttpRequest, error: BrokerError) -> HttpResponse:
        """An error page that the browser reloads by itself, without a script. A POST is only repeated by its button."""
        is_away = isinstance(error, BrokerUnavailable) and not isinstance(error, BrokerRefused)
        title = _("Redis is not responding") if is_away else _("Redis returned an error")
        fields = [
            (name, text) for name, texts in request.POST.lists() for text in texts if name != "csrfmiddlewaretoken"
        ]
        seconds = get_config().admin_refresh_seconds if request.method in ("GET", "HEAD") else 0
        whole = max(1, round(seconds)) if seconds else 0
        answer = self._render_problem(request, title, str(error), status=503, again_seconds=whole, fields=fields)
        if whole:
            answer["Retry-After"] = answer["Refresh"] = str(whole)
        return answer


def is_typed(request: HttpRequest, name: str) -> bool:
    """Whether the name was typed that has to be; "": none has. The user is told if not."""
    is_right = not name or request.POST.get("name", "") == name
    if not is_right:
        messages.error(request, _("Nothing was done: what you typed is not the name."))
    return is_right


def _counts(readers: Readers) -> dict[str, int | str]:
    """The numbers in the navigation, by model: of an overview that was read a moment ago; "": unknown."""
    overview = readers.overview.glance()
    if overview is None:
        return {"job": "", "deadletter": "", "worker": ""}
    queues = [row.details for row in overview.queues]
    return {
        "job": sum(queue.running for queue in queues),
        "deadletter": sum(queue.dead for queue in queues),
        "worker": len(overview.living),
    }


def _is_left_in_english() -> bool:
    """Whether the page's language has no catalog of ours, so that our texts are in English."""
    is_foreign = not (get_language() or "en").startswith("en")
    return is_foreign and _("Running jobs continue.") == "Running jobs continue."


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


# -- all shards of RTQ["SHARDS"], unless one is chosen
#
# The choice is in the address: `?shard=1`. Links and forms of our pages do not say it. A page that is opened from
# another one is about the same, which the header Referer tells, and gets its address by a redirect. So two tabs may
# show two shards. A page of a job or of a workflow is about the shard that has it.


def in_shard(request: HttpRequest, view: Callable[[Place, int | None], HttpResponse]) -> HttpResponse:
    """The answer of a view about all shards, or that of its job or workflow, of the address, or of the page before.

    The view gets what it is about, and the number of the shard.
    """
    numbers, is_read = shard_numbers(), request.method in ("GET", "HEAD")
    own = place_of_job("", own_id) if (own_id := _own_id(request)) else None
    said = _choice(request.GET.get("shard", ""))
    chosen = _choice_before(request) if said is None else said
    if chosen is None and not is_read and own is None:
        return HttpResponseBadRequest(
            _("Your browser does not say which shard this page is about (header Referer). Nothing was changed.")
        )
    if said is None and is_read and chosen not in (None, ALL) and query_params.REFRESH_HEADER not in request.headers:
        query = request.GET.copy()
        query["shard"] = str(chosen)
        return HttpResponseRedirect(f"{request.path}?{query.urlencode()}")
    if own is None and chosen in (None, ALL) and len(numbers) > 1:
        readers = AllShards()
        answer = view(Place(readers=readers), None)
        for number in () if is_read else readers.silent:
            text = _("Shard %(number)d does not answer. What you asked for was not done there, or only in part.")
            messages.warning(request, text % {"number": number})
        return answer
    place = own if own is not None else shard_place(int(chosen)) if chosen not in (None, ALL) else ""
    return view(Place(pinned_in(place)), shard_of(place))


def _own_id(request: HttpRequest) -> str:
    """The id of the job or workflow that a page is about, which is in one shard; "": it is about something else."""
    found, ids = request.resolver_match, query_params.get_ids(query_params.given(request))
    name = (found and found.url_name) or ""
    if name.startswith("django_rtq_job_bulk_"):
        return ids[0] if len(ids) == 1 else ""
    is_of_one = name.startswith(("django_rtq_workflow_", "django_rtq_job_"))
    return str(found.kwargs.get("name", "")) if found and is_of_one else ""


def _choice_before(request: HttpRequest) -> str | None:
    """The choice of the page with the link or form; None: it is not known."""
    referer = urlsplit(request.headers.get("Referer", ""))
    if referer.netloc != request.get_host():
        return None
    return _choice(parse_qs(referer.query).get("shard", [ALL])[0])


def _choice(text: str) -> str | None:
    is_number = text.isdecimal() and len(text) < 5 and int(text) in shard_numbers()
    return text if is_number or text == ALL else None


def shard_links(request: HttpRequest, overview_url: str) -> list[dict[str, object]]:
    """Links to the same list of all shards and of each; of a job or workflow, to the overview."""
    current = None if all_shards_of(request) else shard_of(place_of(request).readers.place)
    query, path = request.GET.copy(), request.path
    for name in _OF_LISTS:
        query.pop(name, None)
    if _own_id(request):
        query.clear()
        path = overview_url
    titles = {ALL: _("All shards"), **{str(n): _("Shard %(number)d") % {"number": n} for n in shard_numbers()}}
    links = []
    for choice, title in titles.items():
        query["shard"] = choice
        is_current = choice == (ALL if current is None else str(current))
        links.append({"title": title, "url": f"{path}?{query.urlencode()}", "is_current": is_current})
    return links if len(titles) > 2 else links[1:]

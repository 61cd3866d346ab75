"""The URLs of the pages, and the navigation links on every page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.apps import apps
from django.contrib.admin import AdminSite
from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.urls import reverse
from django.utils.text import capfirst

ENTRIES = ("queue", "job", "deadletter", "client", "schedule", "workflow", "worker", "registeredtask")


def page_url(site_name: str, name: str, *args: str, query: Mapping[str, object] | None = None) -> str:
    """The URL of a page, by its name without "django_rtq_". Names of queues and jobs are quoted like primary keys in
    Django's admin, and empty query parameters are left out."""
    address = reverse(f"admin:django_rtq_{name}", args=[quote(arg) for arg in args], current_app=site_name)
    given = {key: value for key, value in (query or {}).items() if value not in (None, "")}
    return f"{address}?{urlencode(given)}" if given else address


def navigation(request: HttpRequest, site: AdminSite, current_opts: Any) -> dict[str, Any]:
    """The links to entries, and the search over all queues: what a template shows above each page."""
    links = []
    for name in ENTRIES:
        if url := entry_url(request, site, name):
            # The page of a job lies under the entry "Running jobs", but most jobs are not running.
            is_current = name == current_opts.model_name and (name != "job" or request.path == url)
            title = capfirst(str(_model_of(name)._meta.verbose_name_plural))
            links.append({"title": title, "url": url, "is_current": is_current, "model": name})
    return {"navigation_links": links, "search_url": entry_url(request, site, "job", "search")}


def entry_url(request: HttpRequest, site: AdminSite, name: str, page: str = "changelist") -> str:
    """The URL of a page of an entry; "" if this user may not see it, or the site does not have it."""
    model = _model_of(name)
    may_see = site.is_registered(model) and site.get_model_admin(model).has_view_permission(request)
    return page_url(site.name, f"{name}_{page}") if may_see else ""


def _model_of(name: str) -> Any:
    return apps.get_app_config("django_rtq").models[name]

"""The navigation links on every page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.apps import apps
from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.text import capfirst

from django_rtq.console.admin.urls import page_url

_ENTRIES = ("Queue", "Job", "DeadLetter", "Client", "Schedule", "Workflow", "Worker", "RegisteredTask")


class NavigationLink(NamedTuple):
    """One navigation link."""

    title: str
    url: str
    is_current: bool
    model: str  # in lower case


def navigation_links(request: HttpRequest, site: AdminSite, current_opts: Any) -> list[NavigationLink]:
    """Links to the entries that are registered on this site and that this user may see."""
    links = []
    models_of_menu = apps.get_app_config("django_rtq").models
    for name in _ENTRIES:
        model = models_of_menu.get(name.lower())
        if model is None or not site.is_registered(model):
            continue
        opts = model._meta
        try:
            url = reverse(f"admin:django_rtq_{opts.model_name}_changelist", current_app=site.name)
        except NoReverseMatch:
            continue
        if site.get_model_admin(model).has_view_permission(request):
            # The page of a job lies under the entry "Running jobs", but most jobs are not running.
            is_current = opts.model_name == current_opts.model_name and (name != "Job" or request.path == url)
            title = capfirst(str(opts.verbose_name_plural))
            links.append(NavigationLink(title, url, is_current, str(opts.model_name)))
    return links


def search_url(request: HttpRequest, site: AdminSite) -> str:
    """The URL of the search over all queues; "" if this user may not use it, or the site does not have it."""
    return _url_for(request, site, "job", "job_search")


def schedules_url(request: HttpRequest, site: AdminSite) -> str:
    """The URL of the list of schedules; "" if this user may not see it, or the site does not have it."""
    return _url_for(request, site, "schedule", "schedule_changelist")


def _url_for(request: HttpRequest, site: AdminSite, model_name: str, name: str) -> str:
    model = apps.get_app_config("django_rtq").models[model_name]
    if not site.is_registered(model) or not site.get_model_admin(model).has_view_permission(request):
        return ""
    return page_url(site.name, name)


def mark_no_running_jobs(request: HttpRequest, available_apps: Iterable[dict[str, Any]]) -> None:
    """Let the side bar of Django mark the entry "Running jobs" on its own page only.

    It marks the entries with whose address that of the page begins, and those of all jobs begin with that one's.
    """
    for model in (model for app in available_apps for model in app["models"]):
        if model.get("model") is apps.get_app_config("django_rtq").models["job"] and model["admin_url"] != request.path:
            model["admin_url"] = f"{model['admin_url']}?"

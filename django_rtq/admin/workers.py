"""The workers: who they are, what they do, and what becomes of the jobs of one that is gone."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_rtq.admin import access, parameters
from django_rtq.admin.audit import note
from django_rtq.admin.health import is_lost
from django_rtq.admin.pages import Page, PagesAdmin
from django_rtq.admin.shown import clean_text
from django_rtq.broker.details import WorkerDetails
from django_rtq.broker.inspector import get_inspector
from django_rtq.exceptions import WorkerAlive
from django_rtq.menu import Worker


class WorkerAdmin(PagesAdmin):
    """The page of the workers."""

    def pages(self) -> list[Page]:
        return [
            Page("", "changelist", self.workers),
            Page("<str:name>/release/", "release", self.release, access.REQUEUE, "POST"),
        ]

    def workers(self, request: HttpRequest) -> HttpResponse:
        """Every process that has a lease, or had one and has still jobs written down."""
        front = get_inspector().front()
        context = {
            "title": _("Workers"),
            "rows": [_row(worker) for worker in front.workers],
            "queues": ",".join(row.details.name for row in front.queues),
        }
        return self.draw(request, "workers.html", context)

    def release(self, request: HttpRequest, name: str) -> HttpResponse:
        """Give back the jobs of a worker that is gone."""
        shown = clean_text(name, 100)
        try:
            released = len(get_inspector().release_worker(name))
        except WorkerAlive as error:
            messages.warning(request, _("Nothing was done: %(why)s") % {"why": error})
        else:
            said = ngettext("%(count)d job of worker %(name)s was given back.",
                            "%(count)d jobs of worker %(name)s were given back.", released)  # fmt: skip
            text = said % {"count": released, "name": shown}
            note(request, Worker(name=name[:255]), text)
            messages.success(request, text)
        return HttpResponseRedirect(parameters.way_back(request, self.url("worker_changelist")))


def _row(worker: WorkerDetails) -> dict[str, Any]:
    return {
        "worker": worker,
        "is_lost": is_lost(worker),
        "busy_text": _("%(busy)d of %(slots)d") % {"busy": worker.busy, "slots": worker.slots},
        "memory": filesizeformat(worker.memory_bytes) if worker.memory_bytes else "",
        "uptime": worker.up_seconds,
    }

"""The page of workers, and remote control: quiet, wake, stop, and reclaim jobs of a lost worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _

from django_rtq.console import permissions
from django_rtq.console.acting.actions import ACTIONS
from django_rtq.console.acting.verb import Target
from django_rtq.console.admin.action_log import log_action
from django_rtq.console.admin.pages.page_admin import PageAdmin, Route, place_of
from django_rtq.console.reading.details import WorkerDetails
from django_rtq.console.subjects.workers import WORKERS


class WorkerAdmin(PageAdmin):
    """The page of the workers."""

    sheet = WORKERS

    def routes(self) -> list[Route]:
        return [*super().routes(), Route("wake/", "wake_all", self.wake_all, permissions.CONTROL, "POST")]

    def list_context(self, request: HttpRequest, rows: Sequence[WorkerDetails]) -> Mapping[str, Any]:
        may_wake = request.user.has_perm(permissions.CONTROL) and any(worker.is_quiet for worker in rows)
        return {"for_all": (self.url("worker_wake_all"), _("Wake all")) if may_wake else ()}

    def wake_all(self, request: HttpRequest) -> HttpResponse:
        """Ask all rtq_worker to start jobs again."""
        place, wake = place_of(request), ACTIONS["wake_worker"]
        for name in {worker.supervisor_name: worker.name for worker in place.workers}.values():
            wake.run(place, Target(name))  # one that has exited since refuses
        log_action(request, self.model(name="*"), str(wake.log))
        messages.success(request, _("All workers were asked to start new jobs again."))
        return HttpResponseRedirect(self.url("worker_changelist"))

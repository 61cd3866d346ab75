"""The page of workers, and remote control: quiet, wake, stop, and reclaim jobs of a lost worker."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_rtq import models
from django_rtq.console import permissions
from django_rtq.console.admin import query_params
from django_rtq.console.admin.action_log import log_action
from django_rtq.console.admin.display.paged_list import ListParams, paged_context
from django_rtq.console.admin.display.workers import by_host, host_sections
from django_rtq.console.admin.pages.page_admin import PageAdmin, Route
from django_rtq.console.inspector.inspector import get_inspector
from django_rtq.console.sanitize import clean_text
from django_rtq.exceptions import LeaseNotExpired, WorkerNotFound


class HostListParams(ListParams):
    """What the URL of the list of workers says. A host has several processes."""

    PER_PAGE = 20


class WorkerAdmin(PageAdmin):
    """The page of the workers."""

    def routes(self) -> list[Route]:
        return [
            Route("", "changelist", self.workers),
            Route("<str:name>/reclaim/", "reclaim", self.reclaim, permissions.REQUEUE, "POST"),
            Route("<str:name>/quiet/", "quiet", self.quiet, permissions.CONTROL, "POST"),
            Route("wake/", "wake_all", self.wake_all, permissions.CONTROL, "POST"),
            Route("<str:name>/wake/", "wake", self.wake, permissions.CONTROL, "POST"),
            Route("<str:name>/stop/", "stop", self.stop, permissions.CONTROL, "BOTH"),
        ]

    def workers(self, request: HttpRequest) -> HttpResponse:
        """Every process that has a lease, or whose lease has expired and that still holds jobs; by host."""
        workers, params = get_inspector().workers(), HostListParams.read(request.GET)
        hosts = by_host(workers)
        shown = params.of(hosts)
        context = {
            "title": _("Workers"),
            "sections": host_sections(shown),
            "is_quiet": any(worker.is_quiet for worker in workers),
            **paged_context(params, len(shown), len(hosts), lambda query: self.url("worker_changelist", query=query)),
        }
        return self.render(request, "workers.html", context)

    def reclaim(self, request: HttpRequest, name: str) -> HttpResponse:
        """Reclaim the jobs of a lost worker."""
        shown = clean_text(name, 100)
        try:
            reclaimed = len(get_inspector().reclaim_worker(name))
        except LeaseNotExpired:
            message = _("Nothing was done: the lease of worker %(name)s has not expired, so it may still be running.")
            messages.warning(request, message % {"name": shown})
        else:
            message = ngettext("%(count)d job of worker %(name)s was reclaimed.",
                            "%(count)d jobs of worker %(name)s were reclaimed.", reclaimed)  # fmt: skip
            text = message % {"count": reclaimed, "name": shown}
            log_action(request, models.Worker(name=name[:255]), text)
            messages.success(request, text)
        return self._back(request)

    def quiet(self, request: HttpRequest, name: str) -> HttpResponse:
        """Ask the rtq_worker of a process to start no new jobs."""
        message = _("The rtq_worker of %(name)s was asked to go quiet: running jobs continue, and no new jobs start.")
        quiet = partial(get_inspector().quiet_worker, by=request.user.get_username())
        return self._send_command(request, name, quiet, _("Asked to go quiet."), message)

    def wake(self, request: HttpRequest, name: str) -> HttpResponse:
        """Ask a quiet rtq_worker to start jobs again."""
        message = _("The rtq_worker of %(name)s was asked to start new jobs again.")
        return self._send_command(
            request, name, get_inspector().wake_worker, _("Asked to start new jobs again."), message
        )

    def wake_all(self, request: HttpRequest) -> HttpResponse:
        """Ask all rtq_worker to start jobs again."""
        inspector = get_inspector()
        for name in {worker.supervisor_name: worker.name for worker in inspector.workers()}.values():
            with suppress(WorkerNotFound):  # it has exited since
                inspector.wake_worker(name)
        log_action(request, models.Worker(name="*"), _("Asked to start new jobs again."))
        messages.success(request, _("All workers were asked to start new jobs again."))
        return self._back(request)

    def stop(self, request: HttpRequest, name: str) -> HttpResponse:
        """Ask the rtq_worker of a process to exit, after confirmation."""
        if request.method == "POST":
            message = _("The rtq_worker of %(name)s was asked to stop. It exits when its running jobs have finished.")
            return self._send_command(request, name, get_inspector().stop_worker, _("Asked to stop."), message)
        context = {
            "title": _("Stop a worker"),
            "question": _("This stops the rtq_worker of %(name)s and all its processes.")
            % {"name": clean_text(name, 100)},
            "consequence": _(
                "It starts no new jobs, finishes its running jobs, releases those that take too long, and exits. You "
                "cannot start it again from here: use the service manager of its machine."
            ),
            "action": self.url("worker_stop", name),
            "verb": _("Stop"),
            "back": self.url("worker_changelist"),
        }
        return self.render(request, "confirm.html", context, is_form=True)

    # -- helpers

    def _send_command(
        self, request: HttpRequest, name: str, send_command: Callable[[str], None], log_message: str, message: str
    ) -> HttpResponse:
        try:
            send_command(name)
        except WorkerNotFound:
            why = _("Nothing was done: worker %(name)s is unknown. It has exited or has only just started.")
            messages.warning(request, why % {"name": clean_text(name, 100)})
        else:
            log_action(request, models.Worker(name=name[:255]), log_message)
            messages.success(request, message % {"name": clean_text(name, 100)})
        return self._back(request)

    def _back(self, request: HttpRequest) -> HttpResponse:
        return HttpResponseRedirect(query_params.get_next_url(request, self.url("worker_changelist")))

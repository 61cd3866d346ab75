"""The button that undoes an action for half a minute, and what it does.

1. the confirmation page says that the action can be undone, and its form brings a token
2. the action sets aside, under this token, what it deletes
3. the message on the next page, or the page of the progress, has the button
4. the button puts all of it back; what takes longer than a request is done by jobs of the queues
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_rtq.admin import query_params
from django_rtq.admin.action_log import log_action
from django_rtq.admin.pages.bulk.sweeps import QueueSweep, run_sweep
from django_rtq.admin.pages.page_admin import PageAdmin
from django_rtq.conf.queue_options import is_queue_name
from django_rtq.formatting import format_number
from django_rtq.inspector.inspector import get_inspector
from django_rtq.inspector.jobs.dead_letters import BulkResult
from django_rtq.inspector.jobs.undo import BEGUN_DAYS, OFFERED_SECONDS, AsideJobs, UndoableVerb, verb_of
from django_rtq.internal_tasks import restore_jobs
from django_rtq.models import AdminEntry

_URLS = {"discard": "deadletter_discard_undo", "purge": "queue_purge_undo"}  # the pages that undo something


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoSweep(QueueSweep):
    """Puts back what an action has deleted in these queues."""

    token: str
    queues: Sequence[str]

    @property
    def names(self) -> list[str]:
        return list(self.queues)

    def done_text(self, count: int, left_out: int) -> str:
        text = ngettext("Undone: %(count)s job is back.", "Undone: %(count)s jobs are back.", count)
        text %= {"count": format_number(count)}
        if not left_out:
            return text
        why = ngettext(
            "%(done)s %(count)s job stays away, because another one of the same unique key has been enqueued since.",
            "%(done)s %(count)s jobs stay away, because others of the same unique keys have been enqueued since.",
            left_out,
        )
        return why % {"done": text, "count": format_number(left_out)}

    def nothing_text(self) -> str:
        return _("Nothing was undone: the %(seconds)d seconds for it are over, or someone else has undone it.") % {
            "seconds": OFFERED_SECONDS
        }

    def _steps(self, queue: str) -> Iterator[BulkResult]:
        return get_inspector().undos.steps(queue, self.token)

    def _enqueue_rest(self, queue: str) -> None:
        restore_jobs.using(queue_name=queue).delay(queue, self.token)


def too_much_text() -> str:
    """That an undo was given up."""
    return _("It cannot be undone: the jobs are too many or too large to be kept.")


def done_before_text() -> str:
    """That a form is sent again, because the answer to the first time was lost."""
    return _("This was done before, and can be undone.")


class UndoPages(PageAdmin):
    """For the admins whose actions can be undone."""

    def undo(
        self, request: HttpRequest, name: str = "", *, verb: UndoableVerb, entry: Callable[..., AdminEntry], home: str
    ) -> HttpResponse:
        """Undo an action. The token names it; `entry` is what the log is about, and `home` where to go then."""
        token, queues = request.POST.get("token", ""), request.POST.getlist("in")
        if verb_of(token) != verb or not queues or not all(map(is_queue_name, queues)):
            raise Http404
        back = query_params.get_next_url(request, self.url(home))
        log = partial(self._log_undo, request, entry, queues)
        for queue in run_sweep(request, UndoSweep(token=token, queues=queues), log):
            text = _("The rest of queue %(queue)s is kept for %(days)d days. To put back more of it here, press Undo.")
            self.offer_undo(request, text % {"queue": queue, "days": BEGUN_DAYS}, token, queue, back)
        return HttpResponseRedirect(back)

    def say_done(
        self, request: HttpRequest, text: str, token: str, queue: str, back: str, *, is_over: bool = True
    ) -> None:
        """Say what was done; if it can be undone, with the button. `back` is the page to show then.

        While the action is not over, an undo is offered without a limit of time.
        """
        undos = get_inspector().undos
        aside = (undos.close if is_over else undos.read)(queue, token) if token else AsideJobs()
        level = messages.SUCCESS if is_over else messages.WARNING
        messages.add_message(request, level, self.with_undo(request, text, aside, token, queue, back))

    def offer_undo(self, request: HttpRequest, text: str, token: str, queue: str, back: str) -> bool:
        """Show a warning with the button, if there is something to undo. Returns whether there is."""
        aside = get_inspector().undos.read(queue, token) if token else AsideJobs()
        if aside.can_be_undone:
            messages.warning(request, self.with_undo(request, text, aside, token, queue, back))
        return aside.can_be_undone

    def with_undo(self, request: HttpRequest, text: str, aside: AsideJobs, token: str, queue: str, back: str) -> str:
        """A text, and behind it the button, or that the undo was given up."""
        if aside.is_too_much:
            return f"{text} {too_much_text()}".lstrip()
        if not aside.can_be_undone:
            return text
        context = {
            "text": text,
            "action": self.url(_URLS[verb_of(token)], *([queue] if verb_of(token) == "purge" else [])),
            "token": token,
            "queue": queue,
            "back": back,
            "seconds": None if aside.seconds is None else ceil(aside.seconds),
        }
        return render_to_string("admin/django_rtq/_undo.html", context, request)

    # -- inside

    def _log_undo(
        self, request: HttpRequest, entry: Callable[..., AdminEntry], queues: Sequence[str], text: str, count: int
    ) -> None:
        log_action(request, entry(name=queues[0]), text, (), queues, count=count)

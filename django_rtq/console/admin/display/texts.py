"""Texts that several pages use: states, confirmations, bulk actions and schedules."""

from __future__ import annotations

from django.utils.translation import gettext as _

from django_rtq.console.formatting import format_number
from django_rtq.core.jobs.job import CancelAnswer


def cancel_messages(answer: CancelAnswer, *, terminate: bool = False) -> tuple[str, str]:
    """The log message, and the message for the user."""
    if answer is CancelAnswer.CANCELLED:
        return _("Cancelled."), _("Job %(id)s is cancelled.")
    if terminate:
        return _("Termination requested."), _(
            "The process that runs job %(id)s is about to be killed. The job is then cancelled, unless it succeeds "
            "first."
        )
    return _("Asked to stop."), _(
        "Job %(id)s is running and was asked to stop. It is cancelled when it stops, unless it succeeds first."
    )


def number_text(count: int, *, is_cut: bool) -> str:
    """A number of jobs that were found; if the search was cut there may be more. "?": it was, and found none."""
    if is_cut and not count:
        return "?"
    return _("≥ %(count)s") % {"count": format_number(count)} if is_cut else format_number(count)


def rest_refused_text(done: str, error: Exception) -> str:
    """What was done, and why no job does the rest."""
    return _("%(done)s The rest could not be enqueued. %(error)s Repeat the action to continue.") % {
        "done": done,
        "error": error,
    }

"""Texts that several pages use: states, confirmations, bulk actions and schedules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_rtq.console.formatting import format_number
from django_rtq.core.jobs.job import CancelAnswer

ConfirmedAction = Literal["discard", "cancel", "stop", "terminate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """The texts of a page that asks for confirmation."""

    page: str  # the route that the form is posted to
    title: Any
    question: Any
    consequence: Any
    verb: Any  # the label of the button


CONFIRMATIONS: dict[ConfirmedAction, Confirmation] = {
    "discard": Confirmation(
        page="discard",
        title=gettext_lazy("Discard a dead letter"),
        question=gettext_lazy("Discard job %(id)s?"),
        consequence=gettext_lazy("Its arguments and failures are deleted. This cannot be undone."),
        verb=gettext_lazy("Discard"),
    ),
    "cancel": Confirmation(
        page="cancel",
        title=gettext_lazy("Cancel a job"),
        question=gettext_lazy("Cancel job %(id)s?"),
        consequence=gettext_lazy("It will never run, and its arguments are deleted. This cannot be undone."),
        verb=gettext_lazy("Cancel job"),
    ),
    "stop": Confirmation(
        page="cancel",
        title=gettext_lazy("Cancel a job"),
        question=gettext_lazy("Cancel job %(id)s?"),
        consequence=gettext_lazy(
            "When it stops, it is cancelled and never runs again, even if its work is incomplete."
        ),
        verb=gettext_lazy("Cancel job"),
    ),
    "terminate": Confirmation(
        page="terminate",
        title=gettext_lazy("Terminate a job"),
        question=gettext_lazy("This kills the process that runs job %(id)s."),
        consequence=gettext_lazy(
            "The job is cancelled and never runs again, even if its work is incomplete. Other jobs in that process "
            "go back to their queue and start over, but those with max_crashes=0 become dead letters. If the job "
            "reacts to being asked to stop, do that instead."
        ),
        verb=gettext_lazy("Terminate"),
    ),
}


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

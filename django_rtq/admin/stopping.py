"""What ends a job for good: what is asked before, and what becomes of one that somebody wants to have cancelled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_rtq.broker.control import CancelAnswer

Ending = Literal["discard", "cancel", "stop", "terminate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a page says that asks whether it is meant. Lazy texts."""

    page: str  # which does it when the form is sent
    title: Any
    question: Any
    consequence: Any
    verb: Any  # of the button


ENDINGS: dict[Ending, Question] = {
    "discard": Question(
        page="discard",
        title=gettext_lazy("Discard a dead letter"),
        question=gettext_lazy("Discard job %(id)s for good?"),
        consequence=gettext_lazy("Its arguments and failures are deleted. It cannot be brought back."),
        verb=gettext_lazy("Discard"),
    ),
    "cancel": Question(
        page="cancel",
        title=gettext_lazy("Cancel a job"),
        question=gettext_lazy("Cancel job %(id)s?"),
        consequence=gettext_lazy("It never runs, and its arguments are deleted. It cannot be brought back."),
        verb=gettext_lazy("Cancel it"),
    ),
    "stop": Question(
        page="cancel",
        title=gettext_lazy("Ask a job to stop"),
        question=gettext_lazy("Ask job %(id)s to stop?"),
        consequence=gettext_lazy("It is cancelled when it stops, however far it is, and never runs again."),
        verb=gettext_lazy("Ask to stop"),
    ),
    "terminate": Question(
        page="terminate",
        title=gettext_lazy("Terminate a job"),
        question=gettext_lazy("This kills the process that runs job %(id)s."),
        consequence=gettext_lazy(
            "The job is cancelled and never runs again, however far it is. What else runs in that process is given "
            "back and starts anew, but jobs that allow no crash become dead letters. A job that heeds being asked to "
            "stop needs none of this."
        ),
        verb=gettext_lazy("Terminate"),
    ),
}


def cancel_words(answer: CancelAnswer, *, terminate: bool = False) -> tuple[str, str]:
    """What is written down, and what the person is told."""
    if answer is CancelAnswer.CANCELLED:
        return _("Cancelled."), _("Job %(id)s is cancelled.")
    if terminate:
        return _("Told to terminate."), _(
            "Job %(id)s runs, and its supervisor was told to kill its process. It is cancelled then, unless it has "
            "succeeded before."
        )
    return _("Asked to stop."), _(
        "Job %(id)s runs, and was asked to stop. It is cancelled when it does, unless it succeeds before."
    )

"""What becomes of a job that somebody wants to have cancelled, in words."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_rtq.broker.errands import CancelAnswer

#: What a termination costs.
TERMINATING = gettext_lazy(
    "The job is cancelled and never runs again, however far it is. What else runs in that process is given back and "
    "starts anew, but jobs that allow no crash become dead letters. A job that heeds being asked to stop needs none of "
    "this."
)


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

"""Texts of bulk actions, by what is done with jobs in which state."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_rtq.console.formatting import format_number
from django_rtq.console.render.column import STATE_LABELS
from django_rtq.core.jobs.job import JobState


def bulk_title(verb: str) -> str:
    """The title of the page of a bulk action."""
    return {
        "requeue": _("Requeue dead letters"),
        "discard": _("Discard dead letters"),
        "cancel": _("Cancel jobs"),
        "run_now": _("Run jobs now"),
    }[verb]


def bulk_button(verb: str) -> str:
    """The label of its button."""
    return {
        "requeue": _("Requeue"),
        "discard": _("Discard"),
        "cancel": _("Cancel jobs"),
        "run_now": _("Run now"),
    }[verb]


def bulk_question(verb: str, count: int, state: str = "dead", *, searched: int = 0, total: int = 0) -> str:
    """The question on the confirmation page. Of `total` jobs so many were looked at: if not all, there may be more."""
    texts = {
        "requeue": ngettext("Requeue %(count)s dead letter?", "Requeue %(count)s dead letters?", count),
        "discard": ngettext("Discard %(count)s dead letter?", "Discard %(count)s dead letters?", count),
        "cancel": ngettext("Cancel %(count)s %(state)s job?", "Cancel %(count)s %(state)s jobs?", count),
        "run_now": ngettext("Queue %(count)s %(state)s job now?", "Queue %(count)s %(state)s jobs now?", count),
    }
    text = texts[verb] % {"count": format_number(count), "state": label(state)}
    if searched >= total:
        return text
    more = _("There may be more: %(searched)s of %(total)s jobs were looked at.")
    return f"{text} {more % {'searched': format_number(searched), 'total': format_number(total)}}"


def bulk_consequence(verb: str, state: str, count: int) -> str:
    """What it means for so many jobs."""
    if verb == "discard":
        return _("Their arguments and failures are deleted. This cannot be undone.")
    if state == "running":
        return _("When they stop, they are cancelled and never run again, even if their work is incomplete.")
    return _("They will never run, and their arguments are deleted. This cannot be undone.")


def bulk_done_text(verb: str, count: int, state: str = "", target: str = "") -> str:
    """What was done. `target`: the other queue in which jobs were requeued."""
    if verb == "purge":
        return ngettext("%(count)d job was purged.", "%(count)d jobs were purged.", count) % {"count": count}
    texts = {
        "requeue": ngettext("%(count)s dead letter was requeued.", "%(count)s dead letters were requeued.", count),
        "discard": ngettext("%(count)s dead letter was discarded.", "%(count)s dead letters were discarded.", count),
        "cancel": ngettext("%(count)s job was cancelled.", "%(count)s jobs were cancelled.", count),
        "stop": ngettext("%(count)s job was asked to stop.", "%(count)s jobs were asked to stop.", count),
        "run_now": ngettext("%(count)s job is queued now.", "%(count)s jobs are queued now.", count),
        "erase": ngettext("%(count)s job was erased.", "%(count)s jobs were erased.", count),
        "elsewhere": ngettext(
            "%(count)s dead letter was requeued in queue %(queue)s.",
            "%(count)s dead letters were requeued in queue %(queue)s.",
            count,
        ),
    }
    return texts["stop" if state == "running" else "elsewhere" if target else verb] % {
        "count": format_number(count),
        "queue": target,
    }


def no_longer_text(count: int, state: str) -> str:
    """The warning if some of the selected jobs were not in that state any more."""
    if state == "dead":
        return ngettext(
            "%(count)d of them is no longer dead: someone else may have requeued or discarded it.",
            "%(count)d of them are no longer dead: someone else may have requeued or discarded them.",
            count,
        ) % {"count": count}
    return ngettext(
        "Nothing was done with %(count)d of them: it is not %(state)s any more, or may not run now.",
        "Nothing was done with %(count)d of them: they are not %(state)s any more, or may not run now.",
        count,
    ) % {"count": count, "state": label(state)}


def nothing_matches_text(state: str) -> str:
    """That no job matches any more."""
    if state == "dead":
        return _("Nothing was done: no dead letter matches any more. Someone else may have requeued or discarded them.")
    return _("Nothing was done: no job matches any more.")


def label(state: str) -> str:
    """The name of a state."""
    return str(STATE_LABELS[JobState(state)])


def bulk_hint(state: str) -> str:
    """Which jobs are left alone, and what happens if it takes long."""
    snapshot = (
        _("Jobs that die from now on are not affected.")
        if state == "dead"
        else _("Jobs that are made from now on are not affected.")
    )
    rest = _("If this takes longer than a few seconds, a job of this queue does the rest, even if you close this page.")
    return f"{snapshot} {rest}"

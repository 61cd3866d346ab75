"""What a sweep over dead letters is, did and has left, and when schedules fire, in words."""

from __future__ import annotations

from collections.abc import Callable

from django.utils.formats import number_format
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from django_rtq.admin.display.formatting import moment_text, number_text
from django_rtq.admin.pages.bulk_actions import BulkRequest
from django_rtq.jobs.job import moment
from django_rtq.periodic import Schedule


def question(verb: str, count: int) -> str:
    """Is this meant?"""
    texts = {
        "requeue": ngettext("Requeue %(count)s dead letter?", "Requeue %(count)s dead letters?", count),
        "discard": ngettext(
            "Discard %(count)s dead letter for good?", "Discard %(count)s dead letters for good?", count
        ),
    }
    return texts[verb] % {"count": number_text(count)}


def done_text(verb: str, count: int) -> str:
    """What was done."""
    texts = {
        "requeue": ngettext(
            "%(count)s dead letter is queued again.", "%(count)s dead letters are queued again.", count
        ),
        "discard": ngettext("%(count)s dead letter is gone.", "%(count)s dead letters are gone.", count),
    }
    return texts[verb] % {"count": number_text(count)}


def progress_text(verb: str, done: int, total: int) -> str:
    """How far it is."""
    text = {
        "requeue": _("%(done)s of %(total)s are queued again."),
        "discard": _("%(done)s of %(total)s are gone."),
    }[verb]
    return text % {"done": number_text(done), "total": number_text(total)}


def too_late(count: int) -> str:
    """Of what was ticked, some were not dead any more."""
    return ngettext(
        "%(count)d of them is not dead any more: somebody may have requeued or discarded it already.",
        "%(count)d of them are not dead any more: somebody may have requeued or discarded them already.",
        count,
    ) % {"count": count}


def facts_of(sweep: BulkRequest) -> list[tuple[str, str]]:
    """Which dead letters are meant."""
    until = moment(sweep.until_ms)
    facts = [(_("Queue"), sweep.queue), *sweep.wanted.facts]
    if sweep.per_second:
        facts.append((_("At most a second"), str(sweep.per_second)))
    if until is not None:
        facts.append((_("Died until"), moment_text(until)))
    return facts


#: What becomes of the rest of a sweep, by the state of the job that does it.
HINTS = {
    "queued": lambda: _("A job of this queue goes on with it as soon as a worker is free; if none comes, go on here."),
    "paused": lambda: _("The queue is paused, or no worker serves it: the job that does the rest waits. Go on here."),
    "running": lambda: _("A worker is at it. You may close this page."),
    "slow": lambda: _("Jobs of this queue do some of them each second. You may close this page."),
    "over": lambda: _("The job that did it is over."),
    "failed": lambda: _("The job that did the rest has failed: go on here."),
}


def schedule_text(schedule: Schedule) -> str:
    """When it fires. In another language than English a cron expression stands for itself."""
    if (get_language() or "en").startswith("en"):
        return schedule.explain()
    if schedule.every_ms:
        return _("every %(duration)s") % {"duration": _length(schedule.every_ms)}
    return f"{schedule.expression} ({schedule.zone})"


def _length(ms: int) -> str:
    """Exactly, in the largest unit that divides it."""
    for size, unit in _LENGTHS:
        if ms % size == 0:
            return unit(ms // size)
    return _("%(number)s s") % {"number": number_format(ms / 1000)}


_LENGTHS: tuple[tuple[int, Callable[[int], str]], ...] = (
    (86_400_000, lambda n: ngettext("%(number)d day", "%(number)d days", n) % {"number": n}),
    (3_600_000, lambda n: ngettext("%(number)d hour", "%(number)d hours", n) % {"number": n}),
    (60_000, lambda n: ngettext("%(number)d minute", "%(number)d minutes", n) % {"number": n}),
    (1000, lambda n: ngettext("%(number)d second", "%(number)d seconds", n) % {"number": n}),
)

"""What keeps a queue, or a client of it, from starting jobs, and how that is said."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_rtq.console.formatting import format_duration, format_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Holds:
    """What keeps a queue or a client from starting jobs. None: this does not."""

    paused_seconds: float | None = None  # for how long it has been paused
    paused_by: str = ""  # who paused it; "": not known
    at_limit: int | None = None  # it runs this many jobs, and may run no more
    starts_in_seconds: float | None = None  # until it may start a job, if only its rate stops it

    def __bool__(self) -> bool:
        return self != NO_HOLDS


NO_HOLDS = Holds()


def read_holds(now_ms: float, pause: bytes, at_limit: int | None, starts_at: int | bytes) -> Holds:
    """Read a stored pause ("ms" and who, or ""), and when a job may start, ms, or ""."""
    ms, _space, by = pause.decode(errors="replace").partition(" ")
    return Holds(
        paused_seconds=max(0.0, (now_ms - float(ms)) / 1000) if ms else None,
        paused_by=by,
        at_limit=at_limit,
        starts_in_seconds=max(0.0, (int(starts_at) - now_ms) / 1000) if starts_at else None,
    )


def read_task_hold(entry: bytes, now_ms: float) -> Holds:
    """Read a stored pause of a task, "<number> <ms> <who>"; "" or "<number>": it is not paused."""
    _number, _space, pause = entry.partition(b" ")
    return read_holds(now_ms, pause, None, b"") if pause else NO_HOLDS


def holds_text(holds: Holds) -> str:
    """What keeps it from starting jobs, as a part of a sentence. "" if nothing does."""
    if holds.paused_seconds is not None:
        return paused_text(holds)
    if holds.at_limit is not None:
        text = ngettext(
            "at its limit of %(count)s running job", "at its limit of %(count)s running jobs", holds.at_limit
        )
        return text % {"count": format_number(holds.at_limit)}
    if holds.starts_in_seconds is not None:
        return _("next start in %(duration)s") % {"duration": format_duration(holds.starts_in_seconds)}
    return ""


def paused_text(holds: Holds) -> str:
    """For how long it has been paused, and by whom."""
    values = {"user": holds.paused_by, "duration": format_duration(holds.paused_seconds)}
    if holds.paused_by:
        return _("paused by %(user)s, %(duration)s ago") % values
    return _("paused %(duration)s ago") % values

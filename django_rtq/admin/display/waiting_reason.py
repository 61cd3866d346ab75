"""Explains why a job is not running yet."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.utils.translation import gettext as _

from django_rtq.admin.display.sanitize import clean_text
from django_rtq.formatting import format_duration, format_number
from django_rtq.inspector.details import JobDetails
from django_rtq.inspector.overview import UNSCHEDULED
from django_rtq.inspector.queue_position import QueuePosition
from django_rtq.jobs.job import JobState

MANY = 1000  # the script stops counting the jobs ahead in a lane here


def waiting_reason(job: JobDetails, position: QueuePosition) -> str:
    """Why a waiting job does not run yet. "" for a job that does not wait."""
    if job.state is JobState.QUEUED:
        return " ".join(_queue_reasons(position)) or _queued_reason(job, position)
    if job.state in (JobState.SCHEDULED, JobState.RETRYING):
        return " ".join([_scheduled_reason(job, position), *_queue_reasons(position)])
    return ""


def _queue_reasons(position: QueuePosition) -> Iterator[str]:
    """Reasons that apply to all jobs of the queue, or of the client."""
    if position.paused_at is not None:
        yield _("The queue was paused %(duration)s ago, so its jobs do not start.") % {
            "duration": _time_since(position.paused_at, position)
        }
    if position.client_paused_at is not None:
        yield _("Its client was paused %(duration)s ago, so the jobs of this client do not start.") % {
            "duration": _time_since(position.client_paused_at, position)
        }
    if position.is_client_at_limit:
        yield _("Its client runs as many jobs as its limit allows. It starts when one of them ends.")
    if position.is_queue_at_limit:
        yield _("The queue runs as many jobs as its limit allows.")
    if position.client_starts_at is not None:
        yield _("Its client has started as many jobs as its rate allows. The next one may start in %(duration)s.") % {
            "duration": _time_until(position.client_starts_at, position)
        }
    if position.queue_starts_at is not None:
        yield _("The queue has started as many jobs as its rate allows. The next one may start in %(duration)s.") % {
            "duration": _time_until(position.queue_starts_at, position)
        }
    if not position.workers:
        yield _("No worker serves this queue.")


def _queued_reason(job: JobDetails, position: QueuePosition) -> str:
    if job.expires_at is not None and job.expires_at <= position.now:
        return _("It has expired and will be dropped when its turn comes.")
    if position.ahead is None:
        return _("It is waiting for its turn.")
    place = "next" if position.ahead == 0 else "far" if position.ahead >= MANY else "behind"
    return _POSITION_TEXTS[place, bool(job.client)]() % {"count": format_number(position.ahead)}


def _scheduled_reason(job: JobDetails, position: QueuePosition) -> str:
    if position.after:
        return _("It starts after job %(id)s has finished, because unique jobs run one at a time.") % {
            "id": clean_text(position.after, 60)
        }
    if job.due_at is None:
        return ""
    if job.due_at > position.now:
        return _("It is due in %(duration)s.") % {"duration": _time_until(job.due_at, position)}
    values = {"duration": _time_since(job.due_at, position)}
    last_check = position.promoted_at
    if last_check is None or (position.now - last_check).total_seconds() > UNSCHEDULED:
        return _("It was due %(duration)s ago, but no scheduler is running for this queue.") % values
    return _("It was due %(duration)s ago and will be queued at the scheduler's next check.") % values


def _time_since(moment: datetime, position: QueuePosition) -> str:
    return format_duration(max(0.0, (position.now - moment).total_seconds()))


def _time_until(moment: datetime, position: QueuePosition) -> str:
    return format_duration(max(0.0, (moment - position.now).total_seconds()))


#: By the position in the lane, and whether the lane belongs to a client.
_POSITION_TEXTS = {
    ("next", True): lambda: _(
        "It is the next job of its client. It starts when the client gets its turn and a worker is free."
    ),
    ("next", False): lambda: _(
        "It is the next job without a client. It starts when these jobs get their turn and a worker is free."
    ),
    ("behind", True): lambda: _("Other jobs of its client are ahead of it, at most %(count)s."),
    ("behind", False): lambda: _("Other jobs without a client are ahead of it, at most %(count)s."),
    ("far", True): lambda: _("Many other jobs of its client are ahead of it."),
    ("far", False): lambda: _("Many other jobs without a client are ahead of it."),
}

"""What a job waits for in its queue, and why it is not running yet: for its page, rtq_jobs and handles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, ngettext_lazy

from django_rtq.console.formatting import format_duration, format_number
from django_rtq.console.log_lines import MAX_LINES, LogLine
from django_rtq.console.reading.details import NO_HOLDS, FinishedStep, Holds, read_holds
from django_rtq.console.reading.overview import UNSCHEDULED
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.one_job import find
from django_rtq.core.broker.redis.commands import Command, Steps, checked
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import JobState, clock_moment, moment

YEARS = timedelta(days=9 * 365)  # a wait without a time-out
MANY = 1000  # the script stops counting the jobs ahead in a lane here


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePosition:
    """What a job waits for, as far as its queue knows."""

    now: datetime  # the server's time
    workers: int  # workers of the queue; counted up to 100
    #: Jobs before it in its lane, counted up to 1,000; cancelled ones may be among them. None: not known.
    ahead: int | None
    #: Clients whose turn comes before that of its client, of higher priorities, too. None: not known, or it is blocked.
    clients_ahead: int | None = None
    after: str = ""  # the job whose end it waits for; "": none
    promoted_at: datetime | None = None  # when a scheduler last looked for due jobs
    are_workers_busy: bool = False  # no worker waits for a job: each is busy, or was asked to be quiet
    task_holds: Holds = NO_HOLDS  # why no job of its task starts: it is paused
    queue_holds: Holds = NO_HOLDS  # why no job of the queue starts
    client_holds: Holds = NO_HOLDS  # why no job of its client starts

    @classmethod
    def read(cls, reply: list[Any]) -> QueuePosition:
        """Read the reply of the script `queue_position`."""
        now_ms, workers, ahead, clients_ahead, after, promoted, is_busy, of_task, *holds = reply
        return cls(
            now=clock_moment(now_ms),
            workers=workers,
            ahead=_number(ahead),
            clients_ahead=_number(clients_ahead),
            after=after.decode(errors="replace"),
            promoted_at=moment(int(float(promoted))) if promoted else None,
            are_workers_busy=is_busy == 1,
            task_holds=read_holds(now_ms, of_task.partition(b" ")[2]),  # behind the number of the pause
            queue_holds=read_holds(now_ms, *holds[:3]),
            client_holds=read_holds(now_ms, *holds[3:]),
        )


def _number(reply: Any) -> int | None:
    return reply if isinstance(reply, int) else None


def find_with_position(broker: Broker, job_id: str, queue: str | None) -> Steps[tuple[JobDetails, QueuePosition]]:
    """find() with its log, its finished steps, and what the job waits for if it waits. Raises JobNotFound."""
    job = yield from find(broker, job_id, queue)
    keys = broker.keys.of(job.queue)
    calls: list[Command] = [
        SCRIPTS["queue_position"].call(keys, (job_id,)),
        ("LRANGE", keys.log_of(job_id), -MAX_LINES, -1),
        ("HGETALL", keys.steps + job_id.encode()),
    ]
    position, lines, steps = checked((yield calls))
    log = [line for stored in lines if (line := LogLine.read(stored))]
    return replace(job, log=log, steps=FinishedStep.read_all(steps)), QueuePosition.read(position)


def read_reason(broker: Broker, job: JobDetails) -> Steps[str]:
    """waiting_reason() for handles."""
    (position,) = checked((yield [SCRIPTS["queue_position"].call(broker.keys.of(job.queue), (job.id,))]))
    return waiting_reason(job, QueuePosition.read(position))


def waiting_reason(job: JobDetails, position: QueuePosition) -> str:
    """Why a waiting job does not run yet, in the language of the user. "" for a job that does not wait."""
    if job.state is JobState.QUEUED:
        return " ".join(_reasons_for_all(position)) or " ".join(_reasons_in_lane(job, position))
    if job.state in (JobState.SCHEDULED, JobState.RETRYING):
        return " ".join(filter(None, [_scheduled_reason(job, position), *_reasons_for_all(position)]))
    return ""


#: What holds of a task, a queue and a client mean: it is paused, and by whom, at its limit, or at its rate.
_MEANINGS: dict[str, tuple[Any, Any, Any, Any]] = {
    "task_holds": (
        gettext_lazy("Its task was paused %(duration)s ago, so the jobs of this task do not start."),
        gettext_lazy("Its task was paused by %(user)s, %(duration)s ago, so the jobs of this task do not start."),
        *("", ""),
    ),
    "queue_holds": (
        gettext_lazy("The queue was paused %(duration)s ago, so its jobs do not start."),
        gettext_lazy("The queue was paused by %(user)s, %(duration)s ago, so its jobs do not start."),
        ngettext_lazy(
            "The queue is at its limit of %(count)s running job.",
            "The queue is at its limit of %(count)s running jobs.",
            "number",
        ),
        gettext_lazy("The queue has started as many jobs as its rate allows. The next one may start in %(duration)s."),
    ),
    "client_holds": (
        gettext_lazy("Its client was paused %(duration)s ago, so the jobs of this client do not start."),
        gettext_lazy("Its client was paused by %(user)s, %(duration)s ago, so the jobs of this client do not start."),
        ngettext_lazy(
            "Its client is at its limit of %(count)s running job.",
            "Its client is at its limit of %(count)s running jobs.",
            "number",
        ),
        gettext_lazy("Its client has started as many jobs as its rate allows. The next one may start in %(duration)s."),
    ),
}


def _reasons_for_all(position: QueuePosition) -> Iterator[str]:
    """Reasons that apply to all jobs of the task, the queue, or the client."""
    for name, (paused, paused_by, at_limit, at_rate) in _MEANINGS.items():
        holds: Holds = getattr(position, name)
        if (seconds := holds.paused_seconds) is not None:
            text = paused_by if holds.paused_by else paused
            yield text % {"user": holds.paused_by, "duration": format_duration(seconds)}
        if (most := holds.at_limit) is not None:
            yield at_limit % {"number": most, "count": format_number(most)}
        if (seconds := holds.starts_in_seconds) is not None:
            yield at_rate % {"duration": format_duration(seconds)}
    if not position.workers:
        yield _("No worker serves this queue.")


def _reasons_in_lane(job: JobDetails, position: QueuePosition) -> Iterator[str]:
    if job.expires_at is not None and job.expires_at <= position.now:
        yield _("It has expired and will be dropped when its turn comes.")
        return
    if position.ahead is None:
        yield _("It is waiting for its turn.")
    elif before := ", ".join(_before(job, position)):
        yield _("Ahead of it: %(what)s.") % {"what": before}
    elif position.clients_ahead is None:
        yield _("It is the next job of its client.") if job.client else _("It is the next job without a client.")
    else:
        yield _("It is the next job of the queue.")
    if position.are_workers_busy:
        yield _("All workers of the queue are busy or quiet.")


def _before(job: JobDetails, position: QueuePosition) -> Iterator[str]:
    """What is ahead of it: jobs of its client, and other clients."""
    ahead, clients = position.ahead or 0, position.clients_ahead or 0
    if ahead >= MANY:
        text = (
            _("more than %(count)s jobs of its client")
            if job.client
            else _("more than %(count)s jobs without a client")
        )
        yield text % {"count": format_number(MANY)}
    elif ahead:
        text = (
            ngettext("up to %(count)s job of its client", "up to %(count)s jobs of its client", ahead)
            if job.client
            else ngettext("up to %(count)s job without a client", "up to %(count)s jobs without a client", ahead)
        )
        yield text % {"count": format_number(ahead)}
    if clients:
        text = ngettext("the turn of %(count)s other client", "the turns of %(count)s other clients", clients)
        yield text % {"count": format_number(clients)}


def _scheduled_reason(job: JobDetails, position: QueuePosition) -> str:
    if position.after:
        return _("It starts after job %(id)s has finished, because unique jobs run one at a time.") % {
            "id": position.after[:60]
        }
    if job.is_held and not position.task_holds:
        return _("Its task was resumed, so it will be queued in a moment.")
    if job.due_at is None:
        return ""
    if job.event and job.due_at > position.now:
        return _event_reason(job, position)
    if job.is_asleep and job.due_at > position.now:
        return _("It sleeps for %(duration)s more.") % {"duration": _between(position.now, job.due_at)}
    if job.due_at > position.now:
        return _("It is due in %(duration)s.") % {"duration": _between(position.now, job.due_at)}
    values = {"duration": _between(job.due_at, position.now)}
    last_check = position.promoted_at
    if last_check is None or (position.now - last_check).total_seconds() > UNSCHEDULED:
        return _("It was due %(duration)s ago, but no scheduler is running for this queue.") % values
    return _("It was due %(duration)s ago and will be queued at the scheduler's next check.") % values


def _event_reason(job: JobDetails, position: QueuePosition) -> str:
    assert job.due_at is not None
    values = {"event": job.event, "duration": _between(position.now, job.due_at)}
    if job.due_at - position.now > YEARS:
        return _("It waits for event %(event)s.") % values
    return _("It waits for event %(event)s, for %(duration)s at the most.") % values


def _between(earlier: datetime, later: datetime) -> str:
    return format_duration((later - earlier).total_seconds())

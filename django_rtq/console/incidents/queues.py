"""Incidents of queues: failing tasks, dead letters, waits, clients that take most of the work, no scheduler, pauses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from shlex import quote
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from django_rtq.console.formatting import format_number, short_name
from django_rtq.console.incident_options import incident_options
from django_rtq.console.incidents.incident import (
    CLIENT,
    QUEUE,
    TASK,
    WORKFLOW,
    Action,
    Detector,
    Incident,
    Seen,
    Severity,
)
from django_rtq.console.merging import grouped
from django_rtq.console.reading.details import ClientPause, QueueDetails, TaskPause
from django_rtq.console.reading.metrics.task_failures import LATELY, LEAST_IN_A_ROW, Runs, TaskFailures
from django_rtq.console.reading.metrics.time_series import Series
from django_rtq.console.reading.overview import Overview, QueueRow
from django_rtq.console.reading.queues import quiet_queues, unserved
from django_rtq.console.redaction import redacted
from django_rtq.console.sanitize import clean_text
from django_rtq.core.jobs.details import JobDetails

MIN_RUNS = LEAST_IN_A_ROW  # of a task; with fewer a failure rate means little
WELL = 0.5  # of the rate at which a task begins to fail: below, it has ceased to
TELLING_RUNS = 50  # in a minute: with fewer, the one before counts as well
VERY_HIGH_RATE = 0.5  # failed runs of all runs
GROWING_SECONDS = 60.0  # shorter waits are not reported, even if they grow
MOST_FAILURES = 0.9  # a task with this share of its queue's failures began to fail when they began
STREAK_MINUTES = 10  # failures and deaths with longer pauses do not belong together
BLOCKED_SECONDS = 3600.0  # workflows that are blocked for less are not reported
MAX_MESSAGE = 160  # characters of an error message


PAUSED_BY = {"paused_by": _("Paused by %(user)s.")}


@TASK.warning(
    _("Task failing"),
    _("%(subject)s in queue %(name)s is failing: %(failed)s of its last %(runs)s runs."),
    Action.SHOW_RETRYING,
    also={
        "new_version": _("It began after the start of version %(version)s."),
        "newest_error": _("Latest error: %(error)s."),
    },
    worst="critical",
)
def task_failing(seen: Seen) -> Iterator[Incident]:
    """Tasks of whose last runs many failed."""
    failing = [
        (row, task, runs)
        for row in seen.overview.queues
        for task, failures in row.task_failures.items()
        if (runs := failing_runs(seen.overview.now, row, task, failures)).runs
    ]
    for row, task, runs in sorted(failing, key=lambda entry: -entry[2].failed):
        newest = next((job for job in (row.newest_dead, row.newest_retrying) if job and job.task == task), None)
        is_dead = newest is not None and newest is row.newest_dead
        error_class, error = _error_of(newest)
        since, began_earlier = _fails_since(row, task)
        yield task_failing.incident(
            severity=Severity.CRITICAL if runs.rate >= VERY_HIGH_RATE else Severity.WARNING,
            since=since,
            began_earlier=began_earlier,
            queue=row.details.name,
            task=task,
            error_class=error_class,
            actions=(Action.SHOW_DEAD, Action.REQUEUE) if is_dead else task_failing.actions,
            failed=runs.failed,
            runs=runs.runs,
            version=None if began_earlier else _version_before(seen.overview, since),
            error=error,
        )


def failing_runs(now: datetime, row: QueueRow, task: str, failures: TaskFailures) -> Runs:
    """The last runs of a task that is failing; none if it is not.

    If all of the last failed: these, however many succeeded before. Otherwise those since it last was well, of LATELY
    minutes at most. Of a task that runs seldom, those of this hour and the one before.
    """
    lately = failures.lately
    if failures.in_a_row >= MIN_RUNS and (lately.failed or row.details.retrying):
        return Runs(failures.in_a_row, failures.in_a_row)
    if not lately.failed or lately.runs >= MIN_RUNS:
        return _since_well(now, failures)
    return failures.hours if _fails(failures.hours, incident_options().failure_rate) else Runs()


def _since_well(now: datetime, failures: TaskFailures) -> Runs:
    """The runs since the last minute in which a task was well; none if it has not failed since then.

    Two thresholds, or a task some of whose runs always fail would flip: it begins to fail at the rate of the settings,
    and is well again when less than half of that fail.
    """
    threshold, present = incident_options().failure_rate, int(now.timestamp()) // 60
    total, before, is_failing = Runs(), Runs(), False
    for minute in range(present - LATELY + 1, present + 1):
        runs = failures.minutes.get(minute, Runs())
        total, latest = total + runs, runs if runs.runs >= TELLING_RUNS else before + runs
        is_failing = is_failing or _fails(total, threshold)
        if latest.runs >= MIN_RUNS and not _fails(latest, WELL * threshold):
            total, is_failing = runs, False
        before = runs
    return total if is_failing else Runs()


def _fails(runs: Runs, threshold: float) -> bool:
    return runs.runs >= MIN_RUNS and runs.rate >= threshold


def _fails_since(row: QueueRow, task: str) -> tuple[datetime | None, bool]:
    """Since when a task fails, and whether that may be longer. Not known if other tasks of its queue fail, too."""
    if row.task_failures[task].in_a_row:
        return row.task_failures[task].since, False
    of_all = sum(failures.hours.failed for failures in row.task_failures.values())
    if row.task_failures[task].hours.failed < MOST_FAILURES * max(of_all, row.series.total("failed")):
        return None, False
    well_below = WELL * incident_options().failure_rate
    steps = zip(row.series.of("failed"), row.series.of("succeeded"), strict=True)
    return streak(row.series, [failed if failed >= well_below * (failed + done) else 0 for failed, done in steps])


def _version_before(overview: Overview, since: datetime | None) -> str | None:
    """The version of the project that was deployed within STREAK_MINUTES before a minute, or in it; None: none was."""
    if since is None:
        return None
    earliest, latest = since - timedelta(minutes=STREAK_MINUTES), since + timedelta(minutes=1)
    return next((deploy.version for deploy in overview.deploys if earliest <= deploy.at < latest), None)


@TASK.warning(
    _("Version fails more"),
    _(
        "%(subject)s in queue %(name)s fails more often since a deploy. %(version)s: %(share)s %%, %(before)s: "
        "%(share_before)s %%."
    ),
    Action.SHOW_RETRYING,
)
def version_fails_more(seen: Seen) -> Iterator[Incident]:
    """Tasks of which more runs fail with the latest version of the project than with the one before."""
    latest = seen.overview.deploys[0].version if seen.overview.deploys else ""
    for row in seen.overview.queues:
        for task, failures in row.task_failures.items():
            (version, runs), (before, than), *_ = (*failures.versions.items(), ("", Runs()), ("", Runs()))
            is_worse = version == latest and runs.is_worse(than)
            # Also where it has been well again for minutes: then the version had nothing to do with it.
            if not is_worse or runs.is_worse(failures.lately):
                continue
            if not failing_runs(seen.overview.now, row, task, failures).runs:  # that is told alone
                yield version_fails_more.incident(
                    since=seen.overview.deploys[0].at,
                    queue=row.details.name,
                    task=task,
                    version=version,
                    before=before,
                    share=100 * runs.rate,
                    share_before=100 * than.rate,
                )


@QUEUE.warning(
    _("Dead letters"),
    ngettext_lazy(
        "%(count)s job died in the last hour.",
        "%(count)s jobs died in the last hour.",
        "number",
    ),
    Action.SHOW_DEAD,
    Action.REQUEUE,
    also={"more": _("Dead letters now: %(dead)s."), "newest_failure": _("Latest: %(task)s, %(error)s.")},
)
def dead_letters(seen: Seen) -> Iterator[Incident]:
    """Queues with dead letters in which jobs died in the last hour."""
    least = incident_options().dead_letters
    died = [(row, row.series.total("dead")) for row in seen.overview.queues if row.details.dead]
    for row, count in sorted((pair for pair in died if pair[1] >= least), key=lambda pair: -pair[1]):
        since, began_earlier = streak(row.series, row.series.of("dead"))
        yield dead_letters.incident(
            since=since,
            began_earlier=began_earlier,
            queue=row.details.name,
            count=count,
            dead=row.details.dead,
            error=_error_of(row.newest_dead)[1],
            values={"task": short_name(row.newest_dead.task)} if row.newest_dead is not None else {},
            also=["newest_failure"] if row.details.dead == count else None,
        )


WAITS = {
    "at_limit": _("The queue runs as many jobs as its limit max_running allows."),
    "at_rate": _("Its rate lets no job start at this moment."),
    "jobs_waiting": _("Waiting: %(waiting)s (clients: %(clients)s)."),
}


@QUEUE.warning(
    _("Long wait"),
    _("the oldest job has been waiting for %(duration)s."),
    also=WAITS,
)
def long_wait(seen: Seen) -> Iterator[Incident]:
    """Queues whose oldest job has been waiting for longer than the caller or the settings say."""
    yield from _waits(seen, long_wait, is_late=True)


@QUEUE.warning(
    _("Falling behind"),
    _("its oldest job has been waiting for %(duration)s, and waits are growing."),
    also={"behind": _("It is falling behind: its workers do less than comes."), **WAITS},
)
def falling_behind(seen: Seen) -> Iterator[Incident]:
    """Queues whose waits grow."""
    yield from _waits(seen, falling_behind, is_late=False)


def _waits(seen: Seen, kind: Detector, *, is_late: bool) -> Iterator[Incident]:
    """Queues with jobs that might start, the longest wait first. Without workers, or quiet ones: that is told alone."""
    overview, most = seen.overview, seen.oldest_seconds or incident_options().oldest_seconds
    idle = {*unserved([row.details.name for row in overview.queues], overview.workers), *quiet_queues(overview.workers)}
    for row in sorted(overview.queues, key=lambda row: -(row.details.oldest_seconds or 0)):
        queue, seconds = row.details, row.details.oldest_seconds
        if seconds is None or queue.paused or queue.name in idle or is_late is not (seconds > most):
            continue
        if is_late or is_falling_behind(row):
            holds = [name for name in ("at_limit", "at_rate") if getattr(queue, f"is_{name}")]
            yield kind.incident(
                since=seen.ago(seconds),
                queue=queue.name,
                duration=seconds,
                waiting=queue.queued,
                clients=queue.clients,
                also=(*(holds or ([] if is_late else ["behind"])), "jobs_waiting"),
            )


@QUEUE.warning(
    _("Limit zero"),
    _("jobs wait that no worker may start."),
    also={
        "zero_of_queue": _("The limit max_running of the queue is 0."),
        "zero_of_clients": ngettext_lazy(
            "The limit max_running of each client is 0: %(count)s waits for it.",
            "The limit max_running of each client is 0: %(count)s wait for it.",
            "number",
        ),
        "zero_of_client": _("The limit max_running of client %(client)s is 0."),
        "set_at_run_time": _("It was set at run time. Take it back:"),
        "set_in_settings": _('It is set in RTQ["QUEUES"].'),
    },
    worst="critical",
)
def limit_zero(seen: Seen) -> Iterator[Incident]:
    """Limits of 0 running jobs for which jobs wait: nothing but another limit lets them start."""
    for queue in seen.queues:
        stopped = sum(zero.lanes for zero in queue.zero_limits if zero.field != "queue")
        for zero in queue.zero_limits:
            kind, is_client, client = zero.field.partition(":")
            option = {"queue": "--whole-queue", "clients": "--each-client"}.get(kind, f"--client {quote(client)}")
            command = f"python manage.py rtq_clients limit {queue.name} {option} --max-running settings"
            is_critical = kind == "queue" or stopped >= min(queue.clients, 100)
            yield limit_zero.incident(
                severity=Severity.CRITICAL if is_critical else Severity.WARNING,
                queue=queue.name,
                client=client if is_client else None,
                count=zero.lanes,
                also=(f"zero_of_{kind}", "set_at_run_time" if zero.is_set_here else "set_in_settings"),
                actions=(Action.SHOW_CLIENT,) if is_client else limit_zero.actions,
                command=command if zero.is_set_here else "",
            )


@QUEUE.warning(
    _("Busy client"),
    _(
        "client %(client)s took %(share)s %% of the work of the last hour, and others wait. The oldest job has been "
        "waiting for %(duration)s."
    ),
    Action.SHOW_CLIENT,
)
def busy_client(seen: Seen) -> Iterator[Incident]:
    """Queues in which one client takes most of the work while jobs of others wait."""
    most = incident_options().client_share
    for row in seen.overview.queues:
        busiest = row.busiest
        if busiest is not None and busiest.share >= most and busiest.others_wait_seconds >= GROWING_SECONDS:
            share, waits = round(100 * busiest.share), busiest.others_wait_seconds
            yield busy_client.incident(queue=row.details.name, client=busiest.client, share=share, duration=waits)


@QUEUE.critical(
    _("No scheduler"),
    _(
        "no scheduler is running, so its scheduled jobs and retries do not start. Were all workers started with "
        "--no-scheduler?"
    ),
    Action.SHOW_WORKERS,
)
def no_scheduler(seen: Seen) -> Iterator[Incident]:
    """Queues with delayed jobs for which no scheduler runs. Without any worker, that is said alone."""
    unscheduled = set(seen.overview.unscheduled) if seen.overview.living else set()
    for queue in seen.queues:
        if queue.name in unscheduled and queue.needs_scheduler:
            since, command = queue.scheduler_seconds, f"python manage.py rtq_scheduler --queues {queue.name}"
            yield no_scheduler.incident(queue=queue.name, since=seen.ago(since), command=command)


@QUEUE.warning(
    _("Jobs lost place"),
    ngettext_lazy(
        "%(count)s job has a record, but no place in Redis, because its append-only file was cut off. Workers look "
        "for such jobs, and queue them again.",
        "%(count)s jobs have a record, but no place in Redis, because its append-only file was cut off. Workers look "
        "for such jobs, and queue them again.",
        "number",
    ),
    Action.SHOW_WORKERS,
)
def jobs_lost_place(seen: Seen) -> Iterator[Incident]:
    """Queues with jobs that are in no place, as an append-only file that was cut off leaves them (D123)."""
    for queue in seen.queues:
        if queue.lost:
            yield jobs_lost_place.incident(queue=queue.name, since=seen.ago(queue.lost_seconds), count=queue.lost)


@QUEUE.warning(
    _("Queue paused"),
    _("%(subject)s is paused."),
    Action.SHOW_QUEUE,
    Action.RESUME,
    also=PAUSED_BY,
)
def queue_paused(seen: Seen) -> Iterator[Incident]:
    """Paused queues."""
    for queue in seen.queues:
        if queue.paused:
            since, user = seen.ago(queue.paused_seconds), queue.paused_by[:80]
            yield queue_paused.incident(queue=queue.name, since=since, user=user)


@TASK.warning(
    _("Task paused"),
    ngettext_lazy(
        "Task %(subject)s is paused in %(queues)s, and holds %(count)s job.",
        "Task %(subject)s is paused in %(queues)s, and holds %(count)s jobs.",
        "number",
    ),
    also=PAUSED_BY,
)
def task_paused(seen: Seen) -> Iterator[Incident]:
    """Paused tasks, one incident for all queues."""
    pauses = ((queue, pause) for queue in seen.queues for pause in queue.paused_tasks if not pause.is_over)
    for task, facts in _paused(seen, ((pause.task, queue, pause) for queue, pause in pauses)):
        yield task_paused.incident(task=task, **facts)


@CLIENT.info(
    _("Client paused"),
    ngettext_lazy(
        "%(subject)s is paused in %(queues)s, and holds %(count)s job.",
        "%(subject)s is paused in %(queues)s, and holds %(count)s jobs.",
        "number",
    ),
    also=PAUSED_BY,
)
def client_paused(seen: Seen) -> Iterator[Incident]:
    """Paused clients, one incident for all queues."""
    pauses = ((pause.client, queue, pause) for queue in seen.queues for pause in queue.paused_clients)
    for client, facts in sorted(_paused(seen, pauses), key=lambda pair: -pair[1]["count"]):
        yield client_paused.incident(client=client, **facts)


def _paused(
    seen: Seen, found: Iterable[tuple[str, QueueDetails, TaskPause | ClientPause]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is told of each task or client that is paused in some queues."""
    for name, pauses in sorted(grouped((name, (queue.name, pause)) for name, queue, pause in found).items()):
        longest = max((pause for _queue, pause in pauses), key=lambda pause: pause.seconds or 0)
        facts = {
            "since": seen.ago(longest.seconds),
            "queues": _queues_by_jobs((queue, pause.held) for queue, pause in pauses),
            "count": sum(pause.held for _queue, pause in pauses),
            "user": longest.by[:80],
        }
        yield name, facts


@WORKFLOW.warning(
    _("Workflow blocked"),
    _("%(subject)s has been blocked by dead jobs for %(duration)s. Requeue them, or discard them:"),
)
def workflow_blocked(seen: Seen) -> Iterator[Incident]:
    """Workflows that have been blocked for long, the longest first."""
    for flow in seen.overview.workflows.blocked:
        seconds = (seen.overview.now - flow.since).total_seconds()
        if seconds >= BLOCKED_SECONDS:
            yield workflow_blocked.incident(
                since=flow.since,
                workflow=flow.id,
                name=flow.name[:80],
                duration=seconds,
                command=f"python manage.py rtq_workflows requeue {flow.id}",
            )


@WORKFLOW.warning(
    _("Workflow stuck"),
    _(
        "%(subject)s can never go on: nobody knows how some of its jobs have ended, because Redis lost data, or "
        "a worker of an old version ran them. Cancel it, and make it again:"
    ),
)
def workflow_stuck(seen: Seen) -> Iterator[Incident]:
    """Running workflows that can never go on."""
    for flow in seen.overview.workflows.stuck:
        command = f"python manage.py rtq_workflows cancel {flow.id}"
        yield workflow_stuck.incident(since=flow.since, workflow=flow.id, name=flow.name[:80], command=command)


def _queues_by_jobs(held: Iterable[tuple[str, int]]) -> list[str]:
    """Names of queues, those that hold most jobs first; those that hold none only if all do."""
    most_first = sorted(held, key=lambda pair: (-pair[1], pair[0]))
    named = [pair for pair in most_first if pair[1]] or most_first
    return [f"{queue} ({format_number(jobs)})" if jobs and len(named) > 1 else queue for queue, jobs in named]


def is_falling_behind(row: QueueRow) -> bool:
    """Whether jobs that started recently had waited twice as long as those before them, or none started at all."""
    if (row.details.oldest_seconds or 0) < GROWING_SECONDS:
        return False
    now, before = (_mean_wait(row.series, skipped) for skipped in (0, LATELY))
    return now is None or (before is not None and now > 2 * before)


def streak(series: Series, numbers: Sequence[int]) -> tuple[datetime | None, bool]:
    """When the last streak of a counter began, to the minute, and whether it may have begun before the series.

    A pause of STREAK_MINUTES ends a streak.
    """
    first = None
    for minute in range(series.steps - 1, -1, -1):
        if first is not None and first - minute > STREAK_MINUTES:
            break
        if numbers[minute]:
            first = minute
    if first is None:
        return None, False
    return series.begins_at + timedelta(minutes=first), first <= STREAK_MINUTES


def _mean_wait(series: Series, skipped: int) -> float | None:
    """The mean wait of the jobs that finished in LATELY minutes, before the last `skipped`. None if there were none."""
    end = series.steps - skipped
    waited, done = (sum(series.of(name)[end - LATELY : end]) for name in ("wait_ms", "succeeded"))
    return waited / done if done else None


def _error_of(job: JobDetails | None) -> tuple[str, str]:
    """The class of the newest failure, and class and message for the text, without secrets."""
    if job is None or not job.newest_error[0]:
        return "", ""
    error_class, message = redacted(job).newest_error
    line = clean_text(message.strip().partition("\n")[0].rstrip(" ."), MAX_MESSAGE)
    short = short_name(error_class)
    return error_class, f"{short}: {line}" if line else short

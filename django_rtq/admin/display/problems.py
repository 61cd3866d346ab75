"""Detects problems for the banner of the overview: failing tasks, dead letters, hung jobs, long waits, silent workers.

Pure functions over the data of the overview. Each yields its worst problems first, and only a few of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from operator import attrgetter

from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_rtq.admin.display.running_jobs import running_job_warning
from django_rtq.admin.display.sanitize import clean_text
from django_rtq.admin.urls import PageUrl
from django_rtq.formatting import format_duration, format_number
from django_rtq.inspector.details import JobDetails, WorkerDetails
from django_rtq.inspector.metrics import TaskMetrics
from django_rtq.inspector.overview import FAILING_HOURS, LATELY, Overview, QueueRow
from django_rtq.inspector.time_series import Series

MIN_RUNS = 10  # of a task; with fewer a failure rate means little
HIGH_RATE, VERY_HIGH_RATE = 0.2, 0.5  # failed runs of all runs
LONG_WAIT_SECONDS = 300.0
GROWING_SECONDS = 60.0  # shorter waits are not reported, even if they grow
SILENT_SECONDS = 60.0  # an idle worker asks for work every few seconds
_MAX_NAMED = 3  # problems of one kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One line of the banner."""

    text: str
    url: str = ""  # the page with the details
    is_bad: bool = False  # False: a warning


def failing_tasks(overview: Overview, url: PageUrl) -> Iterator[Problem]:
    """Tasks with a high failure rate, in queues where runs failed recently."""
    since = localtime(overview.now).replace(minute=0) - timedelta(hours=FAILING_HOURS)
    found = [
        (row, task, figures)
        for row in overview.queues
        if failed_lately(row)
        for task, figures in row.tasks.items()
        if figures.done + figures.failed >= MIN_RUNS and (figures.failure_rate or 0) >= HIGH_RATE
    ]
    found.sort(key=lambda each: -each[2].failed)
    for row, task, figures in found[:_MAX_NAMED]:
        yield _failing(row, task, figures, f"{since:%H:%M}", url)
    rest = len(found) - _MAX_NAMED
    if rest > 0:
        text = ngettext("%(count)d more task fails often.", "%(count)d more tasks fail often.", rest)
        yield Problem(text=text % {"count": rest}, url=url("registeredtask_changelist"))


def new_dead_letters(overview: Overview, url: PageUrl) -> Iterator[Problem]:
    """Queues with dead letters in which jobs died in the last hour."""
    found = [(row, _in_an_hour(row.series, "dead")) for row in overview.queues if row.details.dead]
    found = sorted((pair for pair in found if pair[1]), key=lambda pair: -pair[1])
    for row, died in found[:_MAX_NAMED]:
        text = ngettext(
            "Queue %(name)s: %(count)s job died in the last hour. Dead letters now: %(dead)s.",
            "Queue %(name)s: %(count)s jobs died in the last hour. Dead letters now: %(dead)s.",
            died,
        ) % {"name": row.details.name, "count": format_number(died), "dead": format_number(row.details.dead)}
        if row.newest_dead is not None and row.newest_dead.newest_error[0]:
            values = {"task": _short(row.newest_dead.task), "error": _short(row.newest_dead.newest_error[0])}
            newest = _("Latest: %(task)s, %(error)s.") % values
            text = f"{text} {newest}"
        yield Problem(text=text, url=url("queue_change", row.details.name, query={"state": "dead"}))
    rest = len(found) - _MAX_NAMED
    if rest > 0:
        text = ngettext(
            "Jobs died in %(count)d more queue in the last hour.",
            "Jobs died in %(count)d more queues in the last hour.",
            rest,
        )
        yield Problem(text=text % {"count": rest}, url=url("deadletter_changelist"))


def hung_jobs(overview: Overview, url: PageUrl) -> Iterator[Problem]:
    """Jobs that run longer than their time limit, or much longer than usual."""
    found = [job for worker in overview.workers for job in worker.running if running_job_warning(job)]
    if found:
        longest = max(found, key=attrgetter("seconds"))
        text = ngettext(
            "%(count)d job seems to hang: %(task)s in queue %(name)s, running for %(duration)s.",
            "%(count)d jobs seem to hang. The longest: %(task)s in queue %(name)s, running for %(duration)s.",
            len(found),
        )
        values = {"task": _short(longest.task), "name": longest.queue, "duration": format_duration(longest.seconds)}
        yield Problem(text=text % {"count": len(found), **values}, url=url("job_changelist"))


def long_waits(overview: Overview, url: PageUrl) -> Iterator[Problem]:
    """The queue with the longest wait if that is long, and the one that is falling behind."""
    waiting = [row for row in overview.queues if row.details.oldest_seconds is not None and not row.details.paused]
    late = [row for row in overview.queues if (row.details.oldest_seconds or 0) > LONG_WAIT_SECONDS]
    growing = [row for row in waiting if row not in late and is_falling_behind(row)]
    for found, text in (
        (late, _("Queue %(name)s: the oldest job has been waiting for %(duration)s.")),
        (
            growing,
            _(
                "Queue %(name)s is falling behind: its oldest job has been waiting for %(duration)s, and waits are "
                "growing."
            ),
        ),
    ):
        if found:
            worst = max(found, key=lambda row: row.details.oldest_seconds or 0).details
            values = {"name": worst.name, "duration": format_duration(worst.oldest_seconds)}
            yield Problem(text=text % values, url=url("queue_change", worst.name))


def is_falling_behind(row: QueueRow) -> bool:
    """Whether jobs that started recently had waited twice as long as those before them, or none started at all."""
    if (row.details.oldest_seconds or 0) < GROWING_SECONDS:
        return False
    steps = max(1, LATELY * 60 // row.series.step_seconds)
    now, before = (_mean_wait(row.series, steps, skipped) for skipped in (0, steps))
    return now is None or (before is not None and now > 2 * before)


def silent_workers(overview: Overview, url: PageUrl) -> Iterator[Problem]:
    """Idle workers that have stopped asking for work."""
    found = [worker for worker in overview.workers if is_silent(worker)]
    if found:
        text = ngettext(
            "%(count)d idle worker has stopped asking for work: %(name)s.",
            "%(count)d idle workers have stopped asking for work, %(name)s among them.",
            len(found),
        )
        name = clean_text(f"{found[0].host}:{found[0].pid}", 80)
        yield Problem(text=text % {"count": len(found), "name": name}, url=url("worker_changelist"))


def is_silent(worker: WorkerDetails) -> bool:
    """Whether an idle process has stopped asking for work although its supervisor renews its lease."""
    if worker.running or worker.is_quiet or worker.is_lost:
        return False
    return worker.last_claim_seconds is not None and worker.last_claim_seconds > SILENT_SECONDS


def failed_lately(row: QueueRow) -> int:
    """The number of runs that failed in the last minutes."""
    return row.series.total("failed", max(1, LATELY * 60 // row.series.step_seconds))


def _failing(row: QueueRow, task: str, figures: TaskMetrics, since: str, url: PageUrl) -> Problem:
    newest = _newest_of(row, task)
    state = "dead" if newest is not None and newest is row.newest_dead else "retrying"
    values = {
        "task": _short(task),
        "name": row.details.name,
        "failed": format_number(figures.failed),
        "runs": format_number(figures.done + figures.failed),
        "since": since,
    }
    text = _("%(task)s in queue %(name)s is failing: %(failed)s of %(runs)s runs since %(since)s.") % values
    if newest is not None and newest.newest_error[0]:
        error = _("Latest error: %(error)s.") % {"error": _short(newest.newest_error[0])}
        text = f"{text} {error}"
    return Problem(
        text=text,
        url=url("queue_change", row.details.name, query={"state": state, "task": task}),
        is_bad=(figures.failure_rate or 0) >= VERY_HIGH_RATE,
    )


def _newest_of(row: QueueRow, task: str) -> JobDetails | None:
    return next((job for job in (row.newest_dead, row.newest_retrying) if job is not None and job.task == task), None)


def _in_an_hour(series: Series, name: str) -> int:
    return series.total(name, max(1, 3600 // series.step_seconds))


def _mean_wait(series: Series, steps: int, skipped: int) -> float | None:
    """The mean wait of the jobs that finished in `steps` steps, before the last `skipped`. None if there were none."""
    end = series.steps - skipped
    waited, done = (sum(series.of(name)[max(0, end - steps) : end]) for name in ("wait_ms", "succeeded"))
    return waited / done if done else None


def _short(name: str) -> str:
    return clean_text(name.rpartition(".")[2], 80)

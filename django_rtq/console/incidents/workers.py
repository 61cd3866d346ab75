"""Incidents of workers: none is there, they are lost or silent, or their jobs seem to hang, they run other code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from django_rtq.console.formatting import format_duration, names_text
from django_rtq.console.incident_options import incident_options
from django_rtq.console.incidents.incident import (
    HOST,
    MAX_NAMED,
    QUEUE,
    SYSTEM,
    TASK,
    Action,
    Incident,
    Seen,
    Severity,
)
from django_rtq.console.merging import grouped, least
from django_rtq.console.reading.details import QueueDetails, RunningJob, WorkerDetails
from django_rtq.console.reading.overview import Overview
from django_rtq.console.reading.queues import quiet_queues, unserved
from django_rtq.core.conf.config import get_config
from django_rtq.core.tasks.registry import all_tasks, declared_queues

SILENT_SECONDS = 60.0  # an idle worker asks for work every few seconds
DEPLOY_SECONDS = 300.0  # in a rolling deploy, older workers meet jobs of new tasks for a while
COMMAND = "python manage.py rtq_worker"


@SYSTEM.critical(
    _("No worker"),
    _("No worker is running, so no jobs are processed. Start one:"),
    Action.SHOW_WORKERS,
)
def no_worker(seen: Seen) -> Iterator[Incident]:
    """No worker at all, which is told alone."""
    overview, gone = seen.overview, least(queue.contact_seconds for queue in seen.queues)
    if overview.queues and not overview.living:
        # A scheduler keeps contact, too: then nobody knows since when there is no worker.
        is_known = gone is not None and gone > get_config().lease_seconds
        idle = ",".join(_waiting(overview))
        command = f"{COMMAND} --queues {idle}" if idle else COMMAND
        yield no_worker.incident(since=seen.ago(gone) if is_known else None, command=command)


@QUEUE.critical(
    _("Queue unserved"),
    ngettext_lazy(
        "%(count)s job waits, and no worker serves the queue. Start one:",
        "%(count)s jobs wait, and no worker serves the queue. Start one:",
        "number",
    ),
)
def queue_unserved(seen: Seen) -> Iterator[Incident]:
    """Queues with jobs that nobody serves."""
    waiting = _waiting(seen.overview) if seen.overview.living else {}
    idle = [waiting[name] for name in without_worker(seen) if name in waiting]
    for queue in sorted(idle, key=lambda queue: -(queue.oldest_seconds or 0)):
        gone = queue.contact_seconds
        is_gone = gone is None or gone > get_config().lease_seconds  # or else a scheduler keeps contact
        yield queue_unserved.incident(
            queue=queue.name,
            since=seen.ago(least((gone, queue.oldest_seconds))) if is_gone else None,
            count=queue.waiting,
            command=f"{COMMAND} --queues {queue.name}",
        )


@SYSTEM.warning(
    _("Queues without worker"),
    _("No worker serves these queues, which tasks or settings declare: %(names)s. Start one:"),
    Action.SHOW_WORKERS,
)
def queues_without_worker(seen: Seen) -> Iterator[Incident]:
    """Declared queues that nobody serves, and in which no job waits."""
    waiting = _waiting(seen.overview)
    names = [name for name in without_worker(seen) if name not in waiting]
    if names and seen.overview.living:
        command = f"{COMMAND} --queues {','.join(names)}"
        yield queues_without_worker.incident(names=names, command=command)


@SYSTEM.warning(
    _("Workers quiet"),
    ngettext_lazy(
        "All workers of %(names)s are quiet: they claim no jobs, and %(count)s job waits.",
        "All workers of %(names)s are quiet: they claim no jobs, and %(count)s jobs wait.",
        "number",
    ),
    Action.SHOW_WORKERS,
    also={"asked_by": _("Asked by %(user)s."), "wake_them": _("Wake them:")},
    worst="critical",
)
def workers_quiet(seen: Seen) -> Iterator[Incident]:
    """Queues whose workers were all asked to be quiet, as one incident."""
    overview, names = seen.overview, quiet_queues(seen.overview.workers)
    if not names:
        return
    jobs = sum(row.details.waiting for row in overview.queues if row.details.name in names)
    # A queue is quiet since the last of its workers is.
    serving = ([worker for worker in overview.living if name in worker.queues] for name in names)
    longest = max((min(workers, key=_quiet_seconds) for workers in serving), key=_quiet_seconds)
    are_all = all(worker.is_quiet for worker in overview.living)
    choice = "--all" if are_all else " ".join(f"--queue {name}" for name in names)
    yield workers_quiet.incident(
        severity=Severity.CRITICAL if jobs else Severity.WARNING,
        since=seen.ago(longest.quiet_seconds),
        names=names,
        count=jobs,
        user=longest.quiet_by[:80],
        command=f"python manage.py rtq_workers wake {choice}",
    )


@HOST.critical(
    _("Worker lost"),
    ngettext_lazy(
        "%(count)s worker has stopped responding (%(worker)s).",
        "%(count)s workers have stopped responding, %(worker)s among them.",
        "number",
    ),
    also={
        "reclaim": _("Running jobs that will be reclaimed shortly: %(jobs)s."),
        "no_reclaim": _(
            "Running jobs that are reclaimed when a worker of these queues has started: %(jobs)s (%(names)s)."
        ),
        "no_jobs": _("No job was running there."),
    },
)
def worker_lost(seen: Seen) -> Iterator[Incident]:
    """Hosts whose workers have lost their leases, and whether anybody is left who takes their jobs back."""
    overview = seen.overview
    alone = unserved({name for worker in overview.workers for name in worker.queues}, overview.workers)
    for host, workers in _by_host(worker for worker in overview.workers if worker.is_lost):
        longest = max(-worker.lease_left_seconds for worker in workers)
        jobs = sum(worker.held for worker in workers)
        queues = [name for name in alone if any(name in worker.queues and worker.held for worker in workers)]
        yield worker_lost.incident(
            host=host,
            since=seen.ago(longest),
            count=len(workers),
            worker=_first(workers),
            jobs=jobs,
            names=sorted(queues),
            also=("no_jobs" if not jobs else "no_reclaim" if queues else "reclaim",),
        )


@HOST.warning(
    _("Worker silent"),
    ngettext_lazy(
        "%(count)s idle worker has stopped asking for work (%(worker)s).",
        "%(count)s idle workers have stopped asking for work, %(worker)s among them.",
        "number",
    ),
)
def worker_silent(seen: Seen) -> Iterator[Incident]:
    """Hosts with idle workers that have stopped asking for work."""
    for host, workers in _by_host(worker for worker in seen.overview.workers if is_silent(worker)):
        since = seen.ago(max(worker.last_claim_seconds or 0.0 for worker in workers))
        yield worker_silent.incident(host=host, since=since, count=len(workers), worker=_first(workers))


@HOST.critical(
    _("Worker crash loop"),
    _(
        "the processes of a worker crash before they run a job (%(reason)s), so it waits before it starts others. Its "
        "log says why."
    ),
)
def worker_crash_loop(seen: Seen) -> Iterator[Incident]:
    """Hosts with workers whose processes crash again and again before they run a job."""
    for host, workers in _by_host(worker for worker in seen.overview.workers if worker.crash_loop):
        yield worker_crash_loop.incident(host=host, reason=workers[0].crash_loop[:200])


@HOST.critical(_("Host without worker"), _("no worker is alive."))
def host_without_worker(seen: Seen) -> Iterator[Incident]:
    """A host that somebody asks about, without a worker."""
    if seen.host and all(worker.is_lost for worker in seen.overview.workers if worker.host == seen.host):
        yield host_without_worker.incident(host=seen.host)


@QUEUE.warning(
    _("Task unknown"),
    ngettext_lazy(
        "%(count)s job waits, because workers that took it do not know its task %(task)s: %(worker)s.",
        "%(count)s jobs wait, because workers that took them do not know their task %(task)s: %(worker)s.",
        "number",
    ),
    Action.SHOW_RETRYING,
    Action.SHOW_WORKERS,
    also={
        "declare_task": _(
            "Start workers with the code that declares the task, in an app of INSTALLED_APPS or in a module of "
            'RTQ["TASK_MODULES"]. Jobs that have waited for %(duration)s are dead.'
        )
    },
    worst="critical",
)
def task_unknown(seen: Seen) -> Iterator[Incident]:
    """Tasks of jobs that came to workers which do not know them, those with most jobs first."""
    unknown = [(row.details.name, task) for row in seen.overview.queues for task in row.unknown_tasks]
    for queue, task in sorted(unknown, key=lambda pair: -pair[1].jobs):
        is_deploy = task.since is not None and (seen.overview.now - task.since).total_seconds() < DEPLOY_SECONDS
        yield task_unknown.incident(
            severity=Severity.WARNING if is_deploy else Severity.CRITICAL,
            since=task.since,
            queue=queue,
            task=task.task,
            values={"task": task.task[:200]},
            count=task.jobs,
            worker=[name.rpartition(":")[0][:80] for name in task.workers],
            duration=get_config().unknown_task_timeout,
        )


@SYSTEM.critical(
    _("Several projects"),
    _(
        "Workers of several projects take jobs from each other, because all use this Redis with the prefix "
        '%(prefix)s: %(names)s. Set another RTQ["PREFIX"] or database in each project.'
    ),
    Action.SHOW_WORKERS,
)
def several_projects(seen: Seen) -> Iterator[Incident]:
    """Workers of several projects: they take jobs from each other."""
    living = (worker for worker in seen.overview.workers if worker.project and not worker.is_lost)
    hosts = sorted(grouped((worker.project, worker.host) for worker in living).items())
    if len(hosts) > 1:
        projects = [f"{project} ({names_text(sorted({*names}), MAX_NAMED)})"[:200] for project, names in hosts]
        yield several_projects.incident(names=projects, prefix=get_config().prefix)


@TASK.warning(
    _("Job hung"),
    ngettext_lazy(
        "%(count)s job seems to hang: %(subject)s in queue %(name)s, running for %(duration)s.",
        "%(count)s jobs seem to hang. The longest: %(subject)s in queue %(name)s, running for %(duration)s.",
        "number",
    ),
    Action.SHOW_JOB,
    Action.SHOW_RUNNING,
)
def job_hung(seen: Seen) -> Iterator[Incident]:
    """Tasks with jobs that run longer than their time limit, or much longer than usual."""
    running = (job for worker in seen.overview.workers for job in worker.running)
    hung = grouped(((job.queue, job.task), job) for job in running if why_hung(job))
    for (queue, task), jobs in sorted(hung.items(), key=lambda pair: -max(job.seconds for job in pair[1])):
        longest = max(jobs, key=lambda job: job.seconds)
        yield job_hung.incident(
            since=longest.claimed_at,
            queue=queue,
            task=task,
            job_id=longest.id,
            count=len(jobs),
            duration=longest.seconds,
        )


def without_worker(seen: Seen) -> list[str]:
    """The queues that nobody serves: those that tasks or settings declare, and others in which jobs wait."""
    return unserved(sorted({*declared_queues(seen.place), *_waiting(seen.overview)}), seen.overview.workers)


def _waiting(overview: Overview) -> dict[str, QueueDetails]:
    """The queues with jobs that wait: for a worker, for their time, or because their task is paused."""
    return {row.details.name: row.details for row in overview.queues if row.details.waiting}


def _quiet_seconds(worker: WorkerDetails) -> float:
    return worker.quiet_seconds or 0.0


def is_silent(worker: WorkerDetails) -> bool:
    """Whether an idle process has stopped asking for work although its supervisor renews its lease."""
    if worker.running or worker.is_quiet or worker.is_lost:
        return False
    return worker.last_claim_seconds is not None and worker.last_claim_seconds > SILENT_SECONDS


def why_hung(job: RunningJob) -> str:
    """Why a running job looks hung: it is over its time limit, or runs ten times as long as usual. "": it does not."""
    task, usual, longest = all_tasks().get(job.task), job.usual_seconds, incident_options().running_seconds
    limit = job.time_limit or (task.time_limit if task else None) or get_config().time_limit
    if limit is not None and job.seconds > limit:
        return gettext("over its time limit of %(limit)g s") % {"limit": limit}
    if usual is not None and job.seconds > max(10.0, 10 * usual):
        return gettext("much longer than usual (%(usual)s)") % {"usual": format_duration(usual)}
    if usual is None and limit is None and job.seconds > longest:
        return gettext("running for over %(duration)s without a time limit") % {"duration": format_duration(longest)}
    return ""


def _by_host(workers: Iterable[WorkerDetails]) -> list[tuple[str, list[WorkerDetails]]]:
    return sorted(grouped((worker.host, worker) for worker in workers).items())


def _first(workers: Sequence[WorkerDetails]) -> str:
    return f"{workers[0].host}:{workers[0].pid}"[:80]

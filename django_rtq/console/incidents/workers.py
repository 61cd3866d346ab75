"""Incidents of workers: none is there, they are lost or silent, or their jobs seem to hang, they run other code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from django_rtq.console.incident_options import incident_options
from django_rtq.console.incidents.incident import Action, Incident, Severity
from django_rtq.console.inspector.details import QueueDetails, RunningJob, WorkerDetails
from django_rtq.console.inspector.overview import Overview
from django_rtq.console.inspector.queues import quiet_queues, unserved
from django_rtq.core.conf.config import get_config
from django_rtq.core.tasks.registry import all_tasks, declared_queues

SILENT_SECONDS = 60.0  # an idle worker asks for work every few seconds
MAX_NAMED = 5  # queues in one text
MAX_CODE_NAMED = 3  # projects, hosts and workers in one text
DEPLOY_SECONDS = 300.0  # in a rolling deploy, older workers meet jobs of new tasks for a while
COMMAND = "python manage.py rtq_worker"


def missing_workers(overview: Overview) -> Iterator[Incident]:
    """No worker at all, or queues that nobody serves: those with jobs, and those that are declared."""
    waiting = {row.details.name: row.details for row in overview.queues if waiting_jobs(row.details)}
    idle = unserved(waiting, overview.workers)
    if not overview.living:
        if overview.queues:
            yield _no_worker(overview, idle)
        return
    for name in sorted(idle, key=lambda name: -(waiting[name].oldest_seconds or 0)):
        yield _unserved(overview, waiting[name])
    if names := [name for name in unserved(declared_queues(), overview.workers) if name not in waiting]:
        yield Incident(
            kind="queues_without_worker",
            severity=Severity.WARNING,
            values={"names": _names(names)},
            actions=(Action.SHOW_WORKERS,),
            command=f"{COMMAND} --queues {','.join(names)}",
        )


def quiet_workers(overview: Overview) -> Iterator[Incident]:
    """Queues whose workers were all asked to be quiet, as one incident."""
    names = quiet_queues(overview.workers)
    if not names:
        return
    jobs = sum(waiting_jobs(row.details) for row in overview.queues if row.details.name in names)
    longest = max((_last_to_be_quiet(overview, name) for name in names), key=_quiet_seconds)
    are_all = all(worker.is_quiet for worker in overview.living)
    choice = "--all" if are_all else " ".join(f"--queue {name}" for name in names)
    yield Incident(
        kind="workers_quiet",
        severity=Severity.CRITICAL if jobs else Severity.WARNING,
        since=overview.ago(longest.quiet_seconds),
        values={
            "names": _names(names),
            "count": jobs,
            **({"user": longest.quiet_by[:80]} if longest.quiet_by else {}),
        },
        also=(*(("asked_by",) if longest.quiet_by else ()), "wake_them"),
        actions=(Action.SHOW_WORKERS,),
        command=f"python manage.py rtq_workers wake {choice}",
    )


def _last_to_be_quiet(overview: Overview, queue: str) -> WorkerDetails:
    """A queue is quiet since the last of its workers is."""
    return min((worker for worker in overview.living if queue in worker.queues), key=_quiet_seconds)


def _quiet_seconds(worker: WorkerDetails) -> float:
    return worker.quiet_seconds or 0.0


def waiting_jobs(queue: QueueDetails) -> int:
    """How many jobs of a queue wait: for a worker, for their time, or because their task is paused."""
    return queue.queued + queue.scheduled + queue.retrying


def _names(names: Sequence[str]) -> str:
    more = f" (+{len(names) - MAX_NAMED})" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def _no_worker(overview: Overview, idle: Sequence[str]) -> Incident:
    gone = overview.contact_seconds
    # A scheduler keeps contact, too: then nobody knows since when there is no worker.
    is_known = gone is not None and gone > get_config().lease_seconds
    return Incident(
        kind="no_worker",
        severity=Severity.CRITICAL,
        since=overview.ago(gone) if is_known else None,
        actions=(Action.SHOW_WORKERS,),
        command=f"{COMMAND} --queues {','.join(idle)}" if idle else COMMAND,
    )


def _unserved(overview: Overview, queue: QueueDetails) -> Incident:
    gone = queue.contact_seconds
    if gone is not None and gone <= get_config().lease_seconds:
        since = None  # a scheduler keeps contact
    else:
        since = min((seconds for seconds in (gone, queue.oldest_seconds) if seconds is not None), default=None)
    return Incident(
        kind="queue_unserved",
        severity=Severity.CRITICAL,
        since=overview.ago(since),
        queue=queue.name,
        values={"name": queue.name, "count": waiting_jobs(queue)},
        actions=(Action.SHOW_QUEUE,),
        command=f"{COMMAND} --queues {queue.name}",
    )


def lost_workers(overview: Overview) -> Iterator[Incident]:
    """Hosts whose workers have lost their leases, and whether anybody is left who takes their jobs back."""
    alone = unserved({name for worker in overview.workers for name in worker.queues}, overview.workers)
    for host, workers in _by_host(worker for worker in overview.workers if worker.is_lost):
        longest = max(-worker.lease_left_seconds for worker in workers)
        jobs = sum(worker.held for worker in workers)
        queues = [name for name in alone if any(name in worker.queues and worker.held for worker in workers)]
        also = ("no_jobs",) if not jobs else ("no_reclaim",) if queues else ("reclaim",)
        lost = _of_host("worker_lost", Severity.CRITICAL, host, workers, overview.ago(longest))
        yield replace(lost, values={**lost.values, "jobs": jobs, "names": _names(sorted(queues))}, also=also)


def silent_workers(overview: Overview) -> Iterator[Incident]:
    """Hosts with idle workers that have stopped asking for work."""
    for host, workers in _by_host(worker for worker in overview.workers if is_silent(worker)):
        longest = max(worker.last_claim_seconds or 0.0 for worker in workers)
        yield _of_host("worker_silent", Severity.WARNING, host, workers, overview.ago(longest))


def crash_loops(overview: Overview) -> Iterator[Incident]:
    """Hosts with workers whose processes crash again and again before they run a job."""
    for host, workers in _by_host(worker for worker in overview.workers if worker.crash_loop):
        values = {"host": host or "?", "reason": workers[0].crash_loop[:200]}
        actions = (Action.SHOW_WORKERS,)
        yield Incident(kind="worker_crash_loop", severity=Severity.CRITICAL, host=host, values=values, actions=actions)


def is_silent(worker: WorkerDetails) -> bool:
    """Whether an idle process has stopped asking for work although its supervisor renews its lease."""
    if worker.running or worker.is_quiet or worker.is_lost:
        return False
    return worker.last_claim_seconds is not None and worker.last_claim_seconds > SILENT_SECONDS


def host_incidents(overview: Overview, host: str) -> list[Incident]:
    """What is wrong with the workers of one host."""
    workers = [worker for worker in overview.workers if worker.host == host]
    incidents = [incident for incident in (*lost_workers(overview), *silent_workers(overview)) if incident.host == host]
    if all(worker.is_lost for worker in workers):
        values = {"host": host}
        incidents.insert(0, Incident(kind="host_without_worker", severity=Severity.CRITICAL, host=host, values=values))
    return incidents


def hung_jobs(overview: Overview) -> Iterator[Incident]:
    """Tasks with jobs that run longer than their time limit, or much longer than usual."""
    hung: dict[tuple[str, str], list[RunningJob]] = {}
    for worker in overview.workers:
        for job in worker.running:
            if is_hung(job):
                hung.setdefault((job.queue, job.task), []).append(job)
    for (queue, task), jobs in sorted(hung.items(), key=lambda pair: -max(job.seconds for job in pair[1])):
        longest = max(jobs, key=lambda job: job.seconds)
        values = {"task": short_name(task), "name": queue, "count": len(jobs), "duration": longest.seconds}
        yield Incident(
            kind="job_hung",
            severity=Severity.WARNING,
            since=longest.claimed_at,
            queue=queue,
            task=task,
            job_id=longest.id,
            values=values,
            actions=(Action.SHOW_JOB, Action.SHOW_RUNNING),
        )


def is_hung(job: RunningJob) -> bool:
    """Whether a running job is over its time limit, or runs much longer than usual."""
    limit = time_limit_of(job)
    if job.looks_hung(limit):
        return True
    return limit is None and job.usual_seconds is None and job.seconds > incident_options().running_seconds


def time_limit_of(job: RunningJob) -> float | None:
    """Of the call, of its task, or of the settings; None: there is none."""
    task = all_tasks().get(job.task)
    return job.time_limit or (task.time_limit if task else None) or get_config().time_limit


def short_name(name: str) -> str:
    """The last part of a dotted name, truncated."""
    return name.rpartition(".")[2][:80]


def _by_host(workers: Iterable[WorkerDetails]) -> list[tuple[str, list[WorkerDetails]]]:
    by_host: dict[str, list[WorkerDetails]] = {}
    for worker in workers:
        by_host.setdefault(worker.host, []).append(worker)
    return sorted(by_host.items())


def _of_host(
    kind: str,
    severity: Severity,
    host: str,
    workers: Sequence[WorkerDetails],
    since: datetime | None,
) -> Incident:
    return Incident(
        kind=kind,
        severity=severity,
        since=since,
        host=host,
        values={"host": host, "count": len(workers), "worker": f"{host}:{workers[0].pid}"[:80]},
        actions=(Action.SHOW_WORKERS,),
    )


def unknown_tasks(overview: Overview) -> Iterator[Incident]:
    """Tasks of jobs that came to workers which do not know them, those with most jobs first."""
    unknown = [(row.details.name, task) for row in overview.queues for task in row.unknown_tasks]
    for queue, task in sorted(unknown, key=lambda pair: -pair[1].jobs):
        is_deploy = task.since is not None and (overview.now - task.since).total_seconds() < DEPLOY_SECONDS
        yield Incident(
            kind="task_unknown",
            severity=Severity.WARNING if is_deploy else Severity.CRITICAL,
            since=task.since,
            queue=queue,
            task=task.task,
            values={
                "task": task.task[:200],
                "name": queue,
                "count": task.jobs,
                "worker": _first_names([name.rpartition(":")[0][:80] for name in task.workers]),
                "duration": get_config().unknown_task_timeout,
            },
            also=("declare_task",),
            actions=(Action.SHOW_RETRYING, Action.SHOW_WORKERS),
        )


def several_projects(overview: Overview) -> Iterator[Incident]:
    """Workers of several projects: they take jobs from each other."""
    hosts: dict[str, set[str]] = {}
    for worker in overview.workers:
        if worker.project and not worker.is_lost:
            hosts.setdefault(worker.project, set()).add(worker.host)
    if len(hosts) > 1:
        projects = [f"{project} ({_first_names(sorted(names))})"[:200] for project, names in sorted(hosts.items())]
        yield Incident(
            kind="several_projects",
            severity=Severity.CRITICAL,
            values={"names": _first_names(projects), "prefix": get_config().prefix},
            actions=(Action.SHOW_WORKERS,),
        )


def _first_names(names: Sequence[str]) -> str:
    return ", ".join([*names[:MAX_CODE_NAMED], *["…"][: len(names) > MAX_CODE_NAMED]])

"""What can be done with subjects: one row for each action, with its words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from django_rtq.console import permissions
from django_rtq.console.acting.jobs import of_all_jobs
from django_rtq.console.acting.verb import Target, Verb
from django_rtq.console.nouns import Place
from django_rtq.console.reading.selection import Selection
from django_rtq.exceptions import LeaseNotExpired, TooManyPausedTasks, WorkerNotFound
from django_rtq.workflows.handle import Workflow

CANCELLED_AT_ONCE = 2_000  # jobs of a workflow; heartbeats cancel the others
_UNKNOWN = {WorkerNotFound: _("Nothing was done: worker %(name)s is unknown. It has exited or has only just started.")}


def _forget(place: Place, target: Target) -> str | bool:
    answer = place.queues[target.name].forget(**(target.value or {}))
    return {"forgotten": True, "missing": False}.get(answer, answer)


def _limit(change: Callable[..., None], limits: Mapping[str, Any]) -> str:
    """Change them. Returns which were changed."""
    if limits:
        change(**limits)
    return ", ".join(f"{name}={value}" for name, value in limits.items())


_LIMITS = Verb(
    name="limits",
    label=_("Limits"),
    permission=permissions.LIMIT,
    done=_("Limits in queue %(queue)s changed: %(answer)s"),
    nothing=_("Nothing was changed."),
    question=_(
        "A change holds for all workers from their next claim on, is stored in Redis and survives restarts. Running "
        "jobs continue."
    ),
    is_harmless=True,
)


def _of_client(client: Any) -> Selection:
    return Selection(client=client.client)


def _of_task(task: Any) -> Selection:
    return Selection(task=f"={task.task}")


ACTIONS = {
    "pause_queue": Verb(
        name="pause",
        label=_("Pause queue"),
        permission=permissions.PAUSE,
        do=lambda place, target: place.queues[target.name].pause(by=target.by),
        done=_("Queue %(name)s is paused. Running jobs continue, and no new jobs start."),
        log=_("Paused."),
        nothing=_("Queue %(name)s was already paused."),
        applies=lambda queue: not queue.details.paused,
    ),
    "resume_queue": Verb(
        name="resume",
        label=_("Resume queue"),
        permission=permissions.PAUSE,
        do=lambda place, target: place.queues[target.name].resume(),
        done=_("Queue %(name)s was resumed."),
        log=_("Resumed."),
        nothing=_("Queue %(name)s is not paused."),
        applies=lambda queue: queue.details.paused,
    ),
    "pause_task": Verb(
        name="pause",
        label=_("Pause"),
        permission=permissions.PAUSE_TASK,
        do=lambda place, target: place.tasks[target.name].pause(target.queue, by=target.by),
        done=_("Task %(name)s is paused in %(queues)s. Its running jobs continue, and no new jobs start."),
        log=_("Paused in %(queues)s."),
        nothing=_("Task %(name)s was already paused."),
        refused={TooManyPausedTasks: "%(error)s"},
        applies=lambda task: not (task.is_internal or task.paused_in),
    ),
    "resume_task": Verb(
        name="resume",
        label=_("Resume"),
        permission=permissions.PAUSE_TASK,
        do=lambda place, target: place.tasks[target.name].resume(target.queue),
        done=_("Task %(name)s was resumed in %(queues)s."),
        log=_("Resumed in %(queues)s."),
        nothing=_("Task %(name)s is not paused."),
        applies=lambda task: bool(task.paused_in) and not task.is_internal,
    ),
    "pause_client": Verb(
        name="pause",
        label=_("Pause"),
        permission=permissions.PAUSE_CLIENT,
        do=lambda place, target: place.clients[target.name].pause(target.queue, by=target.by),
        done=_("Client %(name)s is paused in %(queues)s. Its running jobs continue, and no new jobs start."),
        log=_("Paused in %(queues)s."),
        nothing=_("Client %(name)s was already paused."),
        applies=lambda in_queue: in_queue.pause is None,
    ),
    "resume_client": Verb(
        name="resume",
        label=_("Resume"),
        permission=permissions.PAUSE_CLIENT,
        do=lambda place, target: place.clients[target.name].resume(target.queue),
        done=_("Client %(name)s was resumed in %(queues)s."),
        log=_("Resumed in %(queues)s."),
        nothing=_("Client %(name)s is not paused."),
        applies=lambda in_queue: in_queue.pause is not None,
    ),
    "quiet_worker": Verb(
        name="quiet",
        label=_("Quiet"),
        permission=permissions.CONTROL,
        do=lambda place, target: place.workers[target.name].quiet(by=target.by),
        done=_("The rtq_worker of %(name)s was asked to go quiet: running jobs continue, and no new jobs start."),
        log=_("Asked to go quiet."),
        refused=_UNKNOWN,
        applies=lambda worker: not (worker.is_lost or worker.is_quiet),
    ),
    "wake_worker": Verb(
        name="wake",
        label=_("Wake"),
        permission=permissions.CONTROL,
        do=lambda place, target: place.workers[target.name].wake(),
        done=_("The rtq_worker of %(name)s was asked to start new jobs again."),
        log=_("Asked to start new jobs again."),
        refused=_UNKNOWN,
        applies=lambda worker: worker.is_quiet and not worker.is_lost,
    ),
    "purge_queue": of_all_jobs(
        "purge",
        _("Purge"),
        lambda queue: Selection(queues=[queue.name]),
        lambda queue: queue.details.waiting > 0,
    ),
    "cancel_client": of_all_jobs(
        "cancel",
        _("Cancel its jobs"),
        _of_client,
        lambda client: any(each.queued or each.scheduled for each in client.in_queues),
    ),
    "requeue_client": of_all_jobs("requeue", _("Requeue its dead letters"), _of_client),
    "erase_client": of_all_jobs("erase", _("Erase"), _of_client, lambda client: client.client),
    "cancel_task": of_all_jobs(
        "cancel",
        _("Cancel its jobs"),
        _of_task,
        lambda task: any(queue.waiting or queue.is_cut for queue in task.details.queues),
    ),
    "requeue_task": of_all_jobs(
        "requeue",
        _("Requeue its dead letters"),
        _of_task,
        lambda task: any(queue.dead or "dead" in queue.cut for queue in task.details.queues),
    ),
    "requeue_workflow": of_all_jobs(
        "requeue",
        _("Requeue dead jobs"),
        lambda progress: Selection(workflow=progress.id),
        lambda progress: not progress.state.is_final and any(step.dead for step in progress.steps),
    ),
    "cancel_workflow": Verb(
        name="cancel",
        label=_("Cancel workflow"),
        permission=permissions.CANCEL,
        do=lambda place, target: Workflow(target.name, backend=place.readers.place).cancel(most_jobs=CANCELLED_AT_ONCE),
        done=_("Workflow %(name)s is cancelled. Running jobs were asked to stop."),
        log=_("Cancelled workflow %(name)s."),
        nothing=_("Nothing was done: the workflow is over."),
        applies=lambda progress: not progress.state.is_final,
        title=_("Cancel a workflow"),
        question=_("This cancels workflow %(name)s."),
        consequence=_("No step starts any more. Waiting jobs are cancelled, running ones are asked to stop."),
    ),
    "requeue_group": of_all_jobs("requeue", _("Requeue"), attrgetter("wanted"), attrgetter("is_known")),
    "discard_group": of_all_jobs("discard", _("Discard"), attrgetter("wanted"), attrgetter("is_known")),
    "limit_client": replace(
        _LIMITS,
        do=lambda place, target: _limit(partial(place.clients[target.name].limit, target.queue), target.value),
        title=_("Limits of client %(name)s in queue %(queue)s"),
    ),
    "limit_queue": replace(
        _LIMITS,
        do=lambda place, target: _limit(place.queues[target.name].limit, target.value),
        title=_("Limits of queue %(queue)s"),
    ),
    "limit_clients": replace(
        _LIMITS,
        name="limit_clients",
        label=_("Limits of each client"),
        do=lambda place, target: _limit(place.queues[target.name].limit_clients, target.value),
        title=_("Limits of each client in queue %(queue)s"),
    ),
    "forget_queue": Verb(
        name="forget",
        label=_("Forget"),
        permission=permissions.PURGE,
        do=_forget,
        done=_("Queue %(name)s was forgotten."),
        log=_("Forgotten."),
        nothing=_("Queue %(name)s is in no list: nothing was changed."),
        refused={
            "jobs": _("Queue %(name)s stays: it has jobs or dead letters."),
            "paused": _("Queue %(name)s stays: it is paused. Resume it first."),
            "limits": _("Queue %(name)s stays: it has limits, or clients that are paused."),
            "workers": _("Queue %(name)s stays: a worker serves it."),
            "recent": _("Queue %(name)s stays: its last jobs finished a few minutes ago. Try again in two minutes."),
            "outcomes": _("Queue %(name)s stays: it keeps outcomes of finished jobs."),
        },
        applies=lambda queue: queue.is_empty,
        title=_("Forget queue %(name)s"),
        question=_("This removes queue %(name)s from all lists. A queue with jobs, dead letters or workers stays."),
        consequence=_("A queue that is used again comes back."),
        is_typed=True,
    ),
    "stop_worker": Verb(
        name="stop",
        label=_("Stop"),
        permission=permissions.CONTROL,
        do=lambda place, target: place.workers[target.name].stop(),
        done=_("The rtq_worker of %(name)s was asked to stop. It exits when its running jobs have finished."),
        log=_("Asked to stop."),
        refused=_UNKNOWN,
        applies=lambda worker: not worker.is_lost,
        title=_("Stop a worker"),
        question=_("This stops the rtq_worker of %(name)s and all its processes."),
        consequence=_(
            "It starts no new jobs, finishes its running jobs, releases those that take too long, and exits. You "
            "cannot start it again from here: use the service manager of its machine."
        ),
    ),
    "reclaim_worker": Verb(
        name="reclaim",
        label=_("Reclaim its jobs"),
        permission=permissions.REQUEUE,
        do=lambda place, target: len(place.workers[target.name].reclaim()),
        done=ngettext_lazy(
            "%(count)d job of worker %(name)s was reclaimed.",
            "%(count)d jobs of worker %(name)s were reclaimed.",
            "count",
        ),
        refused={
            LeaseNotExpired: _(
                "Nothing was done: the lease of worker %(name)s has not expired, so it may still be running."
            )
        },
        applies=lambda worker: worker.is_lost,
    ),
}


def everywhere(noun: str, applies: Callable[[Any], bool], is_paused: Callable[[Any], bool]) -> tuple[Verb, Verb]:
    """Pause and resume for all queues together."""
    on, off = ACTIONS[f"pause_{noun}"], ACTIONS[f"resume_{noun}"]
    return (
        replace(on, label=_("Pause in all queues"), applies=lambda row: applies(row) and not is_paused(row)),
        replace(off, label=_("Resume in all queues"), applies=lambda row: applies(row) and is_paused(row)),
    )

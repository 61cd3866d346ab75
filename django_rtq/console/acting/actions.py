"""What can be done with subjects: one row for each action, with its words."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from django_rtq.console import permissions
from django_rtq.console.acting.jobs import of_all_jobs
from django_rtq.console.acting.switches import UNKNOWN_WORKER
from django_rtq.console.acting.verb import Target, Verb
from django_rtq.console.nouns import Place
from django_rtq.console.reading.selection import Selection
from django_rtq.exceptions import LeaseNotExpired
from django_rtq.workflows.handle import Workflow

CANCELLED_AT_ONCE = 2_000  # jobs of a workflow; heartbeats cancel the others


def _forget(place: Place, target: Target) -> str | bool:
    answer = place.queues[target.name].forget(discard_outcomes="discard_outcomes" in target.options)
    return {"forgotten": True, "missing": False}.get(answer, answer)


def _of_client(client: Any) -> Selection:
    return Selection(client=client.client)


def _of_task(task: Any) -> Selection:
    return Selection(task=f"={task.task}")


ACTIONS = {
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
    "limit_client": Verb(  # its page is a form
        name="limits",
        label=_("Limits"),
        permission=permissions.LIMIT,
        question=_("Limits of client %(client)s in queue %(queue)s"),
        is_harmless=True,
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
        refused=UNKNOWN_WORKER,
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

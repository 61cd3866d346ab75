"""What can be done with subjects that are no jobs: one row for each action, with its words."""

from __future__ import annotations

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from django_rtq.console import permissions
from django_rtq.console.acting.switches import UNKNOWN_WORKER
from django_rtq.console.acting.verb import Target, Verb
from django_rtq.console.inspector.inspector import Inspector
from django_rtq.exceptions import LeaseNotExpired

#: What a purge means for jobs.
PURGED = format_lazy(
    "{} {}",
    _("This includes scheduled jobs and jobs waiting for a retry. Running jobs and dead letters are kept."),
    _("They will never run, and their arguments are deleted. This cannot be undone."),
)


def _forget(inspector: Inspector, target: Target) -> str | bool:
    answer = inspector.forget(target.name, discard_outcomes="discard_outcomes" in target.options)
    return {"forgotten": True, "missing": False}.get(answer, answer)


ACTIONS = {
    # Its page and its command do it in pieces.
    "purge_queue": Verb(
        name="purge",
        label=_("Purge"),
        permission=permissions.PURGE,
        applies=lambda queue: queue.details.waiting > 0,
        title=_("Purge queue %(name)s"),
        question=ngettext_lazy(
            "This purges %(count)d job that is waiting in queue %(name)s.",
            "This purges %(count)d jobs that are waiting in queue %(name)s.",
            "count",
        ),
        consequence=PURGED,
        count=lambda inspector, target: inspector.queues.get(target.name).waiting,
        is_typed=True,
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
        do=lambda inspector, target: inspector.stop_worker(target.name),
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
        do=lambda inspector, target: len(inspector.reclaim_worker(target.name)),
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

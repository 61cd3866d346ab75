"""What can be done with subjects that are no jobs: one row for each action, with its words."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from django_rtq.console import permissions
from django_rtq.console.acting.switches import UNKNOWN_WORKER
from django_rtq.console.acting.verb import Verb
from django_rtq.exceptions import LeaseNotExpired

ACTIONS = {
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

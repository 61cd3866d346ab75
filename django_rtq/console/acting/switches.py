"""What can be switched: one row for each switch, with its words."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from django_rtq.console import permissions
from django_rtq.console.acting.verb import Switch, Verb
from django_rtq.exceptions import WorkerNotFound

UNKNOWN_WORKER = {
    WorkerNotFound: _("Nothing was done: worker %(name)s is unknown. It has exited or has only just started.")
}

SWITCHES = {
    "queue": Switch(
        is_on=lambda queue: queue.details.paused,
        on=Verb(
            name="pause",
            label=_("Pause queue"),
            permission=permissions.PAUSE,
            do=lambda inspector, target: inspector.pause(target.name),
            done=_("Queue %(name)s is paused. Running jobs continue, and no new jobs start."),
            log=_("Paused."),
            nothing=_("Queue %(name)s was already paused."),
        ),
        off=Verb(
            name="resume",
            label=_("Resume queue"),
            permission=permissions.PAUSE,
            do=lambda inspector, target: inspector.resume(target.name),
            done=_("Queue %(name)s was resumed."),
            log=_("Resumed."),
            nothing=_("Queue %(name)s is not paused."),
        ),
    ),
    "worker": Switch(
        is_on=lambda worker: worker.is_quiet,
        on=Verb(
            name="quiet",
            label=_("Quiet"),
            permission=permissions.CONTROL,
            do=lambda inspector, target: inspector.quiet_worker(target.name, by=target.by),
            done=_("The rtq_worker of %(name)s was asked to go quiet: running jobs continue, and no new jobs start."),
            log=_("Asked to go quiet."),
            refused=UNKNOWN_WORKER,
            applies=lambda worker: not worker.is_lost,
        ),
        off=Verb(
            name="wake",
            label=_("Wake"),
            permission=permissions.CONTROL,
            do=lambda inspector, target: inspector.wake_worker(target.name),
            done=_("The rtq_worker of %(name)s was asked to start new jobs again."),
            log=_("Asked to start new jobs again."),
            refused=UNKNOWN_WORKER,
            applies=lambda worker: not worker.is_lost,
        ),
    ),
}

"""What can be switched: one row for each switch, with its words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext_lazy as _

from django_rtq.console import permissions
from django_rtq.console.acting.verb import Switch, Verb
from django_rtq.exceptions import TooManyPausedTasks, WorkerNotFound

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
            do=lambda place, target: place.queues[target.name].pause(by=target.by),
            done=_("Queue %(name)s is paused. Running jobs continue, and no new jobs start."),
            log=_("Paused."),
            nothing=_("Queue %(name)s was already paused."),
        ),
        off=Verb(
            name="resume",
            label=_("Resume queue"),
            permission=permissions.PAUSE,
            do=lambda place, target: place.queues[target.name].resume(),
            done=_("Queue %(name)s was resumed."),
            log=_("Resumed."),
            nothing=_("Queue %(name)s is not paused."),
        ),
    ),
    "task": Switch(
        is_on=lambda task: bool(task.paused_in),
        on=Verb(
            name="pause",
            label=_("Pause"),
            permission=permissions.PAUSE_TASK,
            do=lambda place, target: place.tasks[target.name].pause(target.queue, by=target.by),
            done=_("Task %(name)s is paused in %(queues)s. Its running jobs continue, and no new jobs start."),
            log=_("Paused in %(queues)s."),
            nothing=_("Task %(name)s was already paused."),
            refused={TooManyPausedTasks: "%(error)s"},
            applies=lambda task: not task.is_internal,
        ),
        off=Verb(
            name="resume",
            label=_("Resume"),
            permission=permissions.PAUSE_TASK,
            do=lambda place, target: place.tasks[target.name].resume(target.queue),
            done=_("Task %(name)s was resumed in %(queues)s."),
            log=_("Resumed in %(queues)s."),
            nothing=_("Task %(name)s is not paused."),
            applies=lambda task: not task.is_internal,
        ),
    ),
    "client": Switch(
        is_on=lambda in_queue: in_queue.pause is not None,
        on=Verb(
            name="pause",
            label=_("Pause"),
            permission=permissions.PAUSE_CLIENT,
            do=lambda place, target: place.clients[target.name].pause(target.queue, by=target.by),
            done=_("Client %(name)s is paused in %(queues)s. Its running jobs continue, and no new jobs start."),
            log=_("Paused in %(queues)s."),
            nothing=_("Client %(name)s was already paused."),
        ),
        off=Verb(
            name="resume",
            label=_("Resume"),
            permission=permissions.PAUSE_CLIENT,
            do=lambda place, target: place.clients[target.name].resume(target.queue),
            done=_("Client %(name)s was resumed in %(queues)s."),
            log=_("Resumed in %(queues)s."),
            nothing=_("Client %(name)s is not paused."),
        ),
    ),
    "worker": Switch(
        is_on=lambda worker: worker.is_quiet,
        on=Verb(
            name="quiet",
            label=_("Quiet"),
            permission=permissions.CONTROL,
            do=lambda place, target: place.workers[target.name].quiet(by=target.by),
            done=_("The rtq_worker of %(name)s was asked to go quiet: running jobs continue, and no new jobs start."),
            log=_("Asked to go quiet."),
            refused=UNKNOWN_WORKER,
            applies=lambda worker: not worker.is_lost,
        ),
        off=Verb(
            name="wake",
            label=_("Wake"),
            permission=permissions.CONTROL,
            do=lambda place, target: place.workers[target.name].wake(),
            done=_("The rtq_worker of %(name)s was asked to start new jobs again."),
            log=_("Asked to start new jobs again."),
            refused=UNKNOWN_WORKER,
            applies=lambda worker: not worker.is_lost,
        ),
    ),
}


def everywhere(switch: Switch, is_on: Callable[[Any], bool], **changed: Any) -> Switch:
    """A switch for all queues together. `changed`: of both verbs."""
    on = replace(switch.on, label=_("Pause in all queues"), **changed)
    return Switch(is_on=is_on, on=on, off=replace(switch.off, label=_("Resume in all queues"), **changed))

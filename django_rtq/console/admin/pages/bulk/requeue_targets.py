"""Another queue in which dead letters are requeued: the choice in forms, and what is said of it."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _

from django_rtq.console.admin import query_params
from django_rtq.console.inspector.actions import targets_in
from django_rtq.console.inspector.inspector import get_inspector
from django_rtq.console.inspector.members import viewed_places


def requeue_targets(queue: str = "") -> list[tuple[str, str]]:
    """The other queues, and how a form shows each."""
    overview = get_inspector().shared_overview.read()
    paused = {row.details.name: row.details.paused for row in overview.queues}
    served = {name for worker in overview.workers for name in worker.queues}
    labels = []
    for name in sorted(targets_in(viewed_places()) - {queue}):
        unserved = "" if name in served else _("no worker serves it")
        notes = ", ".join(filter(None, [_("paused") if paused.get(name) else "", unserved]))
        labels.append((name, _("%(queue)s (%(notes)s)") % {"queue": name, "notes": notes} if notes else name))
    return labels


def read_target(data: QueryDict) -> str:
    """The queue that was chosen; "" if there is none, or it is not one of the choice."""
    target = query_params.get_text(data, "target")
    return target if target and target in targets_in(viewed_places()) else ""


def refuses_target(request: HttpRequest) -> bool:
    """Whether a form names a queue that is not one of the choice: the user is told."""
    if not query_params.get_text(request.POST, "target") or read_target(request.POST):
        return False
    messages.warning(request, _("Nothing was done: choose a queue from the list."))
    return True


def warn_if_nobody_serves(request: HttpRequest, target: str) -> None:
    """Say that the jobs have to wait."""
    inspector = get_inspector()
    if inspector.queues.get(target).paused:
        messages.warning(request, _("Queue %(name)s is paused: the jobs wait until it is resumed.") % {"name": target})
    if not inspector.workers([target]):
        messages.warning(
            request,
            _("No worker serves queue %(name)s now: the jobs wait. Start one: %(command)s")
            % {"name": target, "command": f"python manage.py rtq_worker --queues {target}"},
        )

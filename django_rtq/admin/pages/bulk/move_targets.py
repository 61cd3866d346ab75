"""The queues to which jobs can be moved: the choice in forms, and what is said afterwards."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib import messages
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _

from django_rtq.admin import query_params
from django_rtq.inspector.actions import is_in_another_shard
from django_rtq.inspector.inspector import get_inspector
from django_rtq.inspector.places import shard_places, viewed_backend, views_all_shards
from django_rtq.tasks.registry import declared_queues


def move_targets(queue: str) -> list[tuple[str, str]]:
    """The other queues that are declared or were used, and how a form shows each."""
    overview = get_inspector().shared_overview.read()
    paused = {row.details.name: row.details.paused for row in overview.queues}
    served = {name for worker in overview.workers for name in worker.queues}
    labels = []
    for name in sorted(_known(paused) - {queue}):
        unserved = "" if name in served else _("no worker serves it")
        notes = ", ".join(filter(None, [_("paused") if paused.get(name) else "", unserved]))
        labels.append((name, _("%(queue)s (%(notes)s)") % {"queue": name, "notes": notes} if notes else name))
    return labels


def _known(used: Iterable[str]) -> set[str]:
    """Without queues that are in another shard as a whole."""
    places = shard_places() if views_all_shards() else [viewed_backend()]
    names = (*declared_queues(), *used)
    return {name for name in names if not any(is_in_another_shard(name, place) for place in places)}


def read_target(data: QueryDict, queue: str) -> str:
    """The queue that was chosen; "" if there is none, or it is not one of the choice."""
    target = query_params.get_text(data, "target")
    known = _known(get_inspector().queues.names()) if target else set()
    return target if target in known and target != queue else ""


def warn_of_target(request: HttpRequest, queue: str) -> None:
    """Say why nothing was done, if read_target() found no queue in a form."""
    if query_params.get_text(request.POST, "target") == queue:
        text = _("Nothing was done: queue %(name)s is where it is already.") % {"name": queue}
    else:
        text = _("Nothing was done: choose a queue from the list.")
    messages.warning(request, text)


def warn_if_nobody_serves(request: HttpRequest, target: str) -> None:
    """Say that moved jobs have to wait."""
    inspector = get_inspector()
    if inspector.queues.get(target).paused:
        messages.warning(request, _("Queue %(name)s is paused: the jobs wait until it is resumed.") % {"name": target})
    if not inspector.workers([target]):
        messages.warning(
            request,
            _("No worker serves queue %(name)s now: the jobs wait. Start one: %(command)s")
            % {"name": target, "command": f"python manage.py rtq_worker --queues {target}"},
        )

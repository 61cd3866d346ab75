"""Worker processes, grouped by host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_rtq.console.formatting import format_number
from django_rtq.console.inspector.details import WorkerDetails

MAX_QUEUES_SHOWN = 5  # of a process


def by_host(workers: Iterable[WorkerDetails]) -> list[tuple[str, list[WorkerDetails]]]:
    """The processes of each host, of one rtq_worker together. Hosts with lost ones come first, an unknown one last."""
    hosts: dict[str, list[WorkerDetails]] = {}
    for worker in sorted(workers, key=lambda worker: (worker.supervisor, worker.pid, worker.name)):
        hosts.setdefault(worker.host, []).append(worker)
    return sorted(hosts.items(), key=lambda host: (not any(worker.is_lost for worker in host[1]), not host[0], host[0]))


def host_sections(hosts: Iterable[tuple[str, list[WorkerDetails]]]) -> list[dict[str, Any]]:
    """A section of the list of workers for each host."""
    return [{"host": name, "summary": _summary(workers), "rows": _rows(workers)} for name, workers in hosts]


def _rows(workers: Iterable[WorkerDetails]) -> list[dict[str, Any]]:
    """A row for each process."""
    return [
        {
            "worker": worker,
            "queues": worker.queues[:MAX_QUEUES_SHOWN],
            "other_queues": worker.queues[MAX_QUEUES_SHOWN:],
            "is_lost": worker.is_lost,
            "busy_text": _("%(busy)d of %(slots)d") % {"busy": worker.busy, "slots": worker.slots},
            "memory": filesizeformat(worker.memory_bytes) if worker.memory_bytes else "",
            "uptime": worker.up_seconds,
        }
        for worker in workers
    ]


def _summary(workers: Sequence[WorkerDetails]) -> str:
    text = ngettext("%(count)s process, %(busy)s", "%(count)s processes, %(busy)s", len(workers))
    busy = _("%(busy)s of %(slots)s slots busy") % {
        "busy": format_number(sum(worker.busy for worker in workers)),
        "slots": format_number(sum(worker.slots for worker in workers)),
    }
    return text % {"count": format_number(len(workers)), "busy": busy}

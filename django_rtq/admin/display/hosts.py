"""Hosts and their worker processes, and whether a host can be switched off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_rtq.admin.display.jobs import running_by_worker
from django_rtq.admin.display.sanitize import clean_text
from django_rtq.formatting import format_duration, format_number
from django_rtq.inspector.details import WorkerDetails
from django_rtq.inspector.hosts import HostDetails

MAX_QUEUES_SHOWN = 5  # of a process


def host_sections(hosts: Sequence[HostDetails]) -> list[dict[str, Any]]:
    """A section of the list of workers for each host."""
    return [{"host": host, "summary": _summary(host), "rows": worker_rows(host.workers)} for host in hosts]


def worker_rows(workers: Sequence[WorkerDetails]) -> list[dict[str, Any]]:
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


def host_context(host: HostDetails) -> dict[str, Any]:
    """What the page of a host shows."""
    level, text = host_state(host)
    return {
        "host": host,
        "level": level,
        "state_text": text,
        "facts": _facts(host),
        "rows": worker_rows(host.workers),
        "workers_with_jobs": running_by_worker(host.workers),
        "is_quiet": host.quiet == len(host.workers) and not host.is_asked_to_work,
    }


def host_state(host: HostDetails) -> tuple[str, str]:
    """Whether it can be switched off, and if not, why: (level of the banner, text)."""
    if not host.workers:
        return "warn", _("No worker process is known on this host: it has exited, or was never started.")
    if host.is_drained:
        return "good", _("Drained: all processes are quiet, and no job runs on them. The host can be switched off.")
    if not host.quiet or host.is_asked_to_work:
        return "", ""
    return "warn", " ".join([_("Not drained yet."), *_what_is_left(host)])


def _what_is_left(host: HostDetails) -> list[str]:
    reasons = []
    if host.held:
        text = ngettext("%(count)s job still runs on it.", "%(count)s jobs still run on it.", host.held)
        reasons.append(text % {"count": format_number(host.held)})
    if working := len(host.workers) - host.quiet:
        text = ngettext(
            "%(count)s process has not said yet that it is quiet.",
            "%(count)s processes have not said yet that they are quiet.",
            working,
        )
        reasons.append(text % {"count": format_number(working)})
    if host.lost:
        text = ngettext("%(count)s process is not responding.", "%(count)s processes are not responding.", host.lost)
        reasons.append(text % {"count": format_number(host.lost)})
    if host.unknown:
        text = ngettext(
            "%(count)s process has not said yet on which host it runs.",
            "%(count)s processes have not said yet on which host they run.",
            host.unknown,
        )
        reasons.append(text % {"count": format_number(host.unknown)})
    return reasons


def _summary(host: HostDetails) -> str:
    text = ngettext("%(count)s process, %(busy)s", "%(count)s processes, %(busy)s", len(host.workers))
    return text % {"count": format_number(len(host.workers)), "busy": _busy_text(host)}


def _busy_text(host: HostDetails) -> str:
    return _("%(busy)s of %(slots)s slots busy") % {
        "busy": format_number(host.busy),
        "slots": format_number(host.slots),
    }


def _facts(host: HostDetails) -> list[tuple[str, str]]:
    versions = [("django_rtq", host.versions)] if host.project_versions else [(_("Version"), host.versions)]
    if host.project_versions:
        versions.insert(0, (_("Version"), host.project_versions))
    return [
        (_("Processes"), format_number(len(host.workers))),
        ("rtq_worker", format_number(host.rtq_workers)),
        (_("Slots"), _busy_text(host)),
        (_("Memory"), filesizeformat(host.memory_bytes)),
        *((title, ", ".join(clean_text(version, 40) for version in names)) for title, names in versions),
        (_("Uptime"), format_duration(host.up_seconds)),
    ]

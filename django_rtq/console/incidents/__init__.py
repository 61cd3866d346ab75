"""What is wrong, since when, and what ends it: for the admin, commands, health checks, metrics and signals (D94)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain, islice

from django_rtq.console.incident_options import KINDS, incident_options
from django_rtq.console.incidents import queues, schedules, server, workers
from django_rtq.console.incidents.incident import DETECTORS, Action, Incident, Seen, Severity, worst_first, worst_of
from django_rtq.console.merging import merge
from django_rtq.console.reading.overview import Overview
from django_rtq.console.reading.readers import Readers
from django_rtq.core.broker.task_backends import shard_of
from django_rtq.databases.outbox import outbox_lag

__all__ = [  # with the modules that declare the detectors
    "Action",
    "Incident",
    "Seen",
    "Severity",
    "find_incidents",
    "look",
    "queues",
    "reported",
    "schedules",
    "server",
    "workers",
    "worst_of",
]

MAX_OF_DETECTOR = 50  # incidents of one detector, the worst
OF_A_HOST = ("host_without_worker", "worker_lost", "worker_silent")


def look(
    readers: Readers,
    read: Callable[[Readers], Overview] = lambda readers: readers.overview.read(),
    *,
    host: str = "",
    oldest_seconds: float | None = None,
) -> Seen:
    """How it goes at this moment, and all incidents. One round trip beside those of `read`. Raises BrokerError.

    With the readers of all shards: in those that answer. `host`: only its workers are of interest.
    """

    def here(readers: Readers) -> Seen:
        overview, place = read(readers), readers.place
        known = () if host else schedules.known_schedules(place)
        return Seen(overview=overview, place=place, schedules=known, oldest_seconds=oldest_seconds, host=host)

    every = []
    for answer in readers.every(here):
        seen = answer if host else replace(answer, lag=outbox_lag(answer.place))  # the database, in this thread
        shards = (shard_of(seen.place) or 0,) if readers.is_of_all_shards else ()
        found = [replace(incident, shards=shards) for incident in find_incidents(seen)]
        every.append(replace(seen, unserved=workers.without_worker(seen), incidents=found))
    return merge(every)


def find_incidents(seen: Seen) -> list[Incident]:
    """All incidents, the worst first."""
    kinds = OF_A_HOST if seen.host else KINDS
    every = ((each for each in DETECTORS[kind].find(seen) if seen.host in ("", each.host)) for kind in kinds)
    return reported(chain.from_iterable(islice(found, MAX_OF_DETECTOR) for found in every))


def reported(incidents: Iterable[Incident]) -> list[Incident]:
    """Those that RTQ["INCIDENTS"] does not ignore, the worst first."""
    options = incident_options()
    found = [
        replace(incident, severity=Severity.CRITICAL) if incident.kind in options.critical else incident
        for incident in incidents
        if incident.kind not in options.ignore
    ]
    return worst_first(found)

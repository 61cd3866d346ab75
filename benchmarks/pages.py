"""Requests the pages of the admin: python -m benchmarks.pages FILE measures each page and writes the figures to FILE.

Runs in a process of its own, because the other figures are for a project without the admin. Requests go through all of
Django: middleware, session, permissions, view and template, but not through a web server or browser.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.test import Client

ROOT = "/admin/django_rtq/"
PAGES = {
    "nothing": "/admin/password_change/done/",  # an empty page of the admin, for comparison
    "overview": f"{ROOT}queue/",
    "overview_day": f"{ROOT}queue/?span=24h",
    "queue": f"{ROOT}queue/flood/",
    "queue_dead": f"{ROOT}queue/dead-letters/?state=dead",
    "dead": f"{ROOT}deadletter/",
    "running": f"{ROOT}job/",
    "workers": f"{ROOT}worker/",
    "tasks": f"{ROOT}registeredtask/",
}
REPEATS = 15  # requests per page


def main(file: Path, click: bool) -> None:
    """Measure, or click once, and write the result to the file."""
    client = _signed_in()
    found = _click(client) if click else {name: _page(client, url) for name, url in PAGES.items()}
    # Renamed when it is complete: the reader waits for the file.
    partial_file = file.with_suffix(".part")
    partial_file.write_text(json.dumps(found))
    partial_file.rename(file)


def _signed_in() -> Client:
    os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.admin_settings"
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.test import Client

    call_command("migrate", verbosity=0)
    client = Client()
    client.force_login(User.objects.create_superuser("ada"))
    return client


def _page(client: Client, url: str) -> dict[str, float]:
    from django_rtq.broker.redis.client import RedisClient

    trips, exchange = [], RedisClient._exchange

    def counted(self: RedisClient, commands: Any, **options: Any) -> Any:
        trips.append(len(commands))
        return exchange(self, commands, **options)

    _get(client, url)  # loads templates and scripts
    RedisClient._exchange = counted  # type: ignore[method-assign]
    _get(client, url)
    RedisClient._exchange = exchange  # type: ignore[method-assign]
    costs = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        _get(client, url)
        costs.append((time.perf_counter() - started) * 1000)
    refreshed = client.get(url, headers={"X-RTQ-Refresh": "1"})
    return {"ms": median(costs), "trips": len(trips), "kb": len(refreshed.content) / 1000}


def _get(client: Client, url: str) -> None:
    answer = client.get(url)
    if answer.status_code != 200:
        raise SystemExit(f"{url} answered {answer.status_code}: {answer.content[:500]!r}")


def _click(client: Client) -> dict[str, float]:
    """Post the confirmation page of requeueing all dead letters; seconds until the reply."""
    from django_rtq.inspector.inspector import get_inspector

    until_ms = get_inspector().dead_letters.select("dead-letters").until_ms
    given = {"queue": "dead-letters", "until_ms": until_ms}
    started = time.perf_counter()
    answer = client.post(f"{ROOT}deadletter/requeue-all/", given)
    seconds = time.perf_counter() - started
    if answer.status_code != 302:
        raise SystemExit(f"The click was answered {answer.status_code}: {answer.content[:500]!r}")
    return {"seconds": seconds}


if __name__ == "__main__":
    main(Path(sys.argv[1]), click="--click" in sys.argv)

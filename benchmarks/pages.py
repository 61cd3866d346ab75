"""A person who looks at pages: python -m benchmarks.pages FILE asks for each again and again and writes its figures.

In a process of its own, because the other figures are those of a project without the admin. Asked is through all of
Django: middleware, session, permissions, view and template; a web server and a browser are not in it.
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
    "nothing": "/admin/password_change/done/",  # a page of the admin with nothing in it, to compare with
    "overview": f"{ROOT}queue/",
    "overview_day": f"{ROOT}queue/?span=24h",
    "queue": f"{ROOT}queue/crowd/",
    "queue_dead": f"{ROOT}queue/graveyard/?state=dead",
    "dead": f"{ROOT}deadletter/",
    "running": f"{ROOT}job/",
    "workers": f"{ROOT}worker/",
    "tasks": f"{ROOT}registeredtask/",
}
ASKED = 15  # times


def main(file: Path, click: bool) -> None:
    """Measure, or click once, and write down what it was."""
    client = _signed_in()
    found = _click(client) if click else {name: _page(client, url) for name, url in PAGES.items()}
    # Beside it first: whoever waits for the file finds all of it.
    beside = file.with_suffix(".part")
    beside.write_text(json.dumps(found))
    beside.rename(file)


def _signed_in() -> Client:
    os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.office"
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

    _ask(client, url)  # templates are read, scripts are loaded
    RedisClient._exchange = counted  # type: ignore[method-assign]
    _ask(client, url)
    RedisClient._exchange = exchange  # type: ignore[method-assign]
    costs = []
    for _ in range(ASKED):
        started = time.perf_counter()
        _ask(client, url)
        costs.append((time.perf_counter() - started) * 1000)
    refreshed = client.get(url, headers={"X-RTQ-Refresh": "1"})
    return {"ms": median(costs), "trips": len(trips), "kb": len(refreshed.content) / 1000}


def _ask(client: Client, url: str) -> None:
    answer = client.get(url)
    if answer.status_code != 200:
        raise SystemExit(f"{url} answered {answer.status_code}: {answer.content[:500]!r}")


def _click(client: Client) -> dict[str, float]:
    """One click on the page that asks whether all dead letters are meant; seconds until it was answered."""
    from django_rtq.inspector.inspector import get_inspector

    until_ms = get_inspector().dead_letters.select("graveyard").until_ms
    given = {"queue": "graveyard", "until_ms": until_ms}
    started = time.perf_counter()
    answer = client.post(f"{ROOT}deadletter/requeue-all/", given)
    seconds = time.perf_counter() - started
    if answer.status_code != 302:
        raise SystemExit(f"The click was answered {answer.status_code}: {answer.content[:500]!r}")
    return {"seconds": seconds}


if __name__ == "__main__":
    main(Path(sys.argv[1]), click="--click" in sys.argv)

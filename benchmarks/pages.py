"""Requests the pages of the admin: python -m benchmarks.pages FILE measures each page and writes the figures to FILE.

Runs in a process of its own, because the other figures are for a project without the admin. Requests go through all of
Django: middleware, session, permissions, view and template, but not through a web server or browser.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import redis

from benchmarks.processes import cpu_seconds

if TYPE_CHECKING:
    from django.test import Client

ROOT = "/admin/django_rtq/"
LARGE_WORKFLOW = "00c0ffee0000"
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
    "task": f"{ROOT}registeredtask/benchmarks.jobs.noop/",
    "clients": f"{ROOT}client/",
    "client": f"{ROOT}client/client/?client=client-7",
    "workflows": f"{ROOT}workflow/",
    "workflow": f"{ROOT}workflow/{LARGE_WORKFLOW}/",
    "search": f"{ROOT}job/search/?q=client:client-7",
    "search_nothing": f"{ROOT}job/search/?q=nosuchword",
}
REPEATS = 15  # requests per page


def main(file: Path, click: bool) -> None:
    """Measure, or click once, and write the result to the file."""
    client = signed_in()
    found = _click(client) if click else _measure(client)
    # Renamed when it is complete: the reader waits for the file.
    partial_file = file.with_suffix(".part")
    partial_file.write_text(json.dumps(found))
    partial_file.rename(file)


def _measure(client: Client) -> dict[str, dict[str, float]]:
    from django_rtq.monitoring.prometheus import metrics_text

    meter = Meter()
    found = {}
    for name, url in PAGES.items():
        found[name] = meter.measure(lambda url=url: _get(client, url))  # type: ignore[misc]
        refreshed = client.get(url, headers={"X-RTQ-Refresh": "1"})
        found[name]["kb"] = len(refreshed.content) / 1000
    for _ in range(5):
        metrics_text()  # the totals of 24 hours are added in steps
    found["scrape"] = meter.measure(metrics_text)
    found["scrape"]["kb"] = len(metrics_text()[1]) / 1000
    return found


class Meter:
    """Measures calls that read Redis: time, CPU time, round trips, what Redis sends, and its longest script."""

    def __init__(self) -> None:
        self._redis = redis.Redis.from_url(os.environ["RTQ_BENCH_REDIS"])
        self._pids = [os.getpid(), int(self._redis.info("server")["process_id"])]
        self._redis.config_set("slowlog-log-slower-than", -1)
        self._redis.config_set("slowlog-max-len", 10_000)

    def measure(self, call: Callable[[], object]) -> dict[str, float]:
        """Medians of so many calls, but for `script`: the longest script, by the median of its runs."""
        call()  # loads templates and scripts
        trips = self._round_trips(call)
        costs, cpu, sent = [], [], []
        for _ in range(REPEATS):
            before, started, used = self._sent(), time.perf_counter(), cpu_seconds(self._pids)
            call()
            costs.append((time.perf_counter() - started) * 1000)
            cpu.append((cpu_seconds(self._pids) - used) * 1000)
            after = self._sent()
            sent.append((2 * after - before - self._sent()) / 1000)  # without the reply to _sent() itself
        return {
            "ms": median(costs),
            "total_cpu": median(cpu),
            "trips": trips,
            "from_redis": max(0.0, median(sent)),
            "script": self._longest_script(call),
        }

    def _longest_script(self, call: Callable[[], object]) -> float:
        """In calls of its own: noting each command takes time."""
        self._redis.config_set("slowlog-log-slower-than", 0)
        scripts = []
        for _ in range(REPEATS):
            self._redis.slowlog_reset()
            call()
            scripts.append(self._scripts())
        self._redis.config_set("slowlog-log-slower-than", -1)
        # The machine may do other things during any script, but not always during the same one.
        return max((median(each) for each in zip_longest(*scripts, fillvalue=0.0)), default=0.0)

    def _scripts(self) -> list[float]:
        """How long scripts took since the reset, in ms, in their order."""
        entries = sorted(self._redis.slowlog_get(10_000), key=lambda entry: int(entry["id"]))
        return [entry["duration"] / 1000 for entry in entries if entry["command"].startswith(b"EVALSHA")]

    def _sent(self) -> int:
        return int(self._redis.info("stats")["total_net_output_bytes"])

    @staticmethod
    def _round_trips(call: Callable[[], object]) -> int:
        from django_rtq.core.broker.redis.client import RedisClient

        trips, exchange = [], RedisClient._exchange

        def counted(self: RedisClient, commands: Any, **options: Any) -> Any:
            trips.append(len(commands))
            return exchange(self, commands, **options)

        RedisClient._exchange = counted  # type: ignore[method-assign]
        try:
            call()
        finally:
            RedisClient._exchange = exchange  # type: ignore[method-assign]
        return len(trips)


def signed_in() -> Client:
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


def _get(client: Client, url: str) -> None:
    answer = client.get(url)
    if answer.status_code != 200:
        raise SystemExit(f"{url} answered {answer.status_code}: {answer.content[:500]!r}")


def _click(client: Client) -> dict[str, float]:
    """Post the confirmation page of requeueing all dead letters; seconds until the reply."""

    until_ms = int(time.time() * 1000)
    given = {"q": "queue:dead-letters state:dead", "until_ms": until_ms}
    started = time.perf_counter()
    answer = client.post(f"{ROOT}job/bulk/requeue/", given)
    seconds = time.perf_counter() - started
    if answer.status_code != 302:
        raise SystemExit(f"The click was answered {answer.status_code}: {answer.content[:500]!r}")
    return {"seconds": seconds}


if __name__ == "__main__":
    main(Path(sys.argv[1]), click="--click" in sys.argv)

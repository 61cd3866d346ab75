"""Screenshots of the admin for the docs, in light and dark.

1. start Redis, a web server and a worker, and enqueue jobs, some of which fail
2. write counters of the last day, for the charts
3. let the worker run for a while
4. take the screenshots with Chromium
"""

from __future__ import annotations

import math
import random
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from testproject.chromium import NoChromium, find_chromium, launched
from testproject.demo_environment import DemoEnvironment, DemoError
from testproject.demo_web import LOGIN, add_jobs, next_free_port, start_admin
from testproject.redis_server import NoRedisServer, RedisDidNotStart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 1280, 900
BUSY_SECONDS = 24  # of running jobs before the first screenshot


def main() -> int:
    try:
        with DemoEnvironment(appendonly=True) as env:
            run(env)
    except (DemoError, NoChromium, NoRedisServer, RedisDidNotStart) as problem:
        print(f"\n{problem}", file=sys.stderr)
        return 1
    return 0


def run(env: DemoEnvironment) -> None:
    """Let the worker run, and take the screenshots."""
    port = next_free_port(8100)
    orders = start_admin(env, port)
    write_counters()
    for second in range(BUSY_SECONDS):
        env.check()
        add_jobs(orders, second)
        time.sleep(1)
    IMAGES.mkdir(exist_ok=True)
    for scheme in ("light", "dark"):
        with signed_in(f"http://127.0.0.1:{port}", scheme) as page:
            take_pictures(page, scheme)


def take_pictures(page: Page, scheme: str) -> None:
    """Overview, queue, job and dead letters."""
    take_picture(page, "/admin/django_rtq/queue/", f"overview-{scheme}")
    take_picture(page, "/admin/django_rtq/queue/reports/", f"queue-{scheme}")
    take_picture(page, "/admin/django_rtq/deadletter/", f"dead-{scheme}")
    page.goto("/admin/django_rtq/queue/orders/?state=dead&q=task:testproject.shop.tasks.charge_order")
    url = page.locator(".rtq-id a").first.get_attribute("href")
    take_picture(page, str(url), f"job-{scheme}")


def take_picture(page: Page, url: str, name: str) -> None:
    """A screenshot of the top of one page."""
    page.goto(url)
    page.locator(".rtq-live").wait_for()
    page.evaluate(_REPLACE_PATHS, [str(ROOT), "/srv/shop"])
    path = IMAGES / f"{name}.png"
    page.screenshot(path=path)
    print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1000:.0f} kB", flush=True)


@contextmanager
def signed_in(url: str, scheme: str) -> Iterator[Page]:
    """A page that is signed in to the demo's admin."""
    with launched(find_chromium()) as browser:
        page = browser.new_page(
            base_url=url,
            color_scheme="dark" if scheme == "dark" else "light",
            reduced_motion="reduce",
            viewport={"width": WIDTH, "height": HEIGHT},
        )
        page.goto("/admin/")
        page.fill("#id_username", LOGIN)
        page.fill("#id_password", LOGIN)
        page.click("[type=submit]")
        yield page


def write_counters() -> None:
    """Write the counters of one day: with waves, and a quarter of an hour of many failures."""
    from django_rtq.core.broker.brokers import get_broker
    from django_rtq.core.broker.worker_broker import for_workers

    broker = for_workers(get_broker())
    this_minute = int(time.time()) // 60
    rng = random.Random(1)
    for queue, usual in (("mail", 230.0), ("orders", 60.0), ("reports", 14.0)):
        keys = broker.keys.of(queue)
        for ago in range(1, 24 * 60):
            done = int(usual * (1.0 + 0.35 * math.sin(ago / 11)) * rng.uniform(0.85, 1.15))
            failed = int(done * (0.12 if queue == "orders" and 8 < ago < 22 else 0.004))
            run_ms, wait_ms = done * rng.randint(380, 460), done * rng.randint(600, 800) * (3 if 8 < ago < 22 else 1)
            counts = {"succeeded": done, "failed": failed, "run_ms": run_ms, "wait_ms": wait_ms}
            fields = [text for name, number in counts.items() for text in (name, str(number))]
            broker.redis.execute_one(("HSET", keys.stats + b"%d" % (this_minute - ago), *fields))


# Replaces the local path in tracebacks.
_REPLACE_PATHS = """([here, there]) => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(here, there);
}"""


if __name__ == "__main__":
    sys.exit(main())

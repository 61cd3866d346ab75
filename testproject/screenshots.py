"""Pictures of the admin for the docs: the shop in the middle of its day, in light and dark.

1. start a Redis, the admin and a worker; give them work, some of it in vain
2. draw up the hours before, so that there is something to see in the charts
3. wait until there is something of everything
4. take the pictures with Chromium
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
from testproject.demo_stage import Stage, StageError
from testproject.demo_web import LOGIN, add_some_work, next_free_port, open_office
from testproject.redis_server import NoRedisServer, RedisDidNotStart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 1280, 900
BUSY_SECONDS = 24  # of real work before the first picture


def main() -> int:
    try:
        with Stage(appendonly=True) as stage:
            play(stage)
    except (StageError, NoChromium, NoRedisServer, RedisDidNotStart) as problem:
        print(f"\n{problem}", file=sys.stderr)
        return 1
    return 0


def play(stage: Stage) -> None:
    """Let the shop work, and take the pictures."""
    port = next_free_port(8100)
    orders = open_office(stage, port)
    draw_up_the_past()
    for second in range(BUSY_SECONDS):
        stage.check()
        add_some_work(orders, second)
        time.sleep(1)
    IMAGES.mkdir(exist_ok=True)
    for scheme in ("light", "dark"):
        with looking(f"http://127.0.0.1:{port}", scheme) as page:
            take_pictures(page, scheme)


def take_pictures(page: Page, scheme: str) -> None:
    """Overview, queue, job and dead letters."""
    picture(page, "/admin/django_rtq/queue/", f"overview-{scheme}")
    picture(page, "/admin/django_rtq/queue/reports/", f"queue-{scheme}")
    picture(page, "/admin/django_rtq/deadletter/", f"dead-{scheme}")
    page.goto("/admin/django_rtq/queue/orders/?state=dead&task=testproject.shop.tasks.charge_order")
    address = page.locator(".rtq-id a").first.get_attribute("href")
    picture(page, str(address), f"job-{scheme}")


def picture(page: Page, address: str, name: str) -> None:
    """One page as it is seen first, without scrolling."""
    page.goto(address)
    page.locator(".rtq-live").wait_for()
    page.evaluate(_ELSEWHERE, [str(ROOT), "/srv/shop"])
    path = IMAGES / f"{name}.png"
    page.screenshot(path=path)
    print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1000:.0f} kB", flush=True)


@contextmanager
def looking(address: str, scheme: str) -> Iterator[Page]:
    """Sign in at the demo's admin."""
    with launched(find_chromium()) as browser:
        page = browser.new_page(
            base_url=address,
            color_scheme="dark" if scheme == "dark" else "light",
            reduced_motion="reduce",
            viewport={"width": WIDTH, "height": HEIGHT},
        )
        page.goto("/admin/")
        page.fill("#id_username", LOGIN)
        page.fill("#id_password", LOGIN)
        page.click("[type=submit]")
        yield page


def draw_up_the_past() -> None:
    """Counters as two days of work would have left them: busier at noon, with a bad quarter of an hour."""
    from django_rtq.broker.broker import get_broker

    broker = get_broker()
    this_minute = int(time.time()) // 60
    dice = random.Random(1)
    for queue, usual in (("mail", 230.0), ("orders", 60.0), ("reports", 14.0)):
        keys = broker.keys.of(queue)
        for ago in range(1, 24 * 60):
            done = int(usual * (1.0 + 0.35 * math.sin(ago / 11)) * dice.uniform(0.85, 1.15))
            failed = int(done * (0.12 if queue == "orders" and 8 < ago < 22 else 0.004))
            run_ms, wait_ms = done * dice.randint(380, 460), done * dice.randint(600, 800) * (3 if 8 < ago < 22 else 1)
            counts = {"succeeded": done, "failed": failed, "run_ms": run_ms, "wait_ms": wait_ms}
            fields = [text for name, number in counts.items() for text in (name, str(number))]
            broker.redis.execute_one(("HSET", keys.stats_of(this_minute - ago), *fields))


# The paths in tracebacks are those of whoever takes the pictures.
_ELSEWHERE = """([here, there]) => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(here, there);
}"""


if __name__ == "__main__":
    sys.exit(main())

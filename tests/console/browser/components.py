"""One page with each component that any page shows, to look at its colours once instead of on every page."""

import re
from pathlib import Path

import django_rtq
from django_rtq.console.log_lines import write_line
from tests.console.admin.conftest import MAIL
from tests.console.browser.conftest import NOTE
from tests.console.lua.test_task_metrics import tell
from tests.support.jobs import QUEUE

OVERVIEW = "/admin/django_rtq/queue/"
STYLES = Path(django_rtq.__file__).parent / "static" / "django_rtq" / "pages.css"


def count_two_weeks(broker):
    """Counters of two weeks, in which every hour had 120 jobs, and one hour of the last week 1,200."""
    hour, keys = int(broker.redis.execute_one(("TIME",))[0]) // 3600, broker.keys.of(QUEUE)
    broker.register_queues([QUEUE])
    for back in range(1, 14 * 24):
        counters = ("succeeded", 1200 if back == 30 else 120, "failed", 6, "run_ms", 12_000, "wait_ms", 24_000)
        broker.redis.execute_one(("HSET", keys.hours + b"%d" % (hour - back), *counters))
    broker.redis.execute_one(("HSET", keys.clock, "rolled_up", hour))


def fail_since_a_deploy(broker):
    """A task that began to fail two minutes after a deploy, and ran without failures in the two days before."""
    keys, seconds = broker.keys.of(QUEUE), int(broker.redis.execute_one(("TIME",))[0])
    minute, hour = seconds // 60, seconds // 3600
    broker.register_queues([QUEUE])
    tell(broker, f"done {NOTE}", 2, f"failed {NOTE}", 98)
    deploys = [(seconds - 86_400, "2026.10.9"), (seconds - 600, "2026.11.3")]
    broker.redis.execute(
        [
            *(("HSET", keys.stats + b"%d" % (minute - back), "failed", 12) for back in range(8)),
            *(("LPUSH", keys.deploys, f"{at * 1000} {version}") for at, version in deploys),
            *(("HSET", keys.tasks + b"%d" % (hour - n), f"done {NOTE}", 100, f"r12 {NOTE}", 100) for n in range(1, 48)),
        ]
    )


def log_lines(broker, job):
    """Lines that this job has logged, more than its box shows at once. The last one is an error."""
    lines = [write_line(1, 1_800_000_000_000 + n, "INFO", "shop", f"order {n}") for n in range(197)]
    lines += [write_line(1, 1_800_000_000_500, level, "shop", "odd") for level in ("WARNING", "CRITICAL")]
    lines.append(write_line(1, 1_800_000_001_000, "ERROR", "shop.bank", "no money", "Traceback:\n  ValueError"))
    broker.redis.execute_one(("RPUSH", broker.keys.of(QUEUE).log_of(job.id), *(f"t-1 {line}" for line in lines)))


def more_addresses(jobs, flows):
    """Pages with components that the routes alone do not show: another span, each state of jobs and steps."""
    yield f"{OVERVIEW}?span=7d"
    yield f"/admin/django_rtq/registeredtask/{NOTE}/"
    yield f"/admin/django_rtq/registeredtask/{MAIL}/"
    yield "/admin/django_rtq/queue/other/"
    yield "/admin/django_rtq/schedule/"
    yield "/admin/django_rtq/job/search/?q=klient:bakery"
    yield from (f"/admin/django_rtq/job/{job.id}/" for job in vars(jobs).values())
    yield from (f"/admin/django_rtq/workflow/{flow}/" for flow in flows)


COMPOSE = """async (addresses) => {
  const seen = new Set();
  const path = (element, place) => element.localName + [...element.classList].map((name) => `.${name}`).join("")
    + (element.localName === "tr" ? place % 2 : "");  // rows differ in turns
  const hasNew = (element, above, place) => {
    const name = `${above} ${path(element, place)}`;
    const isNew = !seen.has(name);
    seen.add(name);
    [...element.children].forEach((child, place) => { if (!hasNew(child, name, place)) child.remove(); });
    return isNew || element.children.length > 0;
  };
  const parts = [];
  for (const address of addresses) {
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
    const found = new DOMParser().parseFromString(await answer.text(), "text/html");
    found.querySelectorAll("[data-rtq-live]").forEach((each) => each.removeAttribute("data-rtq-live"));
    const all = [...found.querySelectorAll(".rtq, .messagelist")].filter((each) => !each.parentElement.closest(".rtq"));
    parts.push(...all.filter((each) => hasNew(each, "", 0)));
  }
  document.querySelector(".rtq").replaceWith(...parts);
}"""


def compose(page, addresses):
    """Replace what this page shows by each component of these pages, once. What repeats one is left out."""
    page.evaluate(COMPOSE, list(addresses))


def unshown_classes(page):
    """The classes of our style sheet that no element of this page has."""
    shown = page.evaluate("[...document.querySelectorAll('[class]')].flatMap((each) => [...each.classList])")
    return set(re.findall(r"\.(rtq-[a-z0-9-]*)", STYLES.read_text())) - set(shown)

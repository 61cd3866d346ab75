"""What operators want to know and do, told in their words. Each takes three clicks from the overview at most."""

from django_rtq import rtq
from django_rtq.console.log_lines import write_line
from tests.console.browser.actions import follow, shows
from tests.console.browser.conftest import body
from tests.console.browser.test_pages import violations
from tests.support.jobs import QUEUE, claimed_job, dead_job, finished_job, queued_job

OVERVIEW = "/admin/django_rtq/queue/"


def test_why_is_job_123_not_running(broker, page):
    job = queued_job(broker, "123", body=body("123"))
    rtq.queues[QUEUE].pause()
    page.goto(OVERVIEW)

    page.get_by_role("searchbox", name="Search jobs").fill(job.id)
    follow(page.get_by_role("button", name="Find").first)

    shows(page.locator(".rtq-why"), "paused")


def test_is_my_scheduler_alive(broker, page):
    queued_job(broker, body=body("waits"))
    page.goto(OVERVIEW)
    scheduler = page.locator(".rtq-line-of div").filter(has_text="Scheduler")
    assert "alive" not in scheduler.inner_text()

    broker.maintenance.promote([QUEUE])
    page.reload()

    shows(scheduler, "alive")


def test_which_worker_is_hung(broker, page):
    finished_job(broker)
    job = claimed_job(broker, "hung", worker="web7:1:x", body='{"task":"tests.app.tasks.note","time_limit":0.0001}')
    page.goto(OVERVIEW)
    banner = page.locator(".rtq-health")
    shows(banner, "1 job seems to hang: note")

    follow(banner.get_by_role("link", name="Show running jobs"))

    shows(page.locator(".rtq tbody tr").filter(has=page.locator(f"a[href*='{job.id[:12]}']")), "over its time limit")


def test_a_rate_limited_queue(broker, readers, page):
    queued_job(broker, body=body("waits"))
    page.goto(OVERVIEW)

    follow(page.get_by_role("link", name=QUEUE, exact=True))
    follow(page.get_by_role("link", name="Limits …", exact=True))
    page.get_by_label("Starts", exact=True).fill("100/m")
    follow(page.get_by_role("button", name="Save"))  # the third click

    shows(page.locator(".messagelist"), "rate=100/m")
    assert readers.limits.read(QUEUE).queue["rate"].value == "100/m"


def test_what_did_this_job_log_before_it_died(broker, page):
    job = dead_job(broker, "died", body=body("died"))
    lines = [write_line(1, 1_800_000_000_000 + n, "INFO", "shop", f"order {n}") for n in range(199)]
    lines.append(write_line(1, 1_800_000_001_000, "ERROR", "shop.bank", "no money", "Traceback:\n  ValueError"))
    broker.redis.execute_one(("RPUSH", broker.keys.of(QUEUE).log_of(job.id), *(f"t-1 {line}" for line in lines)))
    page.goto(OVERVIEW)

    follow(page.get_by_role("link", name=QUEUE, exact=True))
    follow(page.locator(".rtq-tabs a", has_text="Dead"))
    follow(page.locator(f"a[href*='{job.id}']").first)  # the third click

    shows(page.get_by_role("group", name="Log"), "no money")
    assert page.locator(".rtq-log li").last.is_visible()
    assert page.locator(".rtq-log").evaluate("box => box.scrollHeight > box.clientHeight && box.scrollTop === 0")
    assert violations(page) == []

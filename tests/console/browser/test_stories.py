"""What operators want to know and do, told in their words. Each takes three clicks from the overview at most."""

from django_rtq import rtq
from django_rtq.console.log_lines import write_line
from tests.console.browser.actions import follow, menu_of, shows
from tests.console.browser.conftest import body
from tests.console.browser.test_pages import violations
from tests.protocol.model.step_calls import waiting_job
from tests.support.jobs import QUEUE, claimed_job, dead_job, finished_job, queued_job, settle
from tests.support.waiting import wait_until
from tests.support.workflows import claimed_flow, end

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

    broker.promote([QUEUE])
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
    assert readers.clients.limits(QUEUE).limits["rate"].value == "100/m"


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


def test_three_of_a_workflow_are_dead_why_and_again(broker, page):
    members = claimed_flow(broker, {"size": 5, "next": "1"}, {"after": "0"})
    end(broker, "ack", *members[:2])
    end(broker, "bury", *members[2:], error='{"at":1,"attempt":1,"error_class":"shop.NoPaper","error":"no paper"}')
    page.goto(OVERVIEW)

    follow(page.get_by_role("link", name="Workflows").first)
    follow(page.get_by_role("link", name="flow", exact=True))
    shows(page.locator(".rtq"), "no paper")
    follow(page.get_by_role("link", name="Requeue dead jobs …"))  # the third click, and one to confirm
    follow(page.get_by_role("button", name="Requeue", exact=True))

    shows(page.locator(".messagelist"), "3 dead letters were requeued.")


def test_order_5501_waits_for_its_event(broker, page):
    job = waiting_job(broker)
    page.goto(OVERVIEW)

    page.get_by_role("searchbox", name="Search jobs").fill(job.id)
    follow(page.get_by_role("button", name="Find").first)
    shows(page.locator(".rtq-why"), "It waits for event approved")
    follow(page.get_by_role("link", name="Send an event …").first)
    page.get_by_label("Value").fill('{"by": "ada"}')
    follow(page.get_by_role("button", name="Send"))  # the third click

    shows(page.locator(".messagelist"), "has got the event")
    assert page.locator(".rtq-state").first.inner_text() == "queued"


def test_one_bad_document_of_a_call(broker, page):
    jobs = [claimed_job(broker, name, body=body(name)) for name in ("bad", "good", "fine")]
    error = '{"at":1800000000000,"attempt":1,"error_class":"ValueError","error":"no page 3","together":3}'
    settle(broker, "bury", *jobs, error=error)
    page.goto(f"/admin/django_rtq/job/{jobs[0].id}/")

    follow(page.get_by_role("link", name="call of 3"))

    shows(page.locator(".rtq-cards"), "good")
    assert page.locator(".rtq-cards tbody tr").count() == 3


def test_what_needs_the_memory_of_redis(broker, page):
    queued_job(broker, body=body("x" * 50_000))
    page.goto(OVERVIEW)

    follow(page.locator(".rtq-line-of a[href*=memory]"))

    shows(page.locator(".rtq tbody tr").first, QUEUE)


def test_a_host_is_drained(broker, readers, page, worker):
    worker()
    wait_until(readers.workers)
    page.goto(OVERVIEW)

    follow(page.locator(".rtq-navigation").get_by_role("link", name="Workers"))
    follow(menu_of(page).get_by_role("button", name="Quiet").first)

    wait_until(lambda: readers.workers()[0].is_quiet)
    page.reload()
    shows(menu_of(page).get_by_role("button", name="Wake").first, "Wake")


def test_a_hung_job_is_ended(broker, access, page):
    job = claimed_job(broker, "hung", worker="web7:1:x", body='{"task":"tests.app.tasks.note","time_limit":0.0001}')
    page.goto(OVERVIEW)

    follow(page.locator(".rtq-health").get_by_role("link", name="Show running jobs"))
    follow(menu_of(page).get_by_role("link", name="Terminate …"))  # the third click, and one to confirm
    follow(page.get_by_role("button", name="Terminate"))

    assert access.find(job.id).is_stopping

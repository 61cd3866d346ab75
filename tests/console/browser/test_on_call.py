"""What somebody on call wants to know and do while a real worker runs jobs, on a database that it and the pages share.

Each story takes three clicks from the overview at most.
"""

import re

from django.db import transaction
from django.test import override_settings

from tests.app import once_tasks, tasks
from tests.console.browser.actions import find, follow, shows
from tests.console.browser.conftest import OFTEN, body
from tests.console.browser.test_flows import OVERVIEW, tab
from tests.console.browser.test_pages import assert_fits_everywhere, violations
from tests.support.jobs import QUEUE, dead_job
from tests.support.redis_server import UNREACHABLE
from tests.support.waiting import wait_until

REFRESH_SECONDS = OFTEN
OPTIONS = {
    "OUTBOX": True,
    "QUEUES": {"reports": {}},
    "TASK_MODULES": ["tasks", "once_tasks"],
    "INCIDENTS": {
        "oldest_seconds": 1,
        "critical": ["long_wait"],
        "ignore": ["redis_volatile", "queues_without_worker"],
    },
}


def test_an_alarm_because_the_oldest_job_waits_too_long(broker, worker, journal, page):
    def health():
        answer = page.request.get("/health/rtq/")
        return answer.status, [each["kind"] for each in answer.json()["incidents"]]

    worker()
    journal.begin(tasks.gate, "report", "gate")
    assert health() == (200, [])
    tasks.note.using(client="bakery").delay("mail")
    wait_until(lambda: health() == (503, ["long_wait"]))

    page.goto(OVERVIEW)
    card = page.locator(".rtq-incidents li.rtq-bad")
    shows(card, "Critical")
    shows(card, "Waiting: 1 (clients: 1).")
    follow(card.get_by_role("link", name=f"Queue {QUEUE}"))  # the first click
    shows(page.locator("[data-rtq-live=jobs]"), "mail")
    follow(tab(page, "running"))
    shows(page.locator("[data-rtq-live=jobs]"), "report")

    journal.open("gate")
    shows(tab(page, "finished"), "2")
    wait_until(lambda: health() == (200, []))
    page.goto(OVERVIEW)
    shows(page.locator(".rtq-health"), "All is well: 1 worker, no long waits.")


def test_dead_letters_are_moved_to_the_queue_whose_workers_can_run_them(broker, worker, journal, page):
    jobs = [dead_job(broker, body=body(f"letter{n}"), client="bakery") for n in range(3)]
    page.goto(OVERVIEW)
    follow(page.locator(".rtq-health").get_by_role("link", name="Requeue …"))
    shows(page.locator(".rtq"), "Requeue 3 dead letters?")
    page.get_by_label("To queue:").select_option(label="reports (no worker serves it)")
    assert violations(page) == []
    assert_fits_everywhere(page)
    follow(page.get_by_role("button", name="Requeue"))  # the second click
    shows(page.locator(".messagelist"), "3 dead letters were requeued in queue reports.")
    shows(page.locator(".messagelist"), "No worker serves queue reports now: the jobs wait.")

    worker("--queues", "reports")
    find(page, jobs[0].id)
    shows(page.locator(".rtq-state").first, "succeeded")
    assert page.get_by_role("link", name="reports", exact=True).count() > 0
    wait_until(lambda: journal.ends() == 3)


def test_who_requeued_these_jobs_and_what_became_of_them(broker, worker, journal, page):
    worker()
    jobs = [tasks.bury.delay(f"letter{n}") for n in range(3)]
    wait_until(lambda: jobs[2].state == "dead")
    find(page, jobs[1].id)
    shows(page.locator(".rtq-timeline li").nth(1), re.compile(r"([2-9]|\d\d)[.\d]* s ago"))  # as clocks differ
    page.goto(OVERVIEW)
    shows(page.locator(".rtq-health"), "3 jobs died in the last hour")
    follow(page.locator(".rtq-health").get_by_role("link", name="Requeue …"))
    follow(page.get_by_role("button", name="Requeue"))
    wait_until(lambda: journal.starts() == 6)

    find(page, jobs[1].id)  # no click
    events = page.locator(".rtq-timeline li")
    shows(events.nth(2), "requeued")
    shows(events.nth(2), "by nightshift")
    shows(events.nth(1), "letter1 is hopeless")
    shows(events.nth(3), "letter1 is hopeless")


def test_the_export_of_a_client_is_stuck(broker, rtq, worker, journal, page):
    rtq.queues[QUEUE].limit_clients(max_running=1)
    worker("--concurrency", "2")
    journal.begin(tasks.gate.using(client="bakery"), "pictures", "closed")
    export = tasks.note.using(client="bakery").delay("export")
    tasks.note.using(client="florist").delay("other")
    journal.wait("end", "other")

    find(page, "client:bakery export")
    follow(page.locator(".rtq tbody th a").first)  # the first click
    shows(page.locator(".rtq-why"), "Its client is at its limit of 1 running job.")

    find(page, "client:bakery state:running")
    follow(page.locator(".rtq tbody th a").first)
    follow(page.get_by_role("link", name="Terminate …"))
    follow(page.get_by_role("button", name="Terminate"))  # the third click
    find(page, export.id)
    shows(page.locator(".rtq-state").first, "succeeded")
    assert journal.ends("export") == 1


def test_an_order_is_committed_and_its_job_is_nowhere(broker, rtq, worker, journal, database, page):
    with override_settings(RTQ={"REDIS": UNREACHABLE, "OUTBOX": True}), transaction.atomic():
        job = tasks.note.delay("order 7")
    rtq.queues[QUEUE].pause()
    rtq.queues[QUEUE].limit(max_waiting=1)
    tasks.note.delay("first")
    make_due = "UPDATE django_rtq_outboxjob SET due_at = '2026-01-01 00:00:00'"
    database.query(make_due)
    worker()

    page.goto(OVERVIEW)
    follow(page.locator(".rtq-line-of").get_by_role("link", name="1", exact=True).and_(page.locator("[href*=outbox]")))
    row = page.locator(".rtq tbody tr")  # of the first click
    shows(row, job.id)
    shows(row, "Queue default is full")
    assert violations(page) == []
    assert_fits_everywhere(page)
    find(page, job.id)
    assert page.url.endswith(f"/job/outbox/?search={job.id}")

    rtq.queues[QUEUE].resume()
    journal.wait("end", "first")
    database.query(make_due)
    shows(page.locator(".rtq"), "Nothing waits in the outbox.")
    find(page, job.id)
    shows(page.locator(".rtq-state").first, "succeeded")
    assert journal.ends("order 7") == 1


def test_a_job_that_runs_exactly_once_is_dead_has_it_written(broker, worker, journal, database, page):
    database.query("DROP TABLE IF EXISTS effects")
    database.query(once_tasks.CREATE_TABLE)
    worker("--queues", once_tasks.QUEUE)
    job = once_tasks.fail.using(max_attempts=1).delay("charge", 1)
    wait_until(lambda: job.state == "dead")

    find(page, job.id)
    shows(page.locator(".rtq-timeline"), "Nothing was written: no run has committed.")
    assert database.query("SELECT * FROM effects") == []
    assert violations(page) == []
    follow(page.get_by_role("button", name="Requeue", exact=True))  # the only click

    shows(page.locator(".rtq-state").first, "succeeded")
    assert database.query("SELECT * FROM effects") == [("charge",)]

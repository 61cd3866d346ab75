"""The page of workers: their hosts."""

import re

import pytest
from django.contrib.admin.models import LogEntry

from django_rtq.console.subjects.jobs import Running
from django_rtq.console.subjects.workers import Workers
from django_rtq.core.broker.worker_broker import worker_info_commands
from tests.console.admin.conftest import text
from tests.support.jobs import QUEUE, claimed_job, let_lapse

WORKERS = "/admin/django_rtq/worker/"


@pytest.fixture(autouse=True)
def worker(broker):
    """A worker on the host, whose supervisor is known."""
    broker.sign_on([QUEUE], "w1")
    broker.enqueue(QUEUE, [])
    found = {"supervisor_name": "s1", "host": "here", "pid": 7, "queues": QUEUE}
    broker.redis.execute(list(worker_info_commands(broker.keys, {"w1": found})))


def test_workers_are_grouped_by_host(broker, operator):
    broker.sign_on([QUEUE], "newcomer")

    html = text(operator.get(WORKERS))

    assert '<span class="rtq-mono">here</span>' in html
    assert "Unknown host" in html
    assert re.search(r"1 process, 0 of 1 slots? busy", html)


def test_all_that_are_quiet_are_woken(broker, operator):
    assert "Wake all" not in text(operator.get(WORKERS))
    broker.redis.execute(list(worker_info_commands(broker.keys, {"w1": {"supervisor_name": "s1", "quiet": "1"}})))
    assert f'formaction="{WORKERS}wake-all/"' in text(operator.get(WORKERS))

    answer = operator.post(f"{WORKERS}wake-all/", follow=True)

    assert "All workers were asked to start new jobs again." in text(answer)
    assert [entry.get_change_message() for entry in LogEntry.objects.all()] == ["Asked to start new jobs again."]
    assert broker.redis.execute_one(("GET", broker.keys.control("s1"))) == b"work"


def test_hosts_and_running_jobs_have_pages(broker, operator, monkeypatch):
    monkeypatch.setattr(Workers, "per_page", 1)
    monkeypatch.setattr(Running, "per_page", 1)
    claimed_job(broker, worker="w2")
    claimed_job(broker, worker="w3")

    first, second, empty = (operator.get("/admin/django_rtq/job/", {"page": page}) for page in (1, 2, 3))
    names = [[table["title"] for table in page.context["tables"]] for page in (first, second, empty)]
    assert sorted(names) == [[], ["w2"], ["w3"]]
    assert ("Next page" in text(first), "Next page" in text(second)) == (True, False)

    pages = [operator.get(WORKERS, {"page": page}) for page in (1, 2)]
    hosts = [[table["title"] for table in page.context["tables"]] for page in pages]
    assert hosts == [["here"], ["Unknown host"]]


def test_hosts_with_lost_workers_come_first(broker, operator):
    broker.sign_on([QUEUE], "newcomer")
    let_lapse(broker, "newcomer")

    assert [table["title"] for table in operator.get(WORKERS).context["tables"]] == ["newcomer", "here"]

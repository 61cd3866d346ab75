"""The pages of hosts: what they show, and commands for all workers of a host."""

import re

import pytest
from django.contrib.admin.models import LogEntry

from django_rtq.admin.display.paged_list import ListParams
from django_rtq.admin.pages.workers import HostListParams
from django_rtq.broker.control import WorkerCommand
from tests.admin.conftest import logged, text
from tests.admin.test_stopping import WORKERS, note, order, said
from tests.support.jobs import QUEUE, claimed_job, let_lapse, settle

HOST = f"{WORKERS}host/here/"


@pytest.fixture(autouse=True)
def worker(broker):
    """A worker on the host, whose supervisor is known."""
    broker.sign_on([QUEUE], "w1")
    broker.enqueue(QUEUE, [])
    note(broker, supervisor_name="s1", host="here", pid=7, queues=QUEUE)


def test_workers_are_grouped_by_host(broker, operator):
    broker.sign_on([QUEUE], "newcomer")

    html = text(operator.get(WORKERS))

    assert f'<a class="rtq-mono" href="{HOST}">here</a>' in html
    assert "Unknown host" in html
    assert re.search(r"1 process, 0 of 1 slots? busy", html)


def test_workers_tell_the_version_of_the_project(broker, operator):
    note(broker, supervisor_name="s1", host="here", pid=7, queues=QUEUE, version="0.9", project_version="2026.11.3")

    both = '<td>2026.11.3<div class="rtq-soft">django_rtq 0.9</div></td>'
    assert both in text(operator.get(WORKERS))
    html = text(operator.get(HOST))
    assert both in html
    facts = dict(re.findall(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", html))
    assert (facts["Version"], facts["django_rtq"]) == ("2026.11.3", "0.9")


def test_a_host_says_what_runs_on_it_and_when_it_is_drained(broker, operator, round_trips):
    html = text(operator.get(HOST))
    assert "Host here" in html
    assert "Quiet all" in html
    assert not [word for word in ("Drained", "Wake all", "rtq-banner") if word in html]

    note(broker, quiet="1", resting="1")
    job = claimed_job(broker, "runs")
    del round_trips[:]
    html = text(operator.get(HOST))
    assert len(round_trips) <= 3
    assert "Not drained yet. 1 job still runs on it." in html
    assert f'href="/admin/django_rtq/job/{job.id.replace("_", "_5F")}/?queue={QUEUE}"' in html
    assert "Wake all" in html

    settle(broker, "ack", job)
    html = text(operator.get(HOST))
    assert "Drained: all processes are quiet, and no job runs on them. The host can be switched off." in html
    assert "Quiet all" not in html


def test_a_host_that_nobody_knows_is_no_error(broker, operator):
    assert "No worker process is known on this host" in text(operator.get(f"{WORKERS}host/nowhere/"))


@pytest.mark.parametrize(
    ("action", "becomes", "words"),
    [
        ("quiet", WorkerCommand.QUIET, "were asked to go quiet"),
        ("wake", WorkerCommand.WORK, "were asked to start new jobs again"),
        ("stop", WorkerCommand.STOP, "were asked to stop"),
    ],
)
def test_all_workers_of_a_host_are_told_what_to_do(action, becomes, words, redis, broker, operator):
    answer = operator.post(f"{HOST}{action}/")

    assert answer["Location"] == HOST
    assert f"All workers of host here {words}" in said(answer)
    assert order(redis, broker) is becomes
    entry = LogEntry.objects.get()
    assert entry.object_id == "here"
    assert logged()[0].endswith(" s1")


def test_all_quiet_workers_are_woken(redis, broker, operator):
    assert "Wake all" not in text(operator.get(WORKERS))
    note(broker, supervisor_name="s1", host="here", pid=7, queues=QUEUE, quiet="1")

    assert f'action="{WORKERS}wake/"' in text(operator.get(WORKERS))
    answer = operator.post(f"{WORKERS}wake/")

    assert "All workers were asked to start new jobs again." in said(answer)
    assert order(redis, broker) is WorkerCommand.WORK


def test_a_host_is_not_stopped_before_it_was_asked_for_twice(redis, broker, operator):
    assert "This stops 1 rtq_worker of host here and all its processes." in text(operator.get(f"{HOST}stop/"))
    assert order(redis, broker) is None


def test_where_no_worker_is_known_nothing_is_done(broker, operator):
    answer = operator.post(f"{WORKERS}host/nowhere/quiet/")
    assert "Nothing was done: no worker is known on host nowhere." in said(answer)
    assert not LogEntry.objects.exists()


def test_who_may_only_look_sees_no_buttons(viewer):
    html = text(viewer.get(HOST))
    assert "here" in html
    assert not [words for words in ("Quiet all", "Stop all") if words in html]
    assert viewer.post(f"{HOST}quiet/").status_code == 403


def test_hosts_and_running_jobs_have_pages(broker, operator, monkeypatch):
    monkeypatch.setattr(HostListParams, "PER_PAGE", 1)
    monkeypatch.setattr(ListParams, "PER_PAGE", 1)
    claimed_job(broker, worker="w2")
    claimed_job(broker, worker="w3")

    first, second, empty = (operator.get("/admin/django_rtq/job/", {"page": page}) for page in (1, 2, 3))
    names = [[entry.worker.name for entry in page.context["workers_with_jobs"]] for page in (first, second, empty)]
    assert sorted(names) == [[], ["w2"], ["w3"]]
    assert ("Next page" in text(first), "Next page" in text(second)) == (True, False)

    pages = [operator.get(WORKERS, {"page": page}) for page in (1, 2)]
    hosts = [[section["host"].name for section in page.context["sections"]] for page in pages]
    assert hosts == [["here"], [""]]


def test_hosts_with_lost_workers_come_first(broker, operator):
    broker.sign_on([QUEUE], "newcomer")
    let_lapse(broker, "newcomer")

    assert [section["host"].lost for section in operator.get(WORKERS).context["sections"]] == [1, 0]


def test_of_many_queues_of_a_process_some_are_links(broker, operator):
    note(broker, supervisor_name="s1", host="here", pid=7, queues="a,b,c,d,e,f,g")

    html = operator.get(WORKERS).content.decode()

    assert '<span class="rtq-soft" title="f, g">+2</span>' in html

"""The overview, the page of a queue, workers and tasks."""

import re
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry

from django_rtq.console.admin.pages import job_lists
from django_rtq.console.admin.time_charts import SPANS, history_charts
from django_rtq.console.reading import overview as shared_overview
from django_rtq.console.subjects.queues import QUEUES
from tests.console.admin.conftest import logged, text
from tests.console.admin.test_dead_letters import BULK, hidden_fields, said
from tests.support.console_steps import report_version
from tests.support.jobs import QUEUE, claim, finished_job, queued_job

OVERVIEW = "/admin/django_rtq/queue/"
PAGE = f"{OVERVIEW}{QUEUE}/"


def ids_on(html):
    """The jobs of a page, in order."""
    return re.findall(r'class="rtq-id"[^>]*><a href="/admin/django_rtq/job/([^/]+)/', html)


def test_without_any_queue_the_overview_says_how_to_begin(operator, broker):
    html = text(operator.get(OVERVIEW))
    assert "No queue has been used yet." in html
    assert "python manage.py rtq_worker" in html


@pytest.mark.parametrize(("span", "steps"), [("1h", 59), ("24h", 71), ("7d", 83), ("30d", 59)])
def test_the_overview_looks_back(span, steps, jobs, operator):
    html = text(operator.get(f"{OVERVIEW}?span={span}"))
    assert html.count('<svg class="rtq-chart"') == 2
    assert html.count("<title>") == 2 * steps + html.count("rtq-spark") + 1


def test_without_a_version_of_the_project_no_deploys_are_read(broker, jobs, viewer):
    report_version(broker, "1")
    assert "rtq-mark" not in text(viewer.get(OVERVIEW))


def test_the_navigation_has_the_numbers_of_the_last_overview(jobs, operator, monkeypatch):
    assert "rtq-count" in text(operator.get(OVERVIEW))
    shown = dict(re.findall(r'data-rtq-live="count-(\w+)">([^<]*)<', text(operator.get("/admin/django_rtq/worker/"))))
    assert shown == {"job": "1", "deadletter": "1", "worker": "1"}
    again = text(operator.get("/admin/django_rtq/worker/", headers={"X-RTQ-Refresh": "1"}))
    assert '<span class="rtq-count" data-rtq-live="count-deadletter">1</span>' in again
    monkeypatch.setattr(shared_overview, "GLANCE_SECONDS", 0.0)
    assert 'data-rtq-live="count-deadletter"></span>' in text(operator.get("/admin/django_rtq/worker/"))


def test_queues_with_trouble_are_first_unless_another_order_is_wanted(broker, viewer, rtq):
    for name in ("a", "b", "c"):
        queued_job(broker, queue=name)
    broker.sign_on(["a", "b", "c"], "w1")
    rtq.queues["c"].pause()

    def names(query):
        return re.findall(r'<th scope="row"><a href="(\w)/">', text(viewer.get(f"{OVERVIEW}{query}")))

    assert names("") == ["c", "a", "b"]
    assert names("?sort=-name") == ["c", "b", "a"]
    html = text(viewer.get(f"{OVERVIEW}?sort=name&span=24h"))
    assert names("?sort=name") == ["a", "b", "c"]
    assert 'href="?sort=-name&amp;span=24h"' in html
    assert 'href="/admin/django_rtq/queue/?span=7d&amp;sort=name"' in html


def test_many_queues_have_pages(broker, viewer, monkeypatch):
    monkeypatch.setattr(type(QUEUES), "per_page", 2)
    for queue in ("a", "b", "c"):
        queued_job(broker, queue=queue)

    first, second = (text(viewer.get(OVERVIEW, {"page": page, "span": "24h", "sort": "-name"})) for page in (1, 2))

    assert ("c/" in first, "b/" in first, "1–2 of 3" in first) == (True, True, True)  # noqa: RUF001
    assert 'href="?sort=-name&amp;page=2&amp;span=24h" rel="next"' in first
    assert 'rel="next"' not in second
    assert 'href="a/"' in second


def test_lines_end_with_the_last_whole_minute(broker, jobs, readers):
    keys, front = broker.keys.of(QUEUE), readers.overview.read()
    began = int(front.queues[0].series.begins_at.timestamp()) // 60
    for ago, number in ((0, 7), (1, 5)):
        broker.redis.execute_one(("HSET", keys.stats + b"%d" % (began + 59 - ago), "succeeded", number))
    throughput, _ = history_charts([row.series for row in readers.overview.read().queues], SPANS["1h"])
    assert throughput["svg"].count("<rect") == 59
    assert re.findall(r"succeeded (\d+)", throughput["svg"])[-1] in ("5", "7")  # 7 when a minute has ended since
    assert QUEUES.named(readers, front, [QUEUE])[0].last_hour.counts == [0] * 59


@pytest.mark.parametrize(
    ("limits", "why"),
    [({"max_running": 1}, "at its limit of 1 running job"), ({"rate": "1/d"}, "its rate lets no job start")],
)
def test_the_page_of_a_queue_says_which_limit_holds_it_back(broker, operator, limits, why, rtq):
    queued_job(broker), queued_job(broker)
    rtq.queues[QUEUE].limit(**limits)
    claim(broker, 2)
    claim(broker, 2)
    assert why in text(operator.get(PAGE))


def test_pages_follow_each_other_without_gaps(broker, operator):
    made = [queued_job(broker, f"job{n}").id for n in range(60)]
    seen, url = [], PAGE
    for _ in range(3):
        html = text(operator.get(url))
        seen += ids_on(html)
        found = re.search(r'href="([^"]+)" rel="next"', html)
        url = found and found[1].replace("&amp;", "&")
    assert seen == made
    assert url is None


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("client:florist", 1),
        ("task:other", 0),
        ("id:0", 1),
    ],
)
def test_filters_stand_in_the_address(query, count, jobs, operator):
    html = text(operator.get(f"{PAGE}?state=queued&q={query}"))
    assert len(ids_on(html)) == count
    assert f"state=dead&amp;{urlencode({'q': query})}" in html  # and stay when one looks at another state


def test_a_search_through_many_jobs_is_not_repeated_by_an_open_page(jobs, operator, monkeypatch):
    assert "data-rtq-halt" not in text(operator.get(f"{PAGE}?state=dead&q=task:nosuch"))
    monkeypatch.setattr(job_lists, "MAX_REFRESHED", 0)
    assert "data-rtq-halt" in text(operator.get(f"{PAGE}?state=dead&q=task:nosuch"))
    assert "data-rtq-halt" not in text(operator.get(f"{PAGE}?state=dead"))


def test_times_are_meant_in_the_zone_of_the_reader(jobs, operator, settings):
    settings.TIME_ZONE = "Pacific/Auckland"
    assert len(ids_on(text(operator.get(f"{PAGE}?state=dead&q=since:2020-01-01T00:00")))) == 1
    assert ids_on(text(operator.get(f"{PAGE}?state=dead&q=before:2020-01-01T00:00"))) == []


@pytest.mark.parametrize(("typed", "left"), [(QUEUE, 0), ("", 3), ("Default", 3)])
def test_purging_asks_for_the_name(typed, left, jobs, operator, readers):
    page = f"{BULK}purge/?q=queue%3A{QUEUE}"
    assert f'href="{page}"' in text(operator.get(PAGE))
    html = text(operator.get(page))
    assert "Purge 3 waiting jobs?" in html
    operator.post(f"{BULK}purge/", {**hidden_fields(html), "name": typed})
    details = readers.queues.get(QUEUE)
    assert details.queued + details.scheduled + details.retrying == left
    assert (details.dead, details.finished) == (1, 1)
    assert LogEntry.objects.count() == (left == 0)


@pytest.fixture
def unused(broker, readers):
    """A queue that is in the lists and holds nothing."""
    queued_job(broker, "a")
    readers.sweeps.purge_some(QUEUE, None)


@pytest.mark.parametrize(("typed", "left"), [(QUEUE, []), ("", [QUEUE]), ("Default", [QUEUE])])
def test_forgetting_asks_for_the_name(typed, left, unused, operator, readers):
    assert "Forget …" in text(operator.get(PAGE))
    assert "removes queue default from all lists" in text(operator.get(f"{PAGE}forget/"))
    operator.post(f"{PAGE}forget/", {"name": typed})
    assert readers.queues.names() == left
    assert logged() == ([] if left else ["Forgotten."])


def test_a_queue_that_is_in_use_is_not_forgotten(jobs, operator, readers):
    assert "Forget …" not in text(operator.get(PAGE))
    operator.post(f"{PAGE}forget/", {"name": QUEUE})
    assert f"Queue {QUEUE} stays: it has jobs or dead letters." in said(operator)
    assert readers.queues.names() == [QUEUE]
    assert LogEntry.objects.count() == 0


def test_outcomes_are_deleted_with_a_queue_if_they_are_ticked(broker, redis, operator, readers):
    finished_job(broker)
    redis.delete("{rtq:default}:finished")  # as after some minutes
    operator.post(f"{PAGE}forget/", {"name": QUEUE})
    assert "keeps outcomes" in said(operator)
    assert "discard_outcomes" in text(operator.get(f"{PAGE}forget/"))
    operator.post(f"{PAGE}forget/", {"name": QUEUE, "discard_outcomes": "on"})
    assert readers.queues.names() == []


def test_without_a_worker_the_page_says_how_to_start_one(operator, broker):
    assert "python manage.py rtq_worker" in text(operator.get("/admin/django_rtq/worker/"))
    assert "python manage.py rtq_worker" in text(operator.get("/admin/django_rtq/job/"))

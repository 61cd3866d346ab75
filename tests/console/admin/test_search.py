"""The search over all queues and states."""

import re

import pytest
from django.utils.html import escape

from django_rtq.console.reading.jobs.walk import JobWalk
from django_rtq.console.redaction import HIDDEN
from tests.console.admin.conftest import MAIL, body, text
from tests.support.jobs import QUEUE, dead_job, queued_job

SEARCH = "/admin/django_rtq/job/search/"


def found(client, query, **more):
    """The ids on the page of results, and the page."""
    html = text(client.get(SEARCH, {"q": query, **more}))
    return re.findall(r'class="rtq-id"[^>]*><a href="/admin/django_rtq/job/([^/?]+)/', html), html


def test_every_page_has_the_box_and_the_results_keep_the_query(jobs, viewer):
    assert f'action="{SEARCH}"' in text(viewer.get("/admin/django_rtq/queue/"))
    assert 'value="task:&quot;x y&quot;"' in found(viewer, 'task:"x y"')[1]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("client:florist", "queued scheduled"),
        ("state:queued state:dead", "dead queued"),
        ("bakery", "running dead retrying"),
        ("state:succeeded", "finished"),
        ("before:1d state:dead", ""),
    ],
)
def test_jobs_of_all_states_are_found(jobs, viewer, query, names):
    assert found(viewer, query)[0] == [getattr(jobs, name).id for name in names.split()]


@pytest.mark.parametrize(("query", "is_linked"), [("state:dead", True), ("state:succeeded", False), ("bakery", False)])
def test_lists_with_actions_are_named(jobs, viewer, query, is_linked):
    assert ("To act on all of them" in found(viewer, query)[1]) is is_linked


def test_actions_do_not_search_for_a_text(jobs, operator):
    html = text(operator.get(f"/admin/django_rtq/queue/{QUEUE}/", {"state": "dead", "q": "bakery"}))
    assert jobs.dead.id in html
    assert "Requeue selected" in html
    assert "Requeue all matching" not in html
    answer = operator.get("/admin/django_rtq/job/bulk/requeue/", {"q": "state:dead bakery"})
    assert answer.status_code == 400
    assert "select the jobs instead" in text(answer)


def test_a_query_that_is_wrong_is_explained(jobs, viewer):
    for query, said in (("tsk:x", "Did you mean task?"), ("queue:defualt", "no queue of this name was used yet.")):
        ids, html = found(viewer, query)
        assert ids == []
        assert escape(said) in html
        assert 'aria-invalid="true"' in html


def test_hidden_values_cannot_be_found(broker, operator):
    dead_job(broker, body=body("x", 1, password="hunter2hunter2"))
    queued_job(broker, body=body("5ecr3tive", task="tests.app.unknown"))

    for query in ("hunter2hunter2", "hunter2", "password hunter2hunter2"):
        ids, html = found(operator, query)
        assert ids == []
        assert "hunter2" not in re.sub(r"(?s)<h1>Search jobs</h1>.*?</details>\s*</div>", "", html).replace(
            escape(query), ""
        )
        for state in ("dead", "queued"):
            listed = operator.get(f"/admin/django_rtq/queue/{QUEUE}/", {"state": state, "q": query})
            assert re.findall(r'name="id" value="([^"]*)"', text(listed)) == []
    assert found(operator, "5ecr3tive")[0] == []
    ids, html = found(operator, "state:dead")
    assert len(ids) == 1
    assert HIDDEN in html
    assert "hunter2" not in html


def test_a_list_shows_the_first_arguments(broker, viewer):
    queued_job(broker, body=body("Ann", 42, note="x" * 300))
    html = text(viewer.get(f"/admin/django_rtq/queue/{QUEUE}/"))

    assert MAIL.rpartition(".")[2] in html
    assert re.search(r"=&quot;Ann&quot;, \w+=42, note=", html)
    assert "x" * 100 not in html


@pytest.mark.parametrize("stop", ["", "&stop=1"])
def test_without_a_match_so_far_the_page_goes_on_by_itself(broker, viewer, monkeypatch, stop):
    monkeypatch.setattr(JobWalk.page, "__defaults__", ("", 50, 2))
    for _ in range(5):
        queued_job(broker, body=body("x", 1))

    html = viewer.get(f"{SEARCH}?q=nosuchword{stop}").content.decode()

    assert "2 of 5 jobs looked at." in html
    assert ("data-rtq-continue" in html, ">Stop</a>" in html) == ((not stop), (not stop))
    assert "data-rtq-continue" not in viewer.get(f"{SEARCH}?q=task:{MAIL}{stop}").content.decode()

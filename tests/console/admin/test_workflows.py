"""The pages of workflows."""

import re
from dataclasses import replace

from django_rtq.console.admin.pages.workflows import MOST, graph
from django_rtq.workflows import workflow_store
from django_rtq.workflows.handle import StepProgress
from django_rtq.workflows.store import NewWorkflow
from tests.console.admin.conftest import text
from tests.support.snapshots import live_jobs
from tests.support.workflows import FLOW, begun_flow, claim_members, claimed_flow, end, new_flow, parts_flow

LIST = "/admin/django_rtq/workflow/"
PAGE = f"{LIST}{FLOW}/"
CHAIN = ({"size": 2, "next": "1"}, {"after": "0"})


def blocked(broker, **options):
    first, second = claimed_flow(broker, *CHAIN, client="bakery", **options)
    end(broker, "ack", first)
    end(broker, "bury", second)
    return second


def test_the_list_shows_the_latest(broker, viewer, round_trips):
    assert "There is no workflow." in text(viewer.get(LIST))
    blocked(broker)
    del round_trips[:]

    html = text(viewer.get(LIST))

    assert len(round_trips) <= 3
    assert f'href="{PAGE}">flow</a>' in html
    assert '<span class="rtq-state rtq-state-blocked">blocked</span>' in html
    assert '<progress max="3" value="1"' in html
    assert "1 of 3" in html
    assert "?client=bakery" in html


def test_a_call_for_a_death_that_never_came_is_not_missing(broker, viewer):
    first, second = claimed_flow(broker, {"size": 2}, {}, on_death=1)
    end(broker, "ack", first)
    assert "1 of 2" in text(viewer.get(LIST))
    end(broker, "ack", second)

    assert "2 of 2" in text(viewer.get(LIST))
    assert 'rtq-state-skipped">never starts</span>' in text(viewer.get(PAGE))


def test_a_blocked_one_is_found_behind_many_others(broker, viewer):
    blocked(broker)
    for number in range(101):
        workflow_store(broker).store(new_flow({"size": 1}, flow_id=f"{number:012x}"))
    listed = [viewer.get(LIST, query) for query in ({}, {"page": 2}, {"page": 3}, {"state": "blocked"})]

    first, second, third, of_state = (PAGE in text(answer) for answer in listed)
    assert (first, second or third, of_state) == (False, True, True)  # some may be as old as it, by the millisecond
    assert 'rel="next"' in text(listed[0])
    assert "No match." in text(viewer.get(LIST, {"state": "failed"}))


def test_secrets_of_its_dead_jobs_are_hidden(broker, viewer):
    begun_flow(broker, {"call": '{"task":"t","kwargs":{"order":7,"password":"swordfish"}}'})
    end(broker, "bury", *claim_members(broker))

    html = text(viewer.get(PAGE))

    assert "order=7" in html
    assert "swordfish" not in html


def test_one_has_a_graph_and_a_table(broker, viewer, round_trips):
    blocked(broker)
    del round_trips[:]

    html = text(viewer.get(PAGE))

    assert len(round_trips) <= 4
    assert "Dead jobs block this workflow." in html
    assert html.count('<g class="rtq-node') == 2
    assert html.count('<path class="rtq-edge"') == 1
    assert "t: running. Jobs: 2, done: 1, dead: 1, failed for good: 0" in html
    assert html.count(f"q=state%3Adead+task%3A%3Dt+workflow%3A{FLOW}") == 2  # in the graph and in the table
    assert f"q=workflow%3A{FLOW}" in html
    cells = [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", html, re.DOTALL)]
    assert cells[-12:-6] == ["t blockedStep: 0", "default", "1 of 2", "1", "0", ""]
    assert cells[-6:] == ["t waitingStep: 1", "default", "0 of 1", "0", "0", "01 of 2 jobs of step t are dead"]
    assert html.index("it broke") < html.index('<svg class="rtq-graph') < html.index(">Steps</h2>")  # dead jobs first
    assert "Requeue dead jobs" not in html  # a viewer may not


def test_of_a_large_one_heartbeats_cancel_the_rest(redis, broker, operator, monkeypatch):
    monkeypatch.setattr("django_rtq.console.acting.actions.CANCELLED_AT_ONCE", 4)
    workflow_store(broker).start(workflow_store(broker).store(parts_flow(6))[2])

    html = text(operator.post(f"{PAGE}cancel/", follow=True))

    assert "Workflow flow is cancelled." in html
    assert "Workers are still cancelling the jobs" in html
    assert len(live_jobs(redis)) == 2
    workflow_store(broker).cancel_members(FLOW)
    assert "still cancelling" not in text(operator.get(PAGE))


def test_of_one_that_is_cancelled_no_step_runs_or_waits(redis, broker, operator):
    """And to requeue its dead job would not let it go on."""
    blocked(broker)
    workflow_store(broker).cancel(FLOW)

    html = text(operator.get(PAGE))

    cells = [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", html, re.DOTALL)]
    assert cells[-12:-6] == ["t failedStep: 0", "default", "1 of 2", "1", "0", ""]
    assert cells[-6:] == ["t never startsStep: 1", "default", "0 of 1", "0", "0", "0"]
    assert "Requeue dead jobs" not in html


def test_one_that_is_unknown(broker, operator):
    for url in (PAGE, f"{PAGE}cancel/"):
        answer = operator.get(url)
        assert answer.status_code == 404
        assert f"Workflow {FLOW} was not found." in text(answer)


def test_names_are_untrusted(broker, viewer):
    flow = new_flow({})
    fields = {**flow.fields, "name": "<script>", "task:0": "<b>.x", "client": "<i>"}
    workflow_store(broker).store(NewWorkflow(id=FLOW, key="", fields=fields, parts=flow.parts))

    for url in (LIST, PAGE):
        html = text(viewer.get(url))
        assert "<script>" not in html.split("</head>")[1].replace("<script src", "")
        assert "&lt;script&gt;" in html
        assert "<b>.x" not in html
        assert "<i>" not in html


def steps(number, **changes):
    details = {"task": "t", "queue": "q", "state": "waiting", "size": 1, "done": 0, "dead": 0, "gone": 0}
    return [StepProgress(number=n, **{**details, **changes}) for n in range(number)]


def test_a_large_graph_is_cut():
    assert graph(steps(MOST + 10), lambda step: "").count("<g class") == MOST


def test_a_step_is_right_of_what_it_waits_for():
    first, second, third = steps(3)
    chain = [first, replace(second, after=(0,)), replace(third, after=(1, 0))]

    places = re.findall(r"translate\((\d+) (\d+)\)", graph(chain, lambda step: ""))

    assert [int(x) for x, _ in places] == sorted({int(x) for x, _ in places})

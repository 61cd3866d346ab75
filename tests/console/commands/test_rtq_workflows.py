"""rtq_workflows: lists and shows workflows, cancels one, requeues its dead jobs."""

import json

import pytest

from tests.support.commands import run
from tests.support.snapshots import live_jobs, snapshot
from tests.support.workflows import FLOW, advance, begun_flow, claimed_flow, end, fields_of

CHAIN = ({"size": 2, "next": "1"}, {"after": "0"})


def test_a_list_and_one(broker):
    first, second = claimed_flow(broker, *CHAIN, client="bakery")
    end(broker, "ack", first)
    end(broker, "bury", second)

    listed = run("rtq_workflows", "list", "--no-color").out.splitlines()
    shown = run("rtq_workflows", "show", FLOW, "--no-color").out

    assert listed[0].split() == ["ID", "NAME", "STATE", "CLIENT", "JOBS", "DONE", "DEAD", "MADE"]
    assert listed[1].split()[:8] == [FLOW, "flow", "blocked", "bakery", "1", "of", "3", "1"]
    assert [line.split()[:9] for line in shown.splitlines()[-2:]] == [
        ["t", "0", "blocked", "default", "1", "of", "2", "1", "0"],
        ["t", "1", "waiting", "default", "0", "of", "1", "0", "0"],
    ]
    assert shown.endswith(" 1 of 2 jobs of step t are dead\n")


def test_json(broker):
    begun_flow(broker, *CHAIN)

    (flow,) = run("rtq_workflows", "list", "--json").json["workflows"]

    assert [flow[name] for name in ("id", "state", "name", "ended_at")] == [FLOW, "running", "flow", None]
    assert flow["steps"][1] == {
        **{"number": 1, "task": "t", "queue": "default", "state": "waiting"},
        **{"size": 1, "done": 0, "dead": 0, "gone": 0, "after": [0]},
    }
    begun_flow(broker, {"size": 1}, flow_id="0123456789ac", name="other flow")
    first = run("rtq_workflows", "list", "--limit", "1", "--json").json
    rest = run("rtq_workflows", "list", "--limit", "1", "--after", first["next"], "--json").json
    assert [page["workflows"][0]["name"] for page in (first, rest)] == ["other flow", "flow"]
    assert rest["next"] is None
    assert json.loads(run("rtq_workflows", "show", FLOW, "--json").out) == [flow]


def test_none(broker):
    assert run("rtq_workflows", "list").out == "There is no workflow.\n"


@pytest.mark.parametrize("action", ["show", "cancel", "requeue"])
def test_one_that_is_unknown(broker, action):
    done = run("rtq_workflows", action, FLOW)

    assert done.code == 1
    assert f"Workflow {FLOW} was not found" in done.error


def test_cancel(redis, broker):
    begun_flow(broker, *CHAIN)

    assert run("rtq_workflows", "cancel", FLOW, "--dry-run").out == f"Would cancel workflow {FLOW} flow.\n"
    assert fields_of(broker)["state"] == "running"
    assert run("rtq_workflows", "cancel", FLOW).out == f"Cancelled workflow {FLOW} flow.\n"
    assert fields_of(broker)["state"] == "cancelled"
    assert live_jobs(redis) == {}
    assert run("rtq_workflows", "cancel", FLOW).out == f"Workflow {FLOW} flow is over already: cancelled.\n"


def test_requeue(redis, broker):
    members = claimed_flow(broker, *CHAIN)
    end(broker, "bury", *members)

    assert (
        run("rtq_workflows", "requeue", FLOW, "--dry-run").out
        == f"Would requeue 2 dead jobs of workflow {FLOW} flow.\n"
    )
    assert json.loads(run("rtq_workflows", "requeue", FLOW, "--json").out) == {"requeued": 2, "id": FLOW}
    assert "dead" not in snapshot(redis)
    advance(broker, *members)
    assert fields_of(broker)["state"] == "running"

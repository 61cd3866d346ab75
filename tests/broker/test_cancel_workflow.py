"""running, blocked -> cancelled."""

from tests.support.snapshots import changes, snapshot
from tests.support.workflows import FLOW, begun_flow, claim_members, end, fields_of, states_of


def test_no_step_starts_any_more(redis, broker):
    begun_flow(broker, {"next": "1"}, {"after": "0"})
    (member,) = claim_members(broker)

    assert broker.workflows.cancel(FLOW) == "cancelled"

    end(broker, "ack", member)
    assert (fields_of(broker)["state"], states_of(broker)) == ("cancelled", ["started", "waiting"])
    assert claim_members(broker) == []
    assert not {f"waiting_members:{FLOW}", f"open_steps:{FLOW}", "unstarted"} & snapshot(redis).keys()
    assert snapshot(redis)[f"workflow_signal:{FLOW}"] == ["over"]


def test_twice_is_once(redis, broker):
    begun_flow(broker, {})
    broker.workflows.cancel(FLOW)
    before = snapshot(redis)

    assert broker.workflows.cancel(FLOW) == "over"

    assert changes(before, snapshot(redis)) == {}


def test_one_that_is_missing(redis, broker):
    before = snapshot(redis)

    assert broker.workflows.cancel(FLOW) == "missing"

    assert snapshot(redis) == before

"""The index of the states of workflows, for incidents and metrics."""

from django_rtq.console.reading.overview import workflow_states
from django_rtq.console.reading.readers import readers_of
from django_rtq.workflows import workflow_store
from django_rtq.workflows.store import STATES
from tests.support.waiting import server_ms
from tests.support.workflows import FLOW, begun_flow, claim_members, end, new_flow

OTHER = "0123456789ac"


def states(broker):
    """How many are in each state that has some, and the blocked ones."""
    read = broker.redis.run(workflow_states(broker))
    return {state: count for state, count in read.counts.items() if count}, [flow.id for flow in read.blocked]


def test_without_workflows_there_is_nothing(broker):
    assert states(broker) == ({}, [])


def test_it_knows_since_when_and_the_name(redis, broker):
    begun_flow(broker, {}, name="month end of May")
    earliest = server_ms(redis)
    end(broker, "bury", *claim_members(broker))

    (flow,) = broker.redis.run(workflow_states(broker)).blocked

    assert flow.name == "month end of May"
    assert earliest <= flow.since.timestamp() * 1000 <= server_ms(redis)


def test_one_that_is_not_whole_is_in_no_state(broker):
    workflow_store(broker).store(new_flow({}))
    begun_flow(broker, {}, flow_id=OTHER)
    workflow_store(broker).cancel(OTHER)

    assert states(broker) == ({"running": 1, "cancelled": 1}, [])
    assert list(STATES) == ["running", "blocked", "succeeded", "failed", "cancelled"]


def test_the_overview_has_them(broker, round_trips):
    begun_flow(broker, {})
    end(broker, "bury", *claim_members(broker))
    readers = readers_of()
    del round_trips[:]

    overviews = [readers.overview.read(), readers.overview.shared(fresh=True)]

    assert len(round_trips) == 4
    assert [overview.workflows.counts["blocked"] for overview in overviews] == [1, 1]
    assert [flow.id for overview in overviews for flow in overview.workflows.blocked] == [FLOW, FLOW]

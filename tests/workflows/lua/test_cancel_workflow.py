"""running, blocked -> cancelled."""

from types import SimpleNamespace

import pytest

from django_rtq.workflows import workflow_store
from django_rtq.workflows.store import started_parts
from tests.support.jobs import QUEUE
from tests.support.snapshots import changes, live_jobs, snapshot
from tests.support.waiting import server_ms
from tests.support.workflows import FLOW, begun_flow, claim_members, claimed_flow, end, fields_of, parts_flow, states_of


def test_no_step_starts_any_more(redis, broker):
    (member,) = claimed_flow(broker, {"next": "1"}, {"after": "0"})

    assert workflow_store(broker).cancel(FLOW) == "cancelled"

    end(broker, "ack", member)
    assert (fields_of(broker)["state"], states_of(broker)) == ("cancelled", ["started", "waiting"])
    assert claim_members(broker) == []
    assert not {f"waiting_members:{FLOW}", f"open_steps:{FLOW}"} & snapshot(redis).keys()
    assert snapshot(redis)[f"workflow_signal:{FLOW}"] == ["over"]


def test_it_is_something_that_happened(redis, broker, keys):
    begun_flow(broker, {})
    redis.zadd(keys.workflows, {FLOW: 1})

    workflow_store(broker).cancel(FLOW)

    assert redis.zscore(keys.workflows, FLOW) > 1


def test_twice_is_once(redis, broker):
    begun_flow(broker, {})
    workflow_store(broker).cancel(FLOW)
    before = snapshot(redis)

    assert workflow_store(broker).cancel(FLOW) == "over"

    assert changes(before, snapshot(redis)) == {}


def test_one_that_is_missing(redis, broker):
    before = snapshot(redis)

    assert workflow_store(broker).cancel(FLOW) == "missing"

    assert snapshot(redis) == before


class CountedText(str):
    """Counts how often it is read."""

    reads = 0

    def split(self, *args):
        self.reads += 1
        return super().split(*args)


def test_where_the_parts_of_a_step_are_is_read_once():
    """Not for each of its parts: a step of very many jobs has thousands, and heartbeats go through them."""
    places = CountedText("0 2 5")
    fields = {
        "first:0": "7",
        "size:0": "6",
        "queue:0": QUEUE,
        "parts:0": places,
        "at:0:5": "1",
        "at:0:0": "2",
        "at:0:2": "3",
    }

    parts = started_parts(FLOW, fields)

    assert [(part.place, part.first, part.size, part.started_ms) for part in parts] == [
        (0, 7, 2, 2),
        (2, 9, 3, 3),
        (5, 12, 1, 1),
    ]
    assert places.reads == 1


def test_waiting_members_are_cancelled_and_running_ones_asked(redis, broker):
    begun_flow(broker, {"size": 3}, {"queue": "low", "size": 2})
    (running,) = claim_members(broker, 1)
    workflow_store(broker).cancel(FLOW)

    workflow_store(broker).cancel_members(FLOW)

    assert live_jobs(redis).keys() == {running.id}
    assert snapshot(redis)["cancel_requests"].keys() == {running.id}
    assert [fields_of(broker)[f"ends:{step}"] for step in range(2)] == ["0 0 2", "0 0 2"]
    assert "unstarted" not in snapshot(redis)
    assert "cancelling" not in fields_of(broker)
    before = snapshot(redis)
    workflow_store(broker).cancel_members(FLOW)
    assert snapshot(redis) == before


@pytest.mark.parametrize(("parts", "most_jobs"), [(6, 4), (22, 2000)])
def test_heartbeats_go_on_where_the_caller_has_died(redis, broker, monkeypatch, parts, most_jobs):
    """Some jobs of some parts at once; it may take several."""
    monkeypatch.setattr("django_rtq.workflows.store.CANCELLED_IN_HEARTBEAT", most_jobs)
    workflow_store(broker).start(workflow_store(broker).store(parts_flow(parts))[2])
    workflow_store(broker).cancel(FLOW)
    redis.zadd(broker.keys.of(QUEUE).unstarted, {FLOW: server_ms(redis) - 60_000 * 60}, xx=True)

    assert workflow_store(broker).sweep([QUEUE])
    assert len(live_jobs(redis)) == 2
    assert not workflow_store(broker).sweep([QUEUE])

    assert live_jobs(redis) == {}
    assert "unstarted" not in snapshot(redis)
    assert fields_of(broker)["state"] == "cancelled"


TOLD = ({"size": 3, "next": "1"}, {"after": "0"}, {})  # the last step is for the first death


def test_the_call_for_the_first_death_is_made_all_the_same(redis, broker):
    begun_flow(broker, *TOLD, on_dead="cancel", on_death=2)
    first, second = claim_members(broker, 2)

    end(broker, "bury", first)

    workflow_store(broker).cancel_members(FLOW)
    assert (fields_of(broker)["state"], states_of(broker)[2]) == ("cancelled", "started")
    (call,) = live_jobs(redis).keys() - {first.id, second.id}
    assert snapshot(redis)["cancel_requests"].keys() == {second.id}
    assert [member.id for member in claim_members(broker)] == [call]
    end(broker, "ack", SimpleNamespace(id=call))
    assert states_of(broker)[2] == "succeeded"
    assert not [name for name in snapshot(redis) if name.startswith(("waiting_members", "starting_parts", "unstarted"))]


def test_a_heartbeat_makes_the_call_that_nobody_has_made(redis, broker):
    begun_flow(broker, *TOLD, on_dead="cancel", on_death=2)
    first, second = claim_members(broker, 2)
    unstarted = broker.keys.of(QUEUE).unstarted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(workflow_store(broker)), "start", lambda *args, **options: False)
        end(broker, "bury", first)
    assert live_jobs(redis).keys() == {first.id, second.id}

    for _ in range(3):
        if redis.zscore(unstarted, FLOW):
            redis.zadd(unstarted, {FLOW: 1})
        workflow_store(broker).sweep([QUEUE])

    assert len(live_jobs(redis)) == 3
    assert not redis.exists(unstarted)


def test_progress_is_noted_of_one_that_is_cancelled_only(redis, broker):
    begun_flow(broker, {})
    before = snapshot(redis)
    assert workflow_store(broker)._ask("cancel_workflow", FLOW, 5) == "noted"
    assert changes(before, snapshot(redis)) == {}

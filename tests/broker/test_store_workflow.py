"""— -> a workflow, whose first steps are to be enqueued."""

import pytest

from django_rtq.broker import workflows
from tests.support.jobs import QUEUE
from tests.support.snapshots import changes, snapshot
from tests.support.workflows import FLOW, begun_flow, new_flow, part, states_of


def test_steps_without_others_before_them_are_to_be_enqueued(redis, broker):
    flow = new_flow({"size": 2, "next": "1"}, {"after": "0"}, {"queue": "low"})

    assert broker.workflows.store(flow) == ("ok", "running", [part("0:0"), part("2:0", queue="low")])

    taken = snapshot(redis, times=False)
    assert states_of(broker) == ["started", "waiting", "started"]
    assert taken[f"workflow_steps:{FLOW}"] == {"0": 0, "1": 2, "2": 3}
    assert taken[f"open_steps:{FLOW}"] == {"0", "1", "2"}
    assert taken[f"step_waits:{FLOW}:1"] == {"0"}
    assert taken[f"starting_parts:{FLOW}"] == {"0:0": 0, "2:0": 3}
    assert taken["workflows"].keys() == taken["unstarted"].keys() == {FLOW}


def test_it_is_not_there_before_its_last_part(redis, broker, monkeypatch):
    monkeypatch.setattr(workflows, "MOST_BYTES", 1)
    monkeypatch.setattr(workflows, "PARTS_IN_FLIGHT", 1)
    states, execute = [], broker.redis.execute

    def note_state(commands, **options):
        replies = execute(commands, **options)
        states.append(redis.hget(broker.keys.of(QUEUE).workflow + FLOW.encode(), "state"))
        return replies

    monkeypatch.setattr(broker.redis, "execute", note_state)

    broker.workflows.store(new_flow({"size": 2}, {}, {}))

    assert states == [b"making", b"making", b"running"]


def test_an_empty_step_is_over_at_once(redis, broker):
    broker.workflows.store(new_flow({"size": 0, "next": "1"}, {"after": "0"}))

    assert states_of(broker) == ["succeeded", "started"]


def test_a_workflow_without_jobs_is_over_at_once(redis, broker):
    assert broker.workflows.store(new_flow({"size": 0, "next": "1"}, {"size": 0, "after": "0"}))[1] == "succeeded"

    assert states_of(broker) == ["succeeded", "succeeded"]
    assert "unstarted" not in snapshot(redis)


def test_a_step_for_the_first_death_does_not_start(redis, broker):
    _, _, parts = broker.workflows.store(new_flow({}, {}, on_death=1))

    assert parts == [part("0:0")]
    assert snapshot(redis)[f"open_steps:{FLOW}"] == {"0"}


def test_of_a_key_there_is_one_at_a_time(redis, broker):
    broker.workflows.store(new_flow({}, key="flow\nmay"))
    before = snapshot(redis)

    assert broker.workflows.store(new_flow({}, flow_id="c" * 12, key="flow\nmay")) == ("duplicate", FLOW, [])
    assert snapshot(redis) == before

    broker.workflows.cancel(FLOW)
    assert broker.workflows.store(new_flow({}, flow_id="c" * 12, key="flow\nmay"))[0] == "ok"


def test_another_one_with_its_id_is_refused(redis, broker):
    broker.workflows.store(new_flow({}))
    before = snapshot(redis)

    assert broker.workflows.store(new_flow({}, {}))[0] == "taken"

    assert snapshot(redis) == before


def test_twice_is_once(redis, broker, monkeypatch):
    monkeypatch.setattr(workflows.secrets, "token_hex", lambda size: "token")
    flow = new_flow({"size": 2, "next": "1"}, {"after": "0"})
    answer = broker.workflows.store(flow)
    before = snapshot(redis)

    assert broker.workflows.store(flow) == answer
    assert changes(before, snapshot(redis)) == {}

    broker.workflows.start(answer[2])
    before = snapshot(redis)
    assert broker.workflows.store(flow) == ("ok", "running", [])
    assert changes(before, snapshot(redis)) == {}


@pytest.mark.parametrize("members", [1, 500])
def test_all_members_are_enqueued(redis, broker, members):
    begun_flow(broker, {"size": members})

    assert redis.hlen(broker.keys.of("default").jobs) == members

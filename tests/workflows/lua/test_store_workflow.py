"""— -> a workflow, whose first steps are to be enqueued."""

import itertools
import math
from dataclasses import replace

import pytest

from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.exceptions import QueueFull
from django_rtq.workflows import store as workflows
from django_rtq.workflows import workflow_store
from tests.support.jobs import QUEUE, queued_job
from tests.support.snapshots import MS, changes, snapshot
from tests.support.workflows import FLOW, begun_flow, claim_members, end, fields_of, new_flow, part, states_of


def test_steps_without_others_before_them_are_to_be_enqueued(redis, broker):
    flow = new_flow({"size": 2, "next": "1"}, {"after": "0"}, {"queue": "low"})

    assert workflow_store(broker).store(flow) == ("ok", "running", [part("0:0"), part("2:0", queue="low")])

    taken = snapshot(redis, times=False)
    assert states_of(broker) == ["started", "waiting", "started"]
    assert taken[f"workflow_steps:{FLOW}"] == {"0": 0, "1": 2, "2": 3}
    assert taken[f"open_steps:{FLOW}"] == {"0", "1", "2"}
    assert taken[f"step_waits:{FLOW}:1"] == {"0"}
    assert taken[f"starting_parts:{FLOW}"] == {"0:0": 0, "2:0": 3}
    assert taken["workflows"].keys() == taken["unstarted"].keys() == {FLOW}
    assert taken[f"workflow:{FLOW}"]["made"] == MS
    assert "workflow_keys" not in taken


@pytest.mark.parametrize("before", [0, 8, 9, 10, 98, 99, 100])
@pytest.mark.parametrize("empty", [1, 3])
def test_members_belong_to_the_step_behind_empty_ones(redis, broker, before, empty):
    """These begin with the same number."""
    steps = [{}] * before + [{"size": 0}] * empty + [{"size": 2}]
    begun_flow(broker, *steps)

    end(broker, "ack", *claim_members(broker, 200))

    assert states_of(broker) == ["succeeded"] * len(steps)
    assert fields_of(broker)["state"] == "succeeded"


def test_a_workflow_without_jobs_is_over_at_once(redis, broker):
    assert workflow_store(broker).store(new_flow({"size": 0, "next": "1"}, {"size": 0, "after": "0"}))[1] == "succeeded"

    assert states_of(broker) == ["succeeded", "succeeded"]
    assert "unstarted" not in snapshot(redis)


def test_of_a_key_there_is_one_at_a_time(redis, broker):
    workflow_store(broker).store(new_flow({}, key="flow\nmay"))
    before = snapshot(redis)

    assert workflow_store(broker).store(new_flow({}, flow_id="c" * 12, key="flow\nmay")) == ("duplicate", FLOW, [])
    assert snapshot(redis) == before

    workflow_store(broker).cancel(FLOW)
    assert workflow_store(broker).store(new_flow({}, flow_id="c" * 12, key="flow\nmay"))[0] == "ok"


def test_another_one_with_its_id_is_refused(redis, broker):
    workflow_store(broker).store(new_flow({}))
    before = snapshot(redis)

    assert workflow_store(broker).store(new_flow({}, {}))[0] == "taken"

    assert snapshot(redis) == before


def test_twice_is_once(redis, broker):
    flow = replace(new_flow({"size": 2, "next": "1"}, {"after": "0"}, key="flow\nmay"), token="token")
    answer = workflow_store(broker).store(flow)
    before = snapshot(redis)

    assert workflow_store(broker).store(flow) == answer
    assert changes(before, snapshot(redis)) == {}

    workflow_store(broker).start(answer[2])
    before = snapshot(redis)
    assert workflow_store(broker).store(flow) == ("ok", "running", [])
    assert changes(before, snapshot(redis)) == {}


@pytest.mark.parametrize("members", [1, 500])
def test_all_members_are_enqueued(redis, broker, members):
    begun_flow(broker, {"size": members})

    assert redis.hlen(broker.keys.of("default").jobs) == members


def send(broker, *, flow_id=FLOW, token="t", key="", is_last="", rooms=(), fields=(), parts=()):
    """One call of the script."""
    keys = broker.keys.of(QUEUE)
    arguments = (flow_id, token, is_last, key, len(rooms), len(fields), *rooms, *fields, *parts)
    return broker.redis.execute_one(SCRIPTS["store_workflow"].call_many([keys, keys], arguments))


def fields(*steps, **options):
    return [text for pair in new_flow(*steps, **options).fields.items() for text in pair]


def test_parts_arrive_one_after_the_other(redis, broker):
    """It is not there before the last one, and again it is one."""
    assert send(broker, fields=fields({}, {}), parts=("0:0", "0 3    \n{}\n")) == [b"ok", b""]
    assert snapshot(redis)[f"workflow:{FLOW}"]["state"] == "making"
    assert snapshot(redis)["unstarted"].keys() == {FLOW}
    assert "workflow_keys" not in snapshot(redis)

    for _ in range(2):
        answer = send(broker, is_last="1", parts=("1:0", "0 3    \n{}\n"))
        assert answer == [b"ok", b"running", b"0:0", QUEUE.encode(), b"1:0", QUEUE.encode()]

    assert snapshot(redis)[f"waiting_members:{FLOW}"].keys() == {"0:0", "1:0"}
    assert send(broker, token="other", parts=("0:0", "x")) == [b"taken"]


def test_one_that_does_not_fit_leaves_nothing_of_its_parts(redis, broker):
    broker.limits.change(QUEUE, {"run:queue": "max_waiting=1"})
    before = snapshot(redis)
    send(broker, key="flow\nmay", fields=fields({}, key="flow\nmay"), parts=("0:0", "0 3    \n{}\n"))

    assert send(broker, key="flow\nmay", is_last="1", rooms=(2, "", 2)) == [b"full queue 0 1", b"2", b""]

    assert changes(before, snapshot(redis)) == {}


KEY = "flow\nmay"
CALL = "0 3    \n{}\n"


def packets(broker, flow_id):
    """Calls that send a workflow with KEY in three packets; each returns the first word of the answer."""
    texts = fields({}, {}, {}, key=KEY)
    return [
        lambda: send(broker, flow_id=flow_id, key=KEY, fields=texts, parts=("0:0", CALL))[0],
        lambda: send(broker, flow_id=flow_id, key=KEY, parts=("1:0", CALL))[0],
        lambda: send(broker, flow_id=flow_id, key=KEY, parts=("2:0", CALL), is_last="1")[0],
    ]


def begun_of(redis, broker):
    """The ids of the workflows that have begun."""
    return {member.split(b" ")[0].decode() for member in redis.zrange(broker.keys.of(QUEUE).workflow_states, 0, -1)}


@pytest.mark.parametrize("turns", sorted({*itertools.permutations("aaabbb"), *itertools.permutations("aaabb")}))
def test_two_makers_of_a_key_begin_one_workflow(redis, broker, turns):
    """One of them may be killed between any two packets. "duplicate" is said only of a whole one."""
    makers = {"a": packets(broker, "a" * 12), "b": packets(broker, "b" * 12)}
    over = set()
    for maker in turns:
        if maker in over:
            continue
        before, answer = begun_of(redis, broker), makers[maker].pop(0)()
        if answer == b"duplicate":
            over.add(maker)
            assert before == {"".join({"a", "b"} - {maker}) * 12}
            assert maker * 12 not in snapshot(redis).get("unstarted", {})

    begun = begun_of(redis, broker)
    assert len(begun) == 1
    assert snapshot(redis)["workflow_keys"] == {KEY: begun.pop()}


def test_a_workflow_of_many_fields_arrives_in_parts(redis, broker, monkeypatch):
    monkeypatch.setattr(workflows, "MOST_TEXTS", 4)
    sent, execute = [], broker.redis.execute

    def note(commands, **options):
        sent.extend(commands)
        return execute(commands, **options)

    monkeypatch.setattr(broker.redis, "execute", note)
    flow = new_flow({"size": 2, "next": "1"}, {"after": "0"})

    assert workflow_store(broker).store(flow) == ("ok", "running", [part("0:0")])

    assert len(sent) == math.ceil(len(flow.fields) / 2)
    stored = snapshot(redis)[f"workflow:{FLOW}"]
    given = {name: str(value) for name, value in flow.fields.items() if not name.startswith("state")}
    assert given.items() <= stored.items()


def test_a_workflow_of_1000_steps_fits(redis, broker):
    """No call of the script has too many values for a command."""
    steps = [{"after": str(number - 1) if number else "", "next": str(number + 1)} for number in range(1000)]

    assert workflow_store(broker).store(new_flow(*steps)) == ("ok", "running", [part("0:0")])

    assert snapshot(redis)[f"step_waits:{FLOW}:999"] == {"998"}


def test_a_workflow_without_steps_is_over_at_once(redis, broker):
    assert workflow_store(broker).store(new_flow()) == ("ok", "succeeded", [])


def test_one_with_a_step_for_the_first_death_only_is_over_at_once(redis, broker):
    assert workflow_store(broker).store(new_flow({}, on_death=0)) == ("ok", "succeeded", [])


def rooms(*rooms, **options):
    return replace(new_flow({"size": 3, "client": "x"}, **options), rooms=rooms)


@pytest.mark.parametrize(
    ("limits", "wanted", "scope"),
    [
        ({"run:queue": "max_waiting=3"}, 2, None),
        ({"run:queue": "max_waiting=3"}, 3, "queue"),
        ({"run:clients": "max_waiting=3"}, 2, None),
        ({"run:clients": "max_waiting=3"}, 3, "x"),
        ({"run:queue": "max_waiting=1"}, 1, "queue"),
        ({}, 100, None),
    ],
)
def test_those_that_begin_have_to_fit(redis, broker, limits, wanted, scope):
    """One of client x waits already."""
    queued_job(broker, client="x")
    broker.limits.change(QUEUE, limits)
    before = snapshot(redis)
    flow = rooms((QUEUE, "x", wanted), key="flow\nmay")

    if scope is None:
        assert workflow_store(broker).store(flow)[0] == "ok"
        return
    with pytest.raises(QueueFull) as full:
        workflow_store(broker).store(flow)

    assert (full.value.client or "queue", full.value.queue, full.value.waiting) == (scope, QUEUE, 1)
    assert changes(before, snapshot(redis)) == {}


def test_of_very_many_clients_the_queue_is_asked_only(redis, broker):
    broker.limits.change(QUEUE, {"run:clients": "max_waiting=1", "run:queue": "max_waiting=5"})

    assert workflow_store(broker).store(rooms((QUEUE, workflows.ANY_CLIENT, 5)))[0] == "ok"
    with pytest.raises(QueueFull):
        workflow_store(broker).store(rooms((QUEUE, workflows.ANY_CLIENT, 6), flow_id="c" * 12))


def test_all_queues_have_to_have_room(redis, broker):
    broker.limits.change("low", {"run:queue": "max_waiting=1"})

    with pytest.raises(QueueFull, match="low"):
        workflow_store(broker).store(rooms((QUEUE, "x", 3), ("low", "x", 1), ("low", "y", 1)))


def test_cancelled_ids_do_not_count(redis, broker, access):
    first, second = queued_job(broker, client="x"), queued_job(broker, client="x")
    broker.limits.change(QUEUE, {"run:clients": "max_waiting=3"})
    access.cancel(second.id)
    assert first.id in snapshot(redis)["jobs"]

    assert workflow_store(broker).store(rooms((QUEUE, "x", 2)))[0] == "ok"
    with pytest.raises(QueueFull):
        workflow_store(broker).store(rooms((QUEUE, "x", 3), flow_id="c" * 12))

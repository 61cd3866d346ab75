"""— -> queued: the members of a part of a step."""

from dataclasses import replace

from django_rtq.workflows import store as workflows
from django_rtq.workflows import workflow_store
from django_rtq.workflows.store import KEEPS, PARTS_IN_FLIGHT, member_id, workflow_of
from tests.support.jobs import QUEUE
from tests.support.snapshots import changes, live_jobs, snapshot
from tests.support.waiting import server_ms
from tests.support.workflows import FLOW, begun_flow, claim_members, end, fields_of, new_flow, part, parts_flow


def test_they_are_queued_for_their_clients_in_their_order(redis, broker):
    begun_flow(broker, {"size": 3, "client": "x"})

    at = int(fields_of(broker)["at:0:0"])
    ids = [member_id(FLOW, at, number, keeps=False) for number in range(3)]
    assert live_jobs(redis) == dict.fromkeys(ids, f"0 3 {at} 0 x\n{{}}")
    assert snapshot(redis)["lane:0:x"] == ids
    assert {workflow_of(job_id) for job_id in ids} == {FLOW}
    assert snapshot(redis)["stats"] == {"enqueued": 3}


def test_a_job_without_a_client_has_that_of_the_workflow(redis, broker):
    begun_flow(broker, {}, {"client": "x"}, client="bakery")

    assert {record.partition("\n")[0].split(" ")[4] for record in live_jobs(redis).values()} == {"bakery", "x"}


def test_nothing_is_left_to_enqueue(redis, broker):
    begun_flow(broker, {})

    assert not {"unstarted", f"starting_parts:{FLOW}", f"waiting_members:{FLOW}"} & snapshot(redis).keys()


def test_numbers_go_on_over_steps(redis, broker):
    begun_flow(broker, {"size": 300}, {"size": 2, "keep": True})

    ids = sorted(live_jobs(redis), key=lambda job_id: job_id[-6:])
    assert [int(job_id[-6:], 16) for job_id in ids] == list(range(302))
    assert [job_id[16:17].encode() == KEEPS for job_id in ids] == [False] * 300 + [True] * 2


def test_numbers_go_on_over_parts(redis, broker):
    flow = new_flow({}, {"size": 3})
    flow.fields["parts:1"] = "0 2"
    calls = dict(flow.parts)["1:0"].splitlines(keepends=True)
    parts = [flow.parts[0], ("1:0", "".join(calls[:4])), ("1:2", "".join(calls[4:]))]

    workflow_store(broker).start(workflow_store(broker).store(replace(flow, parts=parts))[2])

    assert sorted(job_id[-6:] for job_id in live_jobs(redis)) == ["000000", "000001", "000002", "000003"]


def test_how_many_there_are_is_said_once(redis, broker):
    _, _, parts = workflow_store(broker).store(new_flow({"size": 2}))
    command = workflow_store(broker)._start_command(parts[0])

    assert [broker.redis.execute_one(command) for _ in range(2)] == [2, 0]


def test_others_that_are_to_start_stay_noted(redis, broker):
    _, _, parts = workflow_store(broker).store(new_flow({}, {}))

    broker.redis.execute_one(workflow_store(broker)._start_command(parts[0]))

    assert snapshot(redis)["unstarted"].keys() == {FLOW}


def test_a_full_queue_takes_them(redis, broker):
    broker.limits.change(QUEUE, {"run:queue": "max_waiting=1"})

    begun_flow(broker, {"size": 5})

    assert len(live_jobs(redis)) == 5


def test_who_goes_on_with_many_parts_says_so_and_leaves_the_mark_where_it_is_gone(redis, broker):
    _, _, parts = workflow_store(broker).store(parts_flow(2))
    unstarted = broker.keys.of(QUEUE).unstarted
    redis.zadd(unstarted, {FLOW: 1})

    broker.redis.execute_one(workflow_store(broker)._start_command(parts[0]))
    assert redis.zscore(unstarted, FLOW) > server_ms(redis) - 10_000

    redis.delete(unstarted)  # as after a torn log
    broker.redis.execute_one(workflow_store(broker)._start_command(parts[0]))
    assert not redis.exists(unstarted)


def test_many_parts_are_started_until_a_moment_and_the_rest_later(redis, broker):
    _, _, parts = workflow_store(broker).store(parts_flow(20))

    assert workflow_store(broker).start(parts, until=0.0)
    assert len(live_jobs(redis)) == PARTS_IN_FLIGHT

    assert not workflow_store(broker).start(parts)
    assert len(live_jobs(redis)) == 20


def test_who_settles_members_starts_for_a_while_and_heartbeats_do_the_rest(redis, broker, monkeypatch):
    monkeypatch.setattr(workflows, "FOLLOW_SECONDS", 0.0)
    workflow_store(broker).start(workflow_store(broker).store(parts_flow(24))[2], until=0.0)
    members = claim_members(broker, 8)
    end(broker, "ack", *members)
    assert len(live_jobs(redis)) == PARTS_IN_FLIGHT
    assert not workflow_store(broker).sweep([QUEUE], until=0.0)  # somebody has gone on just now

    for _ in range(2):
        redis.zadd(broker.keys.of(QUEUE).unstarted, {FLOW: server_ms(redis) - workflows.STALLED_MS - 1}, xx=True)
        workflow_store(broker).sweep([QUEUE], until=0.0)
        assert len(live_jobs(redis)) == 24 - len(members)


def test_twice_is_once(redis, broker):
    begun_flow(broker, {"size": 2})
    before = snapshot(redis)

    workflow_store(broker).start([part("0:0")])

    assert changes(before, snapshot(redis)) == {}


def test_a_cancelled_workflow_starts_nobody(redis, broker):
    _, _, parts = workflow_store(broker).store(new_flow({"size": 2}))
    workflow_store(broker).cancel(FLOW)

    workflow_store(broker).start(parts)

    assert live_jobs(redis) == {}
    assert "unstarted" in snapshot(redis)  # a heartbeat cancels what is left

"""rtq.jobs, rtq.queues and the like look at Redis and act on it."""

import inspect
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync

from django_rtq import InvalidTask, JobNotFound, WorkerNotFound, WrongState, rtq
from django_rtq.console import nouns
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.jobs.outcome import write_succeeded
from tests.support.jobs import (
    QUEUE,
    WORKER,
    claimed_job,
    dead_job,
    finished_job,
    queued_job,
    scheduled_job,
    settle,
)
from tests.support.workflows import begun_flow

pytestmark = pytest.mark.usefixtures("broker")


@pytest.fixture
def broker(broker):
    get_broker().register_queues([QUEUE])
    return get_broker()


def some(broker, number, make=queued_job, **options):
    return [make(broker, **options).id for _ in range(number)]


def test_jobs_are_counted_listed_and_cut(broker):
    finished_job(broker)
    dead, waiting = some(broker, 2, dead_job), some(broker, 3, client="acme")

    assert rtq.jobs.count() == 6
    assert [job.id for job in rtq.jobs.filter(client="acme")] == waiting
    assert [job.id for job in rtq.jobs.filter("client:acme").filter(queue=QUEUE, state="queued")[:2]] == waiting[:2]
    assert rtq.jobs.filter(state=["dead", "queued"]).count() == 5
    assert sorted(job.id for job in rtq.jobs.filter(state="dead", since="1h")) == sorted(dead)
    assert rtq.jobs.filter(client="nobody").count() == 0
    assert rtq.jobs.filter(state="succeeded").count() == 1


def test_jobs_of_a_workflow_are_found_by_its_name_and_its_id(broker):
    flow = begun_flow(broker, {"size": 2}, name="month-end")
    queued_job(broker)

    for found in (rtq.jobs.filter("workflow:month-end"), rtq.jobs.filter(workflow=flow)):
        assert (found.count(), len(list(found))) == (2, 2)
    with pytest.raises(ValueError, match="no workflow has this name"):
        rtq.jobs.filter(workflow="year-end").count()
    assert rtq.jobs.filter(workflow="month-end").cancel() == 2


def test_a_filter_of_a_filter_never_finds_more(broker):
    finished_job(broker), some(broker, 1), some(broker, 1, scheduled_job)
    other = rtq.queues["other"].jobs
    with pytest.raises(ValueError, match="queue is given twice"):
        other.filter(queue=QUEUE)
    with pytest.raises(ValueError, match="state is given twice"):
        rtq.jobs.filter(state="queued").filter("state:scheduled")

    assert other.filter(queue="other").count() == 0
    assert rtq.jobs.filter(state=["queued", "scheduled"]).filter(state="queued").count() == 1
    assert rtq.jobs.filter(state="finished").filter(state="succeeded").filter(queue=QUEUE).count() == 1
    assert rtq.jobs.filter(state="finished").filter(state="cancelled").count() == 0


def test_a_wrong_filter_says_what_is_wrong():
    with pytest.raises(ValueError, match="there is no such state"):
        rtq.jobs.filter(state="dad")
    for field in ("queue", "state", "client"):
        with pytest.raises(ValueError, match=f"{field}:: a value is missing"):
            rtq.jobs.filter(**{field: []})
    with pytest.raises(ValueError, match="there is no such field"):
        rtq.jobs.filter(colour="red")
    with pytest.raises(ValueError, match="state:queued: requeue is for jobs that are dead"):
        rtq.jobs.filter(state="queued").requeue()
    for fields in ({"since": timedelta(hours=1)}, {"state": None}):
        with pytest.raises(TypeError, match="give a text, a datetime, or several texts"):
            rtq.jobs.filter(**fields)
    with pytest.raises(ValueError, match="no state 'dead' of workflows"):
        rtq.workflows(state="dead")


def test_what_cannot_be_listed_says_so():
    for noun in (rtq.clients, rtq.tasks):
        with pytest.raises(TypeError, match="cannot be listed"):
            list(noun)
    with pytest.raises(TypeError, match="no numbers"):
        rtq.jobs[0]


def test_something_is_done_with_all_that_match(broker):
    claimed_job(broker)
    some(broker, 4, dead_job), some(broker, 1, scheduled_job), some(broker, 3, client="acme")

    assert rtq.jobs.filter(client="acme").cancel() == 3
    assert rtq.jobs.filter(state="running").cancel() == 1
    assert rtq.jobs.filter(state="scheduled").run_now() == 1
    assert rtq.jobs.filter(queue=QUEUE).requeue() == 4
    assert rtq.jobs.filter(state="queued").cancel() == 5
    some(broker, 2, dead_job)
    with pytest.raises(ValueError, match="Queue nowhere is not one of the settings"):
        rtq.jobs.requeue(to="nowhere")
    assert rtq.jobs.filter("state:dead").discard() == 2
    assert rtq.jobs.filter(state="dead").count() == 0


def test_one_job(broker):
    job = queued_job(broker)

    assert rtq.job(job.id).details().state == "queued"
    assert rtq.job(job.id).cancel() == "cancelled"
    with pytest.raises(WrongState):
        rtq.job(job.id).run_now()
    with pytest.raises(JobNotFound):
        rtq.job("nothing").details()


def test_a_queue_is_paused_limited_and_purged(broker):
    some(broker, 3)
    queue = rtq.queues[QUEUE]

    assert QUEUE in rtq.queues.names()
    assert [each.name for each in rtq.queues] == rtq.queues.names()
    assert (QUEUE in rtq.queues, "nowhere" in rtq.queues) == (True, False)
    assert (queue.pause(), queue.pause(), queue.is_paused, queue.resume(), queue.is_paused) == (
        True,
        False,
        True,
        True,
        False,
    )
    queue.limit(max_running=3)
    queue.limit_clients(max_running=2)
    assert [limits["max_running"].value for limits in (queue.limits().limits, queue.limits().default)] == [3, 2]
    assert (queue.details().queued, queue.jobs.count(), queue.purge(), queue.details().queued) == (3, 3, 3, 0)


def test_a_client_is_paused_limited_and_purged(broker):
    some(broker, 2, client="acme"), some(broker, 1)
    client = rtq.clients["acme"]

    assert (client.pause(by="eve"), client.pause(QUEUE)) == ([QUEUE], [])
    assert [(each.queue, each.queued, each.pause.by) for each in client.in_queues()] == [(QUEUE, 2, "eve")]
    assert client.resume() == [QUEUE]
    client.limit(max_running=1)
    assert rtq.queues[QUEUE].limits().clients["acme"].limits["max_running"].value == 1
    assert (client.jobs.count(), client.purge(), rtq.jobs.count()) == (2, 2, 1)


def test_a_client_that_no_job_can_have_is_neither_paused_nor_limited(redis, broker):
    client = rtq.clients["x" * 201]
    for act in (client.pause, lambda: client.limit(max_running=1)):
        with pytest.raises(InvalidTask, match="at most 200 printable characters"):
            act()
    assert client.resume() == []


def test_nothing_is_left_of_a_client_that_leaves(broker):
    outcome, keys = write_succeeded("charge", b"acme", 1, 0.1, "{}"), broker.keys.of(QUEUE)
    running = claimed_job(broker, client="acme")
    settle(broker, "ack", over := claimed_job(broker, client="acme"), outcome=outcome)
    beside = [keys.log_of(over.id), keys.steps + over.id.encode()]
    broker.redis.execute([("RPUSH", beside[0], "line"), ("HSET", beside[1], "step one", "1 1 1")])
    for client in ("acme", "other"):
        dead_job(broker, client=client)
    for client in ("acme", "other"):
        some(broker, 2, client=client), some(broker, 2, scheduled_job, client=client)
        queued_job(broker, client=client, queue="low")
    for flow_id, client in (("a" * 12, "acme"), ("b" * 12, "other")):
        begun_flow(broker, {"size": 1, "client": client}, {"after": "0"}, client=client, flow_id=flow_id)

    assert rtq.clients["acme"].erase() == 9  # with a workflow and its job

    assert [job.id for job in rtq.jobs.filter(client="acme")] == [running.id]
    assert rtq.jobs.filter(client="other").count() == 7
    assert [flow.id for flow in rtq.workflows()] == ["b" * 12]
    assert broker.redis.execute_one(("EXISTS", *beside)) == 0
    assert rtq.clients["acme"].erase() == 0
    with pytest.raises(ValueError, match="a client that has a name"):
        rtq.clients[""].erase()


def test_a_client_is_purged_in_however_many_queues(broker):
    names = [f"a-queue-with-a-long-name-{number}" for number in range(40)]
    broker.register_queues(names)
    queued_job(broker, client="acme", queue=names[-1])

    assert rtq.jobs.filter(queue=names).filter(client="acme").count() == 1
    assert rtq.clients["acme"].purge() == 1


def test_a_task_is_paused_and_a_worker_asked(broker):
    task = rtq.tasks["tests.app.tasks.note"]
    claimed_job(broker)

    assert (task.pause(by="eve"), task.pause(), task.resume(QUEUE)) == ([QUEUE], [], [QUEUE])
    assert task.jobs.count() == 0
    assert [worker.name for worker in rtq.workers] == [WORKER]
    for ask in (rtq.workers["gone"].quiet, rtq.workers["gone"].wake, rtq.workers["gone"].stop):
        with pytest.raises(WorkerNotFound):
            ask()


def test_the_rest_can_be_listed(broker):
    assert rtq.workflows() == []
    assert isinstance(rtq.schedules(), list)
    assert rtq.queues[QUEUE].pause()
    assert "queue_paused" in {incident.kind for incident in rtq.incidents()}


@pytest.mark.parametrize("noun", [nouns.Jobs, nouns.OneJob, nouns.Queue, nouns.Queues, nouns.Client, nouns.Worker])
def test_what_waits_for_redis_has_a_twin_for_coroutines(noun):
    names = {name for name, value in inspect.getmembers(noun, inspect.isfunction) if name[0] != "_"}

    assert {name for name in names if f"a{name}" not in names and not hasattr(noun, name[1:])} <= {"filter"}


def test_coroutines_can_do_the_same(broker):
    claimed_job(broker)
    job = queued_job(broker, client="acme")

    async def look():
        assert [each.name async for each in rtq.queues] == [QUEUE]
        assert [each.name async for each in rtq.workers] == [WORKER]
        assert not await rtq.queues[QUEUE].ais_paused()
        found = [each.id async for each in rtq.jobs.filter(client="acme")]
        return found, await rtq.jobs.acount(), (await rtq.job(job.id).adetails()).id, await rtq.queues[QUEUE].apurge()

    assert async_to_sync(look)() == ([job.id], 2, job.id, 1)

"""What a project can rely on in its own quick tests, without a server: fakeredis, with its Lua.

    pip install "fakeredis[lua]"

    # tests/fake.py
    SERVER = fakeredis.FakeServer()
    def redis():
        return fakeredis.FakeRedis(server=SERVER)

    RTQ = {"REDIS": "tests.fake.redis"}

Relied on: delay(), delay_many(), adelay(), delays and their promotion, the order of clients and priorities, claim, ack,
retry, bury, cancel, requeue, what handles tell. An alias of CACHES works as well, with fakeredis.FakeRedisConnection as
its connection class. Not to be relied on: time-outs, memory limits, lost connections, and a worker's blocking wait.
"""

import asyncio

import pytest
from django.test import override_settings

from django_rtq import JobState, task, workflow
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.worker_broker import for_workers
from django_rtq.workflows import workflow_store
from tests.support.jobs import QUEUE, claim, settle, take_all
from tests.support.single_steps import renew, repair_lanes, trim

WITHOUT = "without fakeredis and lupa nobody knows whether quick tests of projects work: pip install 'fakeredis[lua]'"
fakeredis = pytest.importorskip("fakeredis", reason=WITHOUT)
pytest.importorskip("lupa", reason=WITHOUT)

_servers = []


def fake():
    """The factory that the settings name."""
    return fakeredis.FakeRedis(server=_servers[-1])


@task(client=lambda who, **_: who)
def note(who, number=0):
    return who, number


def by_alias(options, backend):
    return {
        "RTQ": {"REDIS": "fake", "DB": 1},
        "CACHES": {"fake": {"BACKEND": backend, "LOCATION": f"redis://{id(_servers)}:6379/0", "OPTIONS": options}},
    }


WAYS = {
    "factory": lambda: {"RTQ": {"REDIS": "tests.test_fakeredis.fake"}},
    "django": lambda: by_alias(
        {"connection_class": fakeredis.FakeRedisConnection}, "django.core.cache.backends.redis.RedisCache"
    ),
    "django-redis": lambda: by_alias(
        {"CONNECTION_POOL_KWARGS": {"connection_class": fakeredis.FakeRedisConnection}},
        "django_redis.cache.RedisCache",
    ),
}


@pytest.fixture(params=WAYS)
def broker(request):
    _servers.append(fakeredis.FakeServer())
    with override_settings(**WAYS[request.param]()):
        broker = for_workers(get_broker())
        broker.redis.execute_one(("FLUSHALL",))
        yield broker
        broker.close()


def test_calls_leave_jobs_in_turns_of_clients(broker):
    handle = note.delay("a", 1)
    note.delay_many([(("a", 2), {}), (("b", 3), {})])
    asyncio.run(note.using(priority=5).adelay("c", number=4))

    assert handle.state is JobState.QUEUED
    assert [(job.client, job.args, job.kwargs) for job in take_all(broker)] == [
        ("c", ["c"], {"number": 4}),
        ("a", ["a", 1], {}),
        ("b", ["b", 3], {}),
        ("a", ["a", 2], {}),
    ]


def test_what_keeps_a_queue_alive_runs_too(broker):
    note.delay("a")
    claim(broker)

    assert renew(broker, [QUEUE], ["w2"])[1] == set()
    assert broker.reclaim(QUEUE)[1] == []
    assert (trim(broker, QUEUE), repair_lanes(broker, QUEUE)) == (0, 0)
    assert settle(broker, "release", *take_all(broker, worker="w2")) == []


def test_a_workflow_that_heartbeats_look_after_goes_on(broker):
    with workflow("notes") as flow:
        flow.after(flow.map(note, ["a", "b"])).add(note, "c")
    settle(broker, "ack", *take_all(broker), worker="taker")

    workflow_store(broker).sweep([QUEUE])

    assert [job.args for job in take_all(broker)] == [["c"]]
    assert flow.handle.progress().done == 2

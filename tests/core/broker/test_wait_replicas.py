"""RTQ["WAIT_REPLICAS"]: delay() returns when a replica has the job, or says that none has it."""

import asyncio
import pickle

import pytest
import redis as redis_py
from django.apps import apps
from django.db import transaction
from django.test import override_settings
from redis.exceptions import NoScriptError

from django_rtq import NotReplicated, QueueFull
from django_rtq.core.broker import enqueue_calls
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.redis.client import mended
from django_rtq.core.broker.redis.commands import with_dependent
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.settlement import Settlement
from django_rtq.core.broker.worker_broker import for_workers
from testproject.redis_server import PrivateRedis
from tests.app import tasks, unique_tasks
from tests.support.apps import needs
from tests.support.jobs import QUEUE, new_job
from tests.support.redis_server import Redis
from tests.support.waiting import wait_until

pytestmark = pytest.mark.long

WORKER = "w1"


@pytest.fixture(scope="module")
def servers():
    """A master, which knows all scripts, and its replica."""
    with PrivateRedis() as master, PrivateRedis(arguments=["--replicaof", "127.0.0.1", str(master.port)]) as replica:
        with Redis.from_url(master.url) as client:
            client.load_scripts()
        yield master, replica


@pytest.fixture
def replica(servers):
    """A client of the replica, which is in step with its master."""
    with redis_py.Redis(port=servers[1].port, decode_responses=True) as client:
        wait_until(lambda: client.info("replication")["master_link_status"] == "up")
        yield client


@pytest.fixture
def with_settings(servers, replica):
    """The broker of this process with these settings."""
    entered = []

    def use(**options):
        settings = override_settings(RTQ={"REDIS": servers[0].url, "WAIT_REPLICAS": 1, "LEASE_SECONDS": 60, **options})
        settings.enable()
        entered.append(settings)
        return for_workers(get_broker())

    yield use
    for settings in reversed(entered):
        get_broker().close()
        settings.disable()
    with redis_py.Redis(port=servers[0].port) as client:
        client.flushall()


@pytest.fixture
def broker(with_settings, monkeypatch):
    """The broker while the replica answers."""
    monkeypatch.setattr(enqueue_calls, "PATIENCE_SECONDS", 60.0)
    return with_settings(SOCKET_TIMEOUT=120)


@pytest.fixture
def alone(broker, with_settings, servers):
    """The broker while the replica hangs. The queue is known already."""
    broker.enqueue(QUEUE, [new_job()])
    servers[1].pause()
    yield with_settings(SOCKET_TIMEOUT=0.4)
    servers[1].resume()


def stored(broker, queue=QUEUE):
    """The ids of all jobs of a queue."""
    return {job_id.decode() for job_id in broker.redis.execute_one(("HKEYS", broker.keys.of(queue).jobs))}


def test_delay_returns_when_the_replica_has_the_job(broker, replica, round_trips):
    for number in range(20):
        job = tasks.note.delay(str(number))
        assert replica.hexists(broker.keys.of(QUEUE).jobs, job.id)

    assert round_trips[-1] == ["EVALSHA enqueue_many", "WAIT"]


def test_without_the_setting_nothing_waits(with_settings, round_trips):
    with_settings(WAIT_REPLICAS=0)
    tasks.note.delay("x")
    tasks.note.delay_many([(("y",), {})] * 3)

    assert not [names for names in round_trips if "WAIT" in names]


def test_while_the_replica_hangs_delay_stores_the_job_and_says_so(alone):
    with pytest.raises(NotReplicated, match=r"^Stored, not replicated yet: 0 of 1 replicas had it in time\.") as caught:
        tasks.note.delay("x")

    (handle,) = caught.value.handles
    assert handle.state == "queued"
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.handles) == (str(caught.value), [handle])


@pytest.mark.parametrize("unique", [False, True])
def test_delay_many_sends_all_jobs_and_has_the_handles_of_all(alone, unique, monkeypatch, round_trips):
    monkeypatch.setattr(enqueue_calls, "CALLS_IN_FLIGHT", 1)
    task, most = (unique_tasks.keep_up, 100) if unique else (tasks.note, 500)
    calls = [((f"job-{n}", *([1] if unique else [])), {}) for n in range(2 * most + 1)]
    with pytest.raises(NotReplicated) as caught:
        task.delay_many(calls)

    assert len({handle.id for handle in caught.value.handles}) == len(calls)
    assert {handle.id for handle in caught.value.handles} < stored(alone)
    assert [names[-1] for names in round_trips[-4:-1]] == ["WAIT"] * 3


def test_coroutines_get_it_each_for_its_own_job(alone):
    async def main():
        return await asyncio.gather(*(tasks.note.adelay(str(n)) for n in range(3)), return_exceptions=True)

    errors = asyncio.run(main())

    assert [type(error) for error in errors] == [NotReplicated] * 3
    assert {error.handles[0].id for error in errors} < stored(alone)


def test_a_full_queue_is_said_first(alone, with_settings):
    with_settings(SOCKET_TIMEOUT=0.4, QUEUES={QUEUE: {"max_waiting": 2}})
    with pytest.raises(QueueFull) as caught:
        tasks.note.delay_many([(("a",), {}), (("b",), {})])

    assert [handle is not None for handle in caught.value.handles] == [True, False]


def test_who_waits_for_room_hears_of_replicas_at_the_end(alone, with_settings):
    waiting = with_settings(SOCKET_TIMEOUT=0.4, QUEUES={QUEUE: {"max_waiting": 2, "on_full": "wait"}})
    waiting.enqueue(QUEUE, [new_job("second")])
    waiting.sign_on([QUEUE], WORKER)
    original, tries = waiting.enqueue, []

    def enqueue(*args, **options):
        if tries:
            waiting.claim(WORKER, [QUEUE], 1)
        tries.append(args)
        return original(*args, **options)

    waiting.enqueue = enqueue
    with pytest.raises(NotReplicated) as caught:
        tasks.note.delay("third")

    assert len(tries) == 2
    assert caught.value.handles[0].id in stored(waiting)


@needs("databases")
def test_the_outbox_counts_it_as_stored(alone, with_settings, database, caplog):
    with_settings(SOCKET_TIMEOUT=0.4, OUTBOX=True)
    with transaction.atomic():
        handles = [tasks.note.delay("a"), tasks.note.delay("b")]

    assert not apps.get_model("django_rtq", "OutboxJob").objects.exists()
    assert {handle.id for handle in handles} < stored(get_broker())
    assert caplog.messages == [
        "what was stored could get lost with the master of Redis: 0 of 1 replicas had it in time"
    ]


def settle(broker, job_id):
    """Acknowledge a job, and claim the next one. Returns its id."""
    settlement = Settlement()
    settlement.add_ack(job_id, 60_000, b'{"state":"succeeded"}')
    result = broker.claim(WORKER, [QUEUE], 1, settlements={QUEUE: settlement})
    assert (bool(settlement), result.error, result.stale) == (False, None, [])
    return result.claimed[0].ids[0]


def claim_first(broker):
    """Claim the first of some jobs. Returns its id."""
    broker.enqueue(QUEUE, [new_job() for _ in range(4)])
    broker.sign_on([QUEUE], WORKER)
    return broker.claim(WORKER, [QUEUE], 1).claimed[0].ids[0]


def test_outcomes_wait_for_replicas_and_claims_do_not(broker, replica, round_trips):
    first = claim_first(broker)
    assert round_trips[-1] == ["EVALSHA claim"]

    settle(broker, first)

    assert round_trips[-1] == ["EVALSHA claim", "WAIT"]
    assert not replica.hexists(broker.keys.of(QUEUE).jobs, first)


def test_a_worker_goes_on_and_logs_it_once_until_it_is_over(alone, servers, caplog, monkeypatch):
    first = claim_first(alone)
    second = settle(alone, first)
    third = settle(alone, second)
    assert len(caplog.messages) == 1
    assert alone._replicas.wait_again()[-1] == enqueue_calls.IMPATIENCE_MS

    servers[1].resume()
    wait_until(lambda: alone.redis.execute((("PING",), ("WAIT", 1, 100)))[1] == 1)
    monkeypatch.setattr(alone._replicas, "wait_again", lambda: ("WAIT", 1, 60_000))
    settle(alone, third)
    assert not alone._replicas._are_missing


def test_a_server_that_refuses_to_wait_has_stored_the_jobs(broker, with_settings, servers):
    with redis_py.Redis(port=servers[0].port) as client:
        client.execute_command("ACL", "SETUSER", "nowait", "on", "nopass", "~*", "&*", "+@all", "-wait")
    limited = with_settings(REDIS=f"redis://nowait:x@127.0.0.1:{servers[0].port}/0")
    with pytest.raises(NotReplicated, match=r"did not wait for replicas: .*wait") as caught:
        tasks.note.delay("x")

    assert caught.value.handles[0].id in stored(limited)


def test_what_is_sent_again_is_waited_for_again():
    """A reply to WAIT says nothing of a script that ran later, or over another connection."""
    script = SCRIPTS["enqueue_many"]
    call, wait = ("EVALSHA", script.sha, 0), ("WAIT", 1, 100)
    commands = [call, wait, ("PING",), b"*3\r\n$4\r\nWAIT\r\n", call, wait]
    assert with_dependent([4], commands) == [4, 5]
    assert with_dependent([0], commands) == [0, 1, 3, 5]

    steps = mended([call, wait], [NoScriptError("NOSCRIPT"), 1], None)
    assert next(steps) == [("SCRIPT", "LOAD", script.text), call, wait]
    with pytest.raises(StopIteration) as end:
        steps.send([b"sha", [b"ok"], 0])
    assert end.value.value == [[b"ok"], 0]

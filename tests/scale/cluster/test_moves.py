"""A slot that moves to another master key by key: nothing is lost, and nobody is refused."""

import asyncio

import pytest
import redis as redis_py
from django.test import override_settings
from redis.exceptions import AskError, TryAgainError

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.redis.blocking_reader import BlockingReader
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.settlement import Settlement
from django_rtq.core.broker.worker_broker import for_workers
from django_rtq.exceptions import BrokerError
from tests.app import tasks
from tests.support.jobs import QUEUE, new_job
from tests.support.redis_cluster import SLOT, PrivateCluster, ask, owner_seen_by
from tests.support.waiting import start_thread, wait_until

WORKER = "w1"


@pytest.fixture(scope="module")
def movable():
    """A Cluster whose slot these tests move."""
    with PrivateCluster() as cluster:
        yield cluster


@pytest.fixture
def broker(movable):
    """The broker of this process, whose Redis is that Cluster."""
    with override_settings(RTQ={"REDIS": {"cluster": movable.addresses[:2]}}):
        broker = for_workers(get_broker())
        yield broker
        broker.close()
    for server in movable.servers:
        ask(server, "FLUSHALL")


@pytest.fixture
def half_moved(broker, movable):
    """The masters between which the slot moves, with some keys on either side. Both know all scripts."""
    broker.sign_on([QUEUE], WORKER)
    broker.enqueue(QUEUE, [new_job(f"job-{n}", client=f"c{n}") for n in range(5)])
    source, target = movable.begin_move()
    movable.move_keys(source, target, most=5)
    for server in (source, target):
        for script in SCRIPTS.values():
            ask(server, "SCRIPT LOAD", script.text)
    yield source, target
    movable.move_keys(source, target)
    movable.end_move(source, target)


def ask_the_target(server, command):
    """The reply of the new master to a client that does as the old one says."""
    with redis_py.Redis(port=server.port, protocol=2, single_connection_client=True) as client:
        client.execute_command("ASKING")
        return client.execute_command(*command)


@pytest.mark.parametrize("several", [False, True])
def test_neither_master_runs_a_script_while_the_slot_moves(broker, keys, half_moved, several):
    source, target = half_moved
    # Nobody looks at the arguments.
    commands = [
        script.call_many([keys], ()) if script.name == "claim" else script.call(keys, (), worker=WORKER)
        for script in SCRIPTS.values()
    ]
    if several:
        queues = [keys, broker.keys.of("low")]
        commands = [SCRIPTS[name].call_many(queues, ()) for name in ("claim", "requeue")]

    for command in commands:
        with pytest.raises((AskError, TryAgainError)):
            ask(source, *command)
        with pytest.raises(TryAgainError):
            ask_the_target(target, command)


def test_with_one_declared_name_the_new_master_would_run_it_without_its_data(broker, half_moved):
    source, target = half_moved
    script, keys = SCRIPTS["enqueue"], broker.keys.of(QUEUE)
    arguments = script.call(keys, ("f" * 32, "0", "3", "", "", "", "{}"))[5:]
    command = ("EVALSHA", script.sha, 1, keys.tag, *arguments)

    with pytest.raises(AskError):
        ask(source, *command)
    assert ask_the_target(target, command) == b"ok"
    ask_the_target(target, ("HDEL", keys.jobs, "f" * 32))


def run_jobs(broker):
    """Claim some jobs, and say that each has returned 7. Returns how many."""
    (claimed,) = broker.claim(WORKER, [QUEUE], 10).claimed
    settlement = Settlement()
    for job_id in claimed.ids:
        settlement.add_ack(job_id, 60_000, b'{"state":"succeeded","result":7}')
    broker.settle(WORKER, QUEUE, settlement)
    return len(claimed.ids)


def test_a_reader_that_blocks_goes_with_the_slot(broker, movable):
    reader = BlockingReader(broker.connection_settings, [broker.keys.of(QUEUE).work_signal], role="worker-wait")
    assert not reader.wait(0)
    source, target = movable.move()

    broker.enqueue(QUEUE, [new_job("job")])

    wait_until(lambda: reader.wait(0.1))
    assert owner_seen_by(source) == target.port
    reader.close()


def test_a_wait_for_the_end_of_a_job_goes_with_the_slot(broker, movable):
    handle = tasks.note.delay("x")
    results = []
    waiter = start_thread(lambda: results.append(handle.get(timeout=30)))
    wait_until(lambda: b"rtq:wait" in ask(movable.owner(), "CLIENT LIST"))
    movable.move()

    broker.sign_on([QUEUE], WORKER)
    run_jobs(broker)
    waiter.join()

    assert results == [7]


def test_coroutines_enqueue_and_wait_while_the_slot_moves(broker, movable):
    async def main():
        handle = await tasks.note.adelay("x")
        waiting = asyncio.create_task(handle.aget(timeout=30))
        while b"rtq:wait" not in await asyncio.to_thread(ask, movable.owner(), "CLIENT LIST"):
            await asyncio.sleep(0.01)
        source, target = movable.begin_move()
        more = asyncio.create_task(tasks.note.adelay("y"))
        await asyncio.to_thread(movable.move_keys, source, target)
        movable.end_move(source, target)
        await more
        broker.sign_on([QUEUE], WORKER)
        return await asyncio.to_thread(run_jobs, broker), await waiting

    assert asyncio.run(main()) == (2, 7)


def test_a_move_that_takes_longer_than_a_command_may_is_said(movable, broker):
    broker.enqueue(QUEUE, [new_job("job")])
    source, target = movable.begin_move()
    with override_settings(RTQ={"REDIS": {"cluster": movable.addresses}, "SOCKET_TIMEOUT": 0.2}):
        impatient = for_workers(get_broker())
        with pytest.raises(BrokerError, match=f"slot of the queues moves between nodes of the Cluster.* fix .{SLOT} "):
            impatient.enqueue(QUEUE, [new_job("other")])
        impatient.close()
    movable.move_keys(source, target)
    movable.end_move(source, target)

    assert broker.enqueue(QUEUE, [new_job("later")]) == ["ok"]

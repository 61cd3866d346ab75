"""A coroutine has what a request has under ASGI: a thread and connections of its own, if it uses the ORM."""

import asyncio
import threading

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.db import connection, connections
from django.db.backends.sqlite3.base import DatabaseWrapper

from django_rtq import constant, signals, task
from django_rtq.core.worker.process.process import runner_class
from django_rtq.core.worker.shared_memory import SharedState
from tests.core.worker.claimed_runs import claim_unread
from tests.support.jobs import receiving
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
AT_ONCE = constant(0)
seen, gates = [], {}


@pytest.fixture(autouse=True)
def closed_in_threads(monkeypatch):
    """Django leaves connections to a database in memory open, also where a thread ends, which Python 3.13 tells."""
    in_memory, main = DatabaseWrapper.is_in_memory_db, threading.main_thread()
    monkeypatch.setattr(
        DatabaseWrapper, "is_in_memory_db", lambda db: threading.current_thread() is main and in_memory(db)
    )


@pytest.fixture(autouse=True)
def nothing_seen():
    seen.clear()
    gates.clear()


@pytest.fixture(params=[1, 3], ids=["one slot", "three slots"])
def runner(request, broker, session):
    yield from runner_of(broker, session, request.param)


@pytest.fixture
def wide_runner(broker, session):
    yield from runner_of(broker, session, 3)


def runner_of(broker, session, slots):
    runner = runner_class(slots)(broker.config, SharedState(slots), session)
    yield runner
    runner.stop()


def run(session, runner, *jobs):
    runner.run(claim_unread(session, len(jobs)))
    wait_until(lambda: runner.is_idle)


def query():
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    seen.append((threading.current_thread(), connections["default"]))


def foreign_threads():
    return {thread for thread in threading.enumerate() if not thread.name.startswith("rtq-")}


async def pass_gate(name):
    while name not in gates:
        await asyncio.sleep(0.001)


@task
async def between_neighbours():
    """Its rows are open while a neighbour ends."""
    names = []
    async for group in Group.objects.order_by("pk").aiterator(chunk_size=1):
        names.append(group.name)
        if len(names) == 1:
            gates["neighbour"] = True
            await pass_gate("neighbour has ended")
    seen.append(names)


@task
async def neighbour():
    await pass_gate("neighbour")
    await Group.objects.acount()


@task
async def queries(number):
    await sync_to_async(query)()
    gates[number] = True
    await pass_gate(3 - number)
    await sync_to_async(query)()


@task
async def plain():
    seen.append(foreign_threads())


@task(max_attempts=2, backoff=AT_ONCE, max_crashes=3)
async def ends(how):
    if how != "well":
        raise ValueError(how)


@task(max_crashes=0)
async def runs_once():
    pass


def test_no_neighbour_closes_its_connection(wide_runner, session):
    for name in "abc":
        Group.objects.create(name=name)
    between_neighbours.delay()
    job = neighbour.delay()

    wide_runner.run(claim_unread(session, 2))
    wait_until(lambda: job.id.encode() not in session.held)
    gates["neighbour has ended"] = True
    wait_until(lambda: wide_runner.is_idle)

    assert seen == [["a", "b", "c"]]


def test_those_that_run_beside_each_other_have_a_thread_and_a_connection_each(wide_runner, session):
    """Queries that wait for each other show that none waits for the thread of the other."""
    run(session, wide_runner, queries.delay(1), queries.delay(2))

    assert len(seen) == 4
    assert (len({thread for thread, _ in seen}), len({used for _, used in seen})) == (2, 2)


def test_who_does_not_use_the_orm_gets_no_thread(runner, session):
    before = foreign_threads()
    run(session, runner, plain.delay())

    assert seen == [before]


def test_its_thread_ends_with_it(runner, session):
    before = foreign_threads()
    gates[2] = True
    run(session, runner, queries.delay(1))

    wait_until(lambda: foreign_threads() == before)


@pytest.mark.parametrize("name", ["job_started", "job_succeeded", "job_retried", "job_buried"])
@pytest.mark.parametrize("is_async", [False, True], ids=["function", "coroutine function"])
def test_receivers_may_use_the_database(runner, session, name, is_async):
    def write(**kwargs):
        Group.objects.create(name=name)

    async def awrite(**kwargs):
        await Group.objects.acreate(name=name)

    receiver, signal = awrite if is_async else write, getattr(signals, name)
    with receiving(receiver, signal):
        max_attempts = 1 if name == "job_buried" else 2
        ends.using(max_attempts=max_attempts).delay("well" if name == "job_succeeded" else "badly")
        run(session, runner, 1)

    assert Group.objects.get().name == name


def test_receivers_of_what_may_run_only_once_may_use_it_too(runner, session):
    def write(**kwargs):
        Group.objects.create(name="heard")

    with receiving(write, signals.job_succeeded):
        run(session, runner, runs_once.delay())

    assert Group.objects.get().name == "heard"

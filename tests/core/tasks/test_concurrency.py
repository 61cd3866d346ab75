"""Calls of delay() from many threads, and from processes that were forked."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from django_rtq import task
from django_rtq.core.broker.brokers import forget_brokers, get_broker
from tests.support.jobs import take_all

THREADS, EACH = 12, 40
HANGS_SECONDS = 60


@task(client=lambda who, **_: who)
def note(who, number):
    return who, number


@pytest.fixture
def forked():
    """Run functions in forked processes; answers how many of them failed. A child that hangs is ended."""
    children = []

    def fork(function, *args):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                signal.alarm(HANGS_SECONDS)
                function(*args)
                code = 0
            finally:
                os._exit(code)
        children.append(child)

    def failures():
        return sum(os.waitpid(children.pop(), 0)[1] != 0 for _ in range(len(children)))

    fork.failures = failures
    yield fork
    failures()


def numbers_of(broker):
    """Who left which numbers, in order."""
    found = {}
    while jobs := take_all(broker, wanted=500):
        for job in jobs:
            assert job.client == str(job.args[0])
            found.setdefault(job.args[0], []).append(job.args[1])
    return found


def leave(who, calls=EACH):
    return [note.delay(who, number).id for number in range(calls)]


def test_many_threads_leave_jobs_at_once(redis, broker):
    forget_brokers()  # so that they all begin with making one
    start = threading.Barrier(THREADS)

    def run(who):
        start.wait()
        return leave(who)

    with ThreadPoolExecutor(THREADS) as threads:
        ids = [job_id for part in threads.map(run, range(THREADS)) for job_id in part]
    most = len(redis.clients_of_ours())
    get_broker().close()

    assert len(set(ids)) == THREADS * EACH
    assert numbers_of(broker) == {who: list(range(EACH)) for who in range(THREADS)}
    assert most <= THREADS + 1


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_forked_processes_leave_jobs_beside_their_parent(broker, forked):
    leave("parent", 1)  # a connection that the children inherit, and must not use

    for who in range(3):
        forked(leave, who)
    leave("parent")

    assert forked.failures() == 0
    numbers = list(range(EACH))
    assert numbers_of(broker) == {0: numbers, 1: numbers, 2: numbers, "parent": [0, *numbers]}


# redis-py 8 would take a lock of its pool in the child, which a thread may have held that is no more.
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_in_the_midst_of_calls_of_other_threads_leaves_jobs(broker, forked):
    stop = threading.Event()

    def keep_on(who):
        number = 0
        while not stop.is_set():
            note.delay(who, number)
            number += 1
        return number

    with ThreadPoolExecutor(2) as threads:
        busy = [threads.submit(keep_on, who) for who in ("a", "b")]
        for who in range(5):
            forked(leave, who, 5)
        failures = forked.failures()
        stop.set()
        counts = {who: future.result() for who, future in zip("ab", busy, strict=True)}

    assert failures == 0
    assert numbers_of(broker) == {
        **{who: list(range(5)) for who in range(5)},
        **{who: list(range(count)) for who, count in counts.items()},
    }

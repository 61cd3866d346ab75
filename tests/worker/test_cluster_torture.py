"""A Cluster under load whose slot moves again and again, and whose masters are killed: no job is lost.

With RTQ_TEST_NIGHTLY=1 the slot moves for ten minutes, and twenty masters are killed. RTQ_CLUSTER_SECONDS and
RTQ_CLUSTER_KILLS say other numbers. The server is the redis-server on PATH.
"""

import os
import threading
import time
from collections import Counter
from statistics import median

import pytest
from django.test import override_settings

from django_rtq.broker.brokers import get_broker
from django_rtq.exceptions import BrokerUnavailable
from tests.app import tasks
from tests.support.jobs import QUEUE
from tests.support.nightly import IS_NIGHTLY
from tests.support.redis_cluster import PrivateCluster, ask
from tests.support.waiting import PATIENCE, wait_until

SECONDS = float(os.environ.get("RTQ_CLUSTER_SECONDS", "600" if IS_NIGHTLY else "4"))
KILLS = int(os.environ.get("RTQ_CLUSTER_KILLS", "20" if IS_NIGHTLY else "1"))
PAUSE_SECONDS = 0.003  # between two jobs, and between two keys that move


class Load(threading.Thread):
    """Enqueues jobs one by one until it is told to stop."""

    def __init__(self):
        super().__init__()
        self._is_over = threading.Event()
        self.accepted = {}  # name -> when delay() returned
        self.errors = []

    def run(self):
        number = 0
        while not self._is_over.is_set():
            number += 1
            try:
                tasks.note.delay(f"job-{number}")
                self.accepted[f"job-{number}"] = time.monotonic()
            except BrokerUnavailable as error:
                self.errors.append(error)
            self._is_over.wait(PAUSE_SECONDS)

    def stop(self):
        """Returns the names of the jobs that were accepted."""
        self._is_over.set()
        self.join()
        return list(self.accepted)


@pytest.fixture
def begin(request, rtq_worker, journal):
    """Start a Cluster, workers on it and a load. Returns Cluster and load."""
    stack = []

    def begin(**options):
        cluster = PrivateCluster(**options)
        request.addfinalizer(cluster.stop)
        cluster.start()
        url = f"redis+cluster://{','.join(cluster.addresses[:2])}"
        settings = override_settings(RTQ={"REDIS": url})
        settings.enable()
        load = Load()
        stack.extend((load, settings))
        rtq_worker("--processes", 2, url=url, is_ready=False, LEASE_SECONDS=10)
        load.start()
        wait_until(journal.starts)
        return cluster, load

    yield begin
    if stack:
        load, settings = stack
        load.stop()
        get_broker().close()
        settings.disable()


def wait_until_all_is_done():
    broker = get_broker()
    wait_until(lambda: not broker.redis.execute_one(("HLEN", broker.keys.of(QUEUE).jobs)), 3 * PATIENCE)


def test_a_slot_that_moves_again_and_again_loses_no_job_and_refuses_nobody(begin, journal):
    cluster, load = begin()
    until, moves, pause = time.monotonic() + SECONDS, 0, threading.Event()
    while time.monotonic() < until or moves < 3:
        accepted, moves = len(load.accepted), moves + 1
        cluster.move(between=lambda: pause.wait(PAUSE_SECONDS))
        wait_until(lambda accepted=accepted: len(load.accepted) > accepted + 50)
    names = load.stop()
    wait_until_all_is_done()

    print(f"{moves} moves, {len(names)} jobs accepted, {len(load.errors)} refused")  # noqa: T201
    assert load.errors == []
    assert Counter(journal.names()) == Counter(names)


def test_masters_that_are_killed_one_after_the_other(begin, journal):
    cluster, load = begin(replicas=1)
    waits = []
    for _ in range(KILLS):
        wait_until(lambda: all(map(cluster.is_ready, cluster.servers)), 3 * PATIENCE)
        waits.append(kill_master(cluster, load, journal))
    names = load.stop()
    wait_until_all_is_done()

    lost = set(names) - set(journal.names("end"))
    columns = zip(("promotion", "accepted", "started"), zip(*waits, strict=True), strict=True)
    seconds = ", ".join(f"{what} after {median(times):.2f} s, at most {max(times):.2f}" for what, times in columns)
    print(f"{KILLS} kills, {len(names)} jobs accepted, {len(lost)} lost; {seconds}")  # noqa: T201
    assert lost == set()


def kill_master(cluster, load, journal):
    """Kill the master of our slot and start it again. Returns the seconds until its replica was promoted, and from then
    on until the first job was accepted, and until the first one was started."""
    master = cluster.owner()
    replica = next(s for s in cluster.servers if f"master_port:{master.port}\r".encode() in ask(s, "INFO replication"))
    began = time.monotonic()
    master.kill()
    killed = time.monotonic()
    wait_until(lambda: b"role:master" in ask(replica, "INFO replication"))
    promoted = time.monotonic()
    wait_until(lambda: after(killed, load.accepted.values()))
    (accepted, *_) = after(killed, load.accepted.values())
    wait_until(lambda: after(promoted, (entry.at for entry in journal.entries("start"))))
    (started, *_) = after(promoted, (entry.at for entry in journal.entries("start")))
    master.start()
    return promoted - began, max(0.0, accepted - promoted), started - promoted


def after(moment, times):
    """Those of the times that come later."""
    return [time for time in tuple(times) if time > moment]

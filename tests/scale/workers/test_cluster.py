"""Workers on a Redis Cluster: the slot of their keys moves to another master, and its master dies."""

import threading
from contextlib import suppress

import pytest
from django.test import override_settings

from django_rtq import JobState
from django_rtq.core.broker.brokers import get_broker
from django_rtq.exceptions import BrokerUnavailable
from tests.app import tasks
from tests.support.redis_cluster import PrivateCluster, offset_of
from tests.support.waiting import wait_until


@pytest.fixture
def cluster():
    """A Cluster of this test alone. Each master has a replica."""
    with PrivateCluster(replicas=1) as cluster:
        yield cluster


@pytest.fixture
def start(rtq_worker, cluster):
    """Start a worker, and let this process use the same Cluster."""
    url = f"redis+cluster://{','.join(cluster.addresses[:2])}"
    with override_settings(RTQ={"REDIS": url}):
        yield lambda *arguments, **options: rtq_worker(*arguments, url=url, is_ready=False, **options)
        get_broker().close()


def enqueue(names, handles):
    """Enqueue jobs one by one, each again and again while Redis is away."""
    for name in names:
        wait_until(lambda name=name: is_enqueued(name, handles))


def is_enqueued(name, handles):
    """Whether Redis took a job."""
    with suppress(BrokerUnavailable):
        handles.append(tasks.note.delay(name))
        return True
    return False


def test_workers_go_with_the_slot_and_with_the_replica_that_is_promoted(start, cluster, journal):
    workers = [start("--processes", 2, LEASE_SECONDS=10), start(LEASE_SECONDS=10)]
    names, handles, pause = [f"moved-{i}" for i in range(300)], [], threading.Event()
    producer = threading.Thread(target=enqueue, args=(names, handles))
    producer.start()
    for _ in range(2):
        ends = journal.ends()
        cluster.move(between=lambda: pause.wait(0.005))
        wait_until(lambda ends=ends: journal.ends() > ends or not producer.is_alive())
    producer.join()
    assert [line for worker in workers for line in worker.log.splitlines() if "cannot reach" in line] == []

    waiting = [f"waiting-{i}" for i in range(300)]
    handles += tasks.sleep.delay_many([((name, 0.02), {}) for name in waiting])
    handles.append(tasks.note.using(run_after=0.5).delay("later"))
    master = cluster.owner()
    stored = offset_of(master)
    wait_until(lambda: sum(offset_of(server) >= stored for server in cluster.servers) > 1)
    master.kill()
    late = [f"late-{i}" for i in range(20)]
    enqueue(late, accepted := [])
    handles += accepted
    wait_until(lambda: {handle.state for handle in handles} == {JobState.SUCCEEDED})

    assert cluster.owner() is not master
    assert set(journal.names("end")) == {*names, *waiting, *late, "later"}
    for worker in workers:
        worker.stop()

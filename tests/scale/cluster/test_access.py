"""The users of docs/scaling.md on a Cluster: what each may do, and what is refused."""

import re
from pathlib import Path

import pytest
from django.test import override_settings

from django_rtq.console.reading.readers import readers_of
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.worker_broker import for_workers
from django_rtq.exceptions import BrokerError
from tests.app import tasks
from tests.support.jobs import QUEUE, claimed_job, scheduled_job
from tests.support.redis_cluster import ask

PAGE = Path(__file__).parents[3] / "docs" / "scaling.md"
RULES = dict(re.findall(r"^ACL SETUSER (\S+) (.*)$", PAGE.read_text(), re.MULTILINE))


@pytest.fixture
def as_user(cluster, redis):
    """The broker of this process with one of the users."""

    def use(name):
        for server in cluster.servers:
            ask(server, "ACL SETUSER", name, "reset", *RULES[name].split())
        source = {"cluster": cluster.addresses[1:], "username": name, "password": "secret"}
        settings = override_settings(RTQ={"REDIS": source, "LEASE_SECONDS": 60})
        settings.enable()
        entered.append(settings)
        return for_workers(get_broker())

    entered = []
    yield use
    for settings in entered:
        get_broker().close()
        settings.disable()
        for server in cluster.servers:
            ask(server, "ACL DELUSER", *RULES)


def test_a_producer_enqueues_and_waits_for_results(as_user):
    as_user("rtq-producer")
    handle = tasks.note.delay("x")
    assert handle.state == "queued"
    with pytest.raises(TimeoutError):
        handle.get(timeout=0.01)
    handle.cancel()

    assert handle.state == "cancelled"


def test_a_worker_does_all_it_has_to(as_user):
    broker = as_user("rtq")
    claimed_job(broker)
    scheduled_job(broker)
    broker.heartbeat([QUEUE], {}, promote=True)
    broker.maintain([QUEUE], promote_calls=1)

    assert readers_of().queues.details([QUEUE])[0].running == 1


def test_who_reads_sees_all_and_changes_nothing(redis, broker, as_user, rtq):
    job = claimed_job(broker)
    scheduled_job(broker)
    as_user("rtq-reader")
    readers = readers_of()

    assert readers.queues.details([QUEUE])[0].running == 1
    assert readers.find(job.id).state == "running"
    assert [worker.name for worker in readers.workers()] == ["w1"]
    assert len(readers.overview.shared().queues) == 1
    with pytest.raises(BrokerError, match="permission"):
        tasks.note.delay("x")
    with pytest.raises(BrokerError, match="permission"):
        rtq.queues[QUEUE].pause()

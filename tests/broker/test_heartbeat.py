"""All that a supervisor does each few seconds, in one round trip."""

import random

import pytest

from django_rtq.broker.redis.client import RedisClient
from django_rtq.broker.redis.commands import name_of
from tests.broker.model.script_calls import SCRIPT_CALLS, prepared
from tests.support.jobs import QUEUE, WORKER, let_fall_due, let_lapse, queued_job, scheduled_job
from tests.support.redis_server import LEASE_SECONDS
from tests.support.snapshots import snapshot

NOTE = {WORKER: {"host": "h", "jobs_done": 3}}


@pytest.fixture
def _worker(broker):
    broker.sign_on([QUEUE, "low"], WORKER)
    let_lapse(broker, WORKER)
    let_lapse(broker, WORKER, queue="low")


def beat(broker, notes=NOTE, *, promote=True):
    """One beat for two queues; answers what the broker does, and where the audits go on."""
    audited = {QUEUE: 0, "low": 0}
    return *broker.heartbeat([QUEUE, "low"], notes, audited, promote=promote), audited


@pytest.mark.usefixtures("_worker")
def test_leases_are_renewed_and_queues_are_named(redis, broker):
    assert beat(broker) == (LEASE_SECONDS, {QUEUE: [], "low": []}, [], set(), {}, False, {QUEUE: 0, "low": 0})

    assert snapshot(redis)["rtq:queues"] == {QUEUE, "low"}


@pytest.mark.usefixtures("_worker")
def test_notes_on_workers_are_for_people_and_go_away(redis, broker):
    beat(broker)

    note = snapshot(redis)["rtq:worker:w1"]
    assert (note["host"], note["jobs_done"]) == ("h", "3")
    assert 0 < redis.ttl(broker.keys.worker(WORKER)) <= 3600


@pytest.mark.usefixtures("_worker")
def test_who_was_noted_is_in_an_index_and_who_was_not_for_long_leaves_it(redis, broker):
    redis.zadd("rtq:workers", {"long gone": 1})

    beat(broker)

    assert redis.zrange("rtq:workers", 0, -1) == [WORKER.encode()]


@pytest.mark.usefixtures("_worker")
@pytest.mark.parametrize("promote", [True, False])
def test_what_is_due_is_promoted_by_who_is_asked_to(redis, broker, promote):
    job = scheduled_job(broker)
    let_fall_due(broker, job)

    _, promoted, *_ = beat(broker, promote=promote)

    assert promoted == ({QUEUE: [job.id], "low": []} if promote else {})
    assert ("scheduled" in snapshot(redis)) is not promote


@pytest.mark.usefixtures("_worker")
def test_it_says_where_the_audit_goes_on(redis, broker):
    for number in range(101):
        queued_job(broker, client=str(number))

    assert beat(broker)[-1] == {QUEUE: 100, "low": 0}


def test_an_audit_goes_along(redis, broker):
    prepared(redis, broker, SCRIPT_CALLS["repair_lanes"])

    beat(broker)

    assert set(snapshot(redis)["ring:0"]) == {"x", "y"}


@pytest.mark.usefixtures("_worker")
def test_a_full_server_refuses_the_notes_but_not_the_leases(redis, broker):
    job = scheduled_job(broker)
    let_fall_due(broker, job)

    with redis.full_memory():
        assert beat(broker)[:2] == (LEASE_SECONDS, {QUEUE: [job.id], "low": []})

    assert "rtq:worker:w1" not in snapshot(redis)


def test_a_worker_can_be_found_before_its_cancel_requests_are_read(broker, monkeypatch):
    """Else nobody wakes its supervisor for a cancellation that comes between the two."""
    sent, execute = [], RedisClient.execute_each

    def recorded(self, commands, **options):
        sent.extend(name_of(command) for command in commands)
        return execute(self, commands, **options)

    monkeypatch.setattr(RedisClient, "execute_each", recorded)
    beat(broker)

    assert sent.index("HSET") < sent.index("EVALSHA renew")


def test_of_many_supervisors_few_repair_and_who_has_begun_goes_on(broker, monkeypatch):
    broker.sign_on([QUEUE], WORKER)
    for number in range(8):
        broker.sign_on([QUEUE], f"other-{number}")
    for number in range(101):
        queued_job(broker, client=str(number))
    monkeypatch.setattr(random, "random", lambda: 0.4)  # 3 of 9
    cursors = {QUEUE: 0}

    def tend():
        broker.heartbeat([QUEUE], NOTE, cursors, promote=True)
        return cursors[QUEUE]

    assert tend() == 100  # it does not know of the others yet
    assert tend() == 0  # it goes on
    assert tend() == 0  # not again
    monkeypatch.setattr(random, "random", lambda: 0.3)
    assert tend() == 100

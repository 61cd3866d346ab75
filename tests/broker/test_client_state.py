"""The jobs of one client in its queues, and its limits."""

from django_rtq.inspector.limits import Limit
from tests.support.jobs import QUEUE, claim, claimed_job, queued_job, retrying_job, scheduled_job


def test_its_jobs_are_counted(broker, inspector):
    retrying_job(broker, client="x")
    queued_job(broker, client="x")
    queued_job(broker, client="x", priority=5)
    queued_job(broker, client="y")
    scheduled_job(broker, client="x")
    queued_job(broker, client="x", queue="low")

    low, default = sorted(inspector.clients.get("x"), key=lambda one: one.queue, reverse=True)

    assert (default.queue, default.queued, default.scheduled, default.running) == (QUEUE, 2, 2, None)
    assert 0 <= default.oldest_seconds < 60
    assert (low.queue, low.queued, low.scheduled) == ("low", 1, 0)
    assert (default.in_force, default.pause, default.is_blocked, default.is_at_limit) == ({}, None, False, False)


def test_its_limits_are_told_with_their_source(broker, inspector):
    inspector.limits.set_default(QUEUE, max_running=1)
    broker.limits.change(QUEUE, {"settings:client:x": "max_running=3"})
    inspector.limits.pause_client(QUEUE, "x", "me")

    (found,) = inspector.clients.get("x", [QUEUE])
    (other,) = inspector.clients.get("y", [QUEUE])

    assert found.own == found.in_force == {"max_running": Limit(value=3, is_from_settings=True)}
    assert found.default == other.in_force == {"max_running": Limit(value=1, is_from_settings=False)}
    assert (found.pause.by, other.pause) == ("me", None)


def test_a_client_at_its_limit_is_told(broker, inspector):
    inspector.limits.set_client(QUEUE, "x", max_running=1)
    claimed_job(broker, client="x")
    queued_job(broker, client="x", priority=5)
    claim(broker)

    (found,) = inspector.clients.get("x", [QUEUE])

    assert (found.running, found.queued, found.is_blocked, found.is_at_limit) == (1, 1, True, True)


def test_a_client_that_nobody_knows(broker, inspector):
    queued_job(broker)

    (found,) = inspector.clients.get("x", [QUEUE])

    assert (found.queued, found.scheduled, found.oldest_seconds, found.is_known) == (0, 0, None, False)

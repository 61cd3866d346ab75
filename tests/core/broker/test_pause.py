"""Nothing of a queue is claimed until it is resumed."""

from tests.support.jobs import QUEUE, claim, claimed_job, queued_job, settle
from tests.support.server_clock import server_ms
from tests.support.snapshots import MS, changes, snapshot


def test_it_is_written_down_since_when(redis, broker, inspector):
    queued_job(broker)
    before, began = snapshot(redis), server_ms(redis)

    assert inspector.pause(QUEUE)

    assert set(changes(before, snapshot(redis))) == {"paused"}
    assert began <= int(snapshot(redis)["paused"]["queue"]) <= server_ms(redis)


def test_the_second_time_changes_nothing(redis, inspector):
    inspector.pause(QUEUE)
    before = snapshot(redis)

    assert not inspector.pause(QUEUE)

    assert snapshot(redis) == before


def test_what_runs_goes_on_and_what_comes_is_taken_in(redis, broker, inspector):
    job = claimed_job(broker)
    inspector.pause(QUEUE)
    waiting = queued_job(broker)

    assert settle(broker, "ack", job) == []
    assert claim(broker) == []

    assert set(snapshot(redis)["jobs"]) == {waiting.id}


def test_only_one_queue_is_paused(redis, broker, inspector):
    inspector.pause(QUEUE)

    assert snapshot(redis, times=False) == {"paused": {"queue": MS}}

"""Nothing of a queue is claimed until it is resumed."""

from tests.support.jobs import QUEUE, queued_job
from tests.support.server_clock import server_ms
from tests.support.snapshots import changes, snapshot


def test_it_is_written_down_since_when(redis, broker, rtq):
    queued_job(broker)
    before, began = snapshot(redis), server_ms(redis)

    assert rtq.queues[QUEUE].pause()

    assert set(changes(before, snapshot(redis))) == {"paused"}
    assert began <= int(snapshot(redis)["paused"]["queue"]) <= server_ms(redis)


def test_the_second_time_changes_nothing(redis, rtq):
    rtq.queues[QUEUE].pause()
    before = snapshot(redis)

    assert not rtq.queues[QUEUE].pause()

    assert snapshot(redis) == before

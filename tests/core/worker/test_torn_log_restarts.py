"""The append-only file of Redis ends within a claim, Redis starts, and starts again: no job is queued for ever."""

import pytest

from django_rtq import JobState
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.settlement import Settlement
from django_rtq.core.broker.worker_broker import for_workers
from tests.app import tasks
from tests.core.worker.conservation import assert_nothing_left
from tests.support.jobs import KEEP_MS, QUEUE
from tests.support.waiting import wait_until

pytestmark = pytest.mark.long


def tear(server):
    """Cut the file within the command behind the last LPOP."""
    files = sorted(server.directory.rglob("*.aof"), key=lambda path: path.stat().st_size)
    data = files[-1].read_bytes()
    files[-1].write_bytes(data[: data.find(b"*", data.rfind(b"LPOP")) + 9])


def claim_one(worker):
    broker = for_workers(get_broker())
    broker.sign_on([QUEUE], worker)
    (claimed,) = broker.claim(worker, [QUEUE], 1).claimed
    return claimed.ids[0].decode()


def test_a_claim_that_is_executed_in_part_at_the_second_start(start, fragile, client, journal):
    first, second = tasks.note.delay("first"), tasks.note.delay("second")
    assert claim_one("before") == first.id
    fragile.kill()
    tear(fragile)
    fragile.start()
    assert claim_one("between") == first.id
    for_workers(get_broker()).settle("between", QUEUE, Settlement(ack=[first.id, KEEP_MS, '"done"']))
    fragile.restart()
    worker = start()

    wait_until(lambda: second.refresh().state is JobState.SUCCEEDED)
    worker.stop()
    assert_nothing_left(client)


def test_the_file_is_rewritten_after_a_restart_so_that_nothing_of_the_torn_claim_is_left(start, fragile, client):
    worker = start()
    run_id = client.hget(get_broker().keys.of(QUEUE).clock, "run_id")
    wait_until(lambda: client.hget(get_broker().keys.of(QUEUE).clock, "run_id"))
    worker.stop()
    tasks.note.delay("first")
    claim_one("before")
    fragile.kill()
    tear(fragile)
    fragile.start()
    worker = start()

    wait_until(lambda: "it rewrites its append-only file" in worker.log)
    wait_until(lambda: client.info("persistence")["aof_rewrite_in_progress"] == 0)
    assert client.hget(get_broker().keys.of(QUEUE).clock, "run_id") != run_id
    fragile.restart()
    assert "MULTI calls can not be nested" not in (fragile.directory / "server.log").read_text()

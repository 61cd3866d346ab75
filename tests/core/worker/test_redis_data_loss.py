"""Redis returns without its last writes: after a crash of its machine, or a failover to a replica that lags.

What a worker had told in them is not known any more: it runs again, and no job stays "running" that nobody runs. Nor is
a job queued for ever when the append-only file ends within a claim.
"""

import shutil

import pytest

from django_rtq import JobState
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.settlement import Settlement
from django_rtq.core.broker.worker_broker import for_workers
from tests.app import tasks
from tests.core.worker.conservation import assert_nothing_left, records
from tests.support.jobs import KEEP_MS, QUEUE
from tests.support.waiting import wait_until

pytestmark = pytest.mark.long


@pytest.fixture
def moment(fragile, tmp_path):
    """Keep the file as it is now; what it gives brings that moment back."""
    kept = tmp_path / "kept"

    def keep():
        files = next(path for path in fragile.directory.iterdir() if path.name.startswith("appendonly"))
        copy(files, kept)

        def bring_back():
            fragile.kill()
            shutil.rmtree(files) if files.is_dir() else files.unlink()
            copy(kept, files)
            fragile.start()

        return bring_back

    return keep


def copy(source, target):
    """A file; or, since Redis 7, a folder."""
    (shutil.copytree if source.is_dir() else shutil.copy)(source, target)


def end(worker, client):
    worker.stop()
    assert_nothing_left(client)


def wait_until_acknowledged(client, job):
    """Until the worker has the reply: else it would send the outcome again, and the job would not be lost."""
    wait_until(lambda: job.state is JobState.SUCCEEDED)
    wait_until(client.waiting_workers)


def test_a_worker_with_one_slot_that_runs_a_long_job(start, client, moment, journal):
    lost, current = tasks.gate.delay("lost", "first"), tasks.gate.delay("current", "second")
    worker = start("--no-scheduler")
    journal.wait("start", "lost")
    bring_back = moment()
    journal.open("first")
    journal.wait("start", "current")
    bring_back()
    assert lost.state in (JobState.RUNNING, JobState.QUEUED)  # not over: its worker may have noticed at once
    wait_until(
        lambda: lost.state in (JobState.QUEUED, JobState.SUCCEEDED)
    )  # while the other runs on, in the main thread

    assert journal.ends("current") == 0
    journal.open("second")
    wait_until(lambda: not records(client))
    assert (lost.state, current.state) == (JobState.SUCCEEDED, JobState.SUCCEEDED)
    assert journal.starts("lost") == 2
    end(worker, client)


def test_a_worker_that_is_idle(start, client, moment, journal):
    lost = tasks.gate.delay("lost", "gate")
    worker = start("--no-scheduler")
    journal.wait("start", "lost")
    bring_back = moment()
    journal.open("gate")
    wait_until_acknowledged(client, lost)
    bring_back()
    journal.wait("end", "lost", times=2)

    wait_until(lambda: lost.state is JobState.SUCCEEDED)
    end(worker, client)


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

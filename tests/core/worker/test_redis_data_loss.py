"""Redis returns without its last writes: after a crash of its machine, or a failover to a replica that lags.

What a worker had told in them is not known any more: it runs again, and no job stays "running" that nobody runs.
"""

import shutil

import pytest

from django_rtq import JobState
from tests.app import tasks
from tests.core.worker.conservation import assert_nothing_left, records
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


def is_back(job):
    """Whether the job waits again, or is over."""
    return job.state in (JobState.QUEUED, JobState.SUCCEEDED)


def test_a_worker_with_one_slot_that_runs_a_long_job(start, client, moment, journal):
    lost, current = tasks.gate.delay("lost", "first"), tasks.gate.delay("current", "second")
    worker = start("--no-scheduler")
    journal.wait("start", "lost")
    bring_back = moment()
    journal.open("first")
    journal.wait("start", "current")
    bring_back()
    assert lost.state in (JobState.RUNNING, JobState.QUEUED)  # not over: its worker may have noticed at once
    wait_until(lambda: is_back(lost))  # while the other runs on, in the main thread

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

"""Stop signals, and what happens to running jobs."""

import signal
import time

import pytest

from django_rtq import JobState
from tests.app import tasks
from tests.core.worker.conftest import LONG_WAITS
from tests.core.worker.conservation import assert_all_settled, assert_conserved, assert_nothing_left, records
from tests.core.worker.processes import is_alive
from tests.support.waiting import wait_until

LANE = "{rtq:default}:lane:0:"


def lane(redis):
    return [job_id.decode() for job_id in redis.lrange(LANE, 0, -1)]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_the_first_signal_lets_running_jobs_finish_and_claims_nothing_more(rtq_worker, redis, journal, concurrency):
    worker = rtq_worker("--concurrency", concurrency)
    job = tasks.gate.delay("running", "gate")
    journal.wait("start", "running")
    worker.kill(signal.SIGTERM)
    wait_until(lambda: "running jobs have 25 s" in worker.log and not redis.waiting_workers())
    waiting = tasks.note.delay_many([((f"later-{i}",), {}) for i in range(3)])
    assert not worker_ended_within(worker, 0.3)
    journal.open("gate")

    assert worker.wait() == 0
    assert job.state is JobState.SUCCEEDED
    assert journal.names() == ["running"]
    assert lane(redis) == [handle.id for handle in waiting]
    assert_conserved(redis)


def worker_ended_within(worker, seconds):
    until = time.monotonic() + seconds
    wait_until(lambda: not worker.is_running or time.monotonic() > until)
    return not worker.is_running


@pytest.mark.parametrize("concurrency", [1, 3])
def test_when_the_time_is_over_a_job_is_given_back_in_front_and_nothing_is_counted(
    rtq_worker, redis, journal, concurrency
):
    worker = rtq_worker("--drain-seconds", "0.3", "--concurrency", concurrency)
    job = tasks.gate.delay("running", "never")
    journal.wait("start", "running")
    worker.kill(signal.SIGTERM)
    wait_until(lambda: "running jobs have 0.3 s" in worker.log and not redis.waiting_workers())
    waiting = tasks.note.delay("later")

    assert worker.wait() == 0
    assert lane(redis) == [job.id, waiting.id]
    details = job.refresh()
    assert (details.failures, details.crashes, details.errors) == (0, 0, [])
    assert_conserved(redis)


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_signal_gives_jobs_back_at_once(rtq_worker, redis, journal, signum, code):
    worker = rtq_worker("--processes", 2)
    jobs = [tasks.gate.delay(f"job-{i}", "never") for i in range(2)]
    for i in range(2):
        journal.wait("start", f"job-{i}")
    children = worker.children
    worker.kill(signum)
    wait_until(lambda: "a second signal" in worker.log)
    worker.kill(signum)

    assert worker.wait() == code
    assert sorted(lane(redis)) == sorted(job.id for job in jobs)
    assert {job.refresh().crashes for job in jobs} == {0}
    assert not any(is_alive(pid) for pid in children)
    assert_conserved(redis)


def test_an_idle_worker_does_not_end_its_wait_first(rtq_worker, redis):
    worker = rtq_worker("--processes", 2, "--queues", "default,low", **LONG_WAITS)

    assert worker.stop(signal.SIGINT) == 0
    assert "SIGKILL" not in worker.log
    assert redis.zcard("{rtq:default}:workers") == 0
    assert redis.zcard("{rtq:low}:workers") == 0


def test_a_signal_to_the_whole_process_group_is_one_signal(rtq_worker, redis, journal):
    worker = rtq_worker("--processes", 2)
    job = tasks.gate.delay("running", "gate")  # and the other process is idle
    journal.wait("start", "running")
    worker.kill_group(signal.SIGINT)
    wait_until(lambda: "a second signal" in worker.log)
    journal.open("gate")

    assert worker.wait() == 0
    assert job.state is JobState.SUCCEEDED
    assert "Traceback" not in worker.log
    assert "exited with code" not in worker.log
    assert_nothing_left(redis)


def test_a_job_that_may_run_only_once_is_not_given_back_half_done(rtq_worker, redis, journal):
    worker = rtq_worker("--drain-seconds", "0")
    job = tasks.gate.using(max_attempts=1, max_crashes=0).delay("once", "never")
    journal.wait("start", "once")
    worker.stop()

    assert job.state is JobState.DEAD
    assert job.refresh().errors[-1]["error_class"] == "django_rtq.exceptions.WorkerLost"
    assert_all_settled(redis)


def test_signals_in_a_worker_that_is_busy_starting_and_recycling_stop_it_all_the_same(rtq_worker, redis, journal):
    workers = [rtq_worker("--max-jobs", 1, "--processes", 2, LEASE_SECONDS=30) for _ in range(3)]
    tasks.note.delay_many([((f"job-{i}",), {}) for i in range(2000)])
    for number, worker in enumerate(workers):
        journal.wait("end", f"job-{10 + 20 * number}")
        worker.kill(signal.SIGTERM)

    assert [worker.wait() for worker in workers] == [0, 0, 0]
    assert not any("SIGKILL" in worker.log for worker in workers)  # no child has missed the signal
    assert_conserved(redis)
    assert len(records(redis)) == 2000 - journal.ends()

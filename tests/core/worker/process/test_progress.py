"""The progress that jobs report."""

import threading

import pytest

from django_rtq.core.worker.process.progress import ProgressWriter
from django_rtq.exceptions import BrokerUnavailable
from tests.app import long_tasks
from tests.core.worker.conservation import assert_all_settled
from tests.support.waiting import PATIENCE, wait_until


@pytest.fixture
def reports():
    """A writer, and what it writes."""
    written = []
    reports = ProgressWriter(written.append)
    yield reports, written
    reports.stop()


def test_the_last_word_of_each_job_is_written(reports):
    reports, written = reports
    for number in range(1000):
        for job in "ab":
            reports.report("w1", "mail", job, str(number))
    wait_until(lambda: written and [written[-1].get(("w1", "mail", job)) for job in "ab"] == ["999", "999"])

    assert len(written) <= 2


def test_words_from_many_threads_are_all_heard(reports):
    reports, written = reports

    def talk(job):
        for number in range(300):
            reports.report("w1", "mail", job, str(number))

    threads = [threading.Thread(target=talk, args=[str(job)]) for job in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    last = {}
    wait_until(lambda: [last.update(reports) for reports in written] and list(last.values()) == ["299"] * 8)


def test_what_could_not_be_written_is_written_later_unless_there_is_something_newer():
    tries, written = [], []

    def write(written_now):
        tries.append(written_now)
        if len(tries) == 1:
            writer.report("w1", "mail", "a", "newer")
            raise BrokerUnavailable("away")
        written.append(written_now)

    writer = ProgressWriter(write)
    writer.report("w1", "mail", "a", "older")
    wait_until(lambda: written)
    writer.stop()

    assert written[0] == {("w1", "mail", "a"): "newer"}


def test_who_says_nothing_costs_no_thread_and_stops_at_once():
    writer = ProgressWriter(lambda reports: None)
    writer.stop()

    assert "rtq-progress" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize(("concurrency", "task"), [(1, "count_up"), (3, "acount_up")])
def test_a_job_says_how_far_it_is(rtq_worker, redis, journal, concurrency, task):
    worker = rtq_worker("--concurrency", concurrency)
    jobs = [getattr(long_tasks, task).delay(f"job-{i}", "gate") for i in range(concurrency)]
    wait_until(lambda: all(job.refresh().progress and job.refresh().progress.done == 2000 for job in jobs))

    for i, job in enumerate(jobs):
        progress = job.refresh().progress
        assert (progress.total, progress.text) == (2000, f"job-{i} waits")
    journal.open("gate")
    for job in jobs:
        assert job.get(PATIENCE) == job.id
        assert job.refresh().progress is None
    worker.stop()
    assert_all_settled(redis)
    assert not redis.exists("{rtq:default}:progress")

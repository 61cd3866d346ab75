"""Batch sizes, and the watch thread that cuts slow batches."""

import threading

import pytest

from django_rtq.core.worker.process.running import batch as batches
from django_rtq.core.worker.process.running.batch import (
    BUSY_CLAIMS,
    MAX_ACK_DELAY_SECONDS,
    MAX_AHEAD_SECONDS,
    MAX_JOBS,
    MEAN_RUNS,
    Batch,
    BatchSize,
    BatchWatch,
)
from django_rtq.exceptions import BrokerUnavailable
from tests.support.waiting import start_thread, wait_until

IDS = [b"a", b"b", b"c", b"d"]


class FakePage:
    """Notes what was given back, and told."""

    def __init__(self):
        self.given_back_from, self.is_reported = None, False

    def start_batch(self, job_ids):
        pass

    def release_from(self, place):
        self.given_back_from = place

    def mark_reported(self):
        self.is_reported = True


def batch_with(job_ids, shared=None):
    return Batch(job_ids, shared or FakePage())


def grown(times=10):
    size = BatchSize()
    for _ in range(times):
        size.update(size.jobs, 0.0001, slowest=0.0001)
    return size


def test_the_first_claim_is_for_one_job():
    assert BatchSize().jobs == 1


def test_short_jobs_are_claimed_in_batches_that_grow_up_to_a_limit():
    assert [grown(times).jobs for times in range(9)] == [1, 2, 4, 8, 16, 32, 64, 128, 128]
    assert grown(100).jobs == MAX_JOBS


def test_one_slow_job_is_enough_to_claim_one_by_one():
    size = grown()
    size.update(size.jobs, 2 * MAX_ACK_DELAY_SECONDS, slowest=1.1 * MAX_ACK_DELAY_SECONDS)

    assert size.jobs == 1


def test_a_batch_that_took_more_than_half_a_moment_shrinks_to_what_fits_into_that():
    size = grown()
    size.update(100, 2 * MAX_ACK_DELAY_SECONDS, slowest=0.001)

    assert size.jobs == 25


@pytest.mark.parametrize(("jobs", "seconds"), [(10, 0.0001), (MAX_JOBS, 0.35 * MAX_ACK_DELAY_SECONDS)])
def test_a_batch_that_was_not_full_or_took_its_time_lets_the_size_be(jobs, seconds):
    size = grown()
    size.update(jobs, seconds, slowest=0.0001)

    assert size.jobs == MAX_JOBS


def test_nothing_done_is_no_reason_to_claim_more():
    size = grown()
    size.update(0, 0.0, slowest=0.0)

    assert size.jobs == 1


def ran(size, seconds, *, times=1, found=None):
    """The size after so many claims of jobs that took so long, each of which found all that was wanted, or `found`."""
    for _ in range(times):
        jobs = size.jobs if found is None else found
        size.note_claim(jobs)
        size.update(jobs, jobs * seconds, slowest=seconds)
    return size.jobs


@pytest.mark.parametrize(
    ("seconds", "jobs"), [(0.006, 2), (0.45 * MAX_AHEAD_SECONDS, 2), (0.55 * MAX_AHEAD_SECONDS, 1)]
)
def test_while_jobs_are_short_two_are_claimed(seconds, jobs):
    size = BatchSize()

    assert [ran(size, seconds) for _ in range(BUSY_CLAIMS + 2)] == [1] * (BUSY_CLAIMS - 1) + [jobs] * 3


def test_none_is_claimed_ahead_that_an_idle_worker_could_run():
    size = BatchSize()
    ran(size, 0.006, times=BUSY_CLAIMS + 1)

    assert ran(size, 0.006, found=1) == 1  # one of two: no more are waiting
    assert ran(size, 0.006, times=BUSY_CLAIMS - 1) == 1
    assert ran(size, 0.006) == 2
    size.note_claim(0)
    size.note_claim(1)
    size.update(1, 0.006, slowest=0.006)
    assert size.jobs == 1


def test_none_is_claimed_ahead_once_one_was_given_back_until_many_jobs_were_short():
    size = BatchSize()
    ran(size, 0.006, times=BUSY_CLAIMS + 1)
    size.note_claim(2)
    size.update(1, 0.03, slowest=0.03, is_cut=True)

    assert ran(size, 0.006, times=MEAN_RUNS) == 1
    assert ran(size, 0.006, times=2 * MEAN_RUNS) == 2


def test_jobs_that_get_shorter_are_claimed_in_larger_batches_again():
    size = BatchSize()
    ran(size, 0.006, times=BUSY_CLAIMS + 1)

    assert ran(size, 0.0001) == 4


def test_a_batch_gives_its_jobs_in_order():
    batch = batch_with(IDS)

    assert [batch.next() for _ in range(5)] == [0, 1, 2, 3, None]


@pytest.mark.parametrize("started", [0, 1, 3, 4])
def test_what_was_cut_off_is_never_given_out(started):
    batch = batch_with(IDS)
    for _ in range(started):
        batch.next()

    assert batch.cut() == IDS[started:]
    assert batch.next() is None
    assert batch.cut() == []


def test_the_page_is_that_of_the_next_batch_when_this_one_is_over():
    shared = FakePage()
    batch = batch_with(IDS, shared)
    batch.next()
    batch.cut()
    assert shared.given_back_from == 1
    batch.next()
    batch.mark_reported()
    assert not shared.is_reported


def test_cutting_while_another_thread_takes_gives_every_job_to_one_of_them():
    for _ in range(200):
        batch, taken = batch_with([b"%d" % i for i in range(50)]), []
        ready = threading.Barrier(2)

        def take(batch=batch, taken=taken, ready=ready):
            ready.wait()
            while (place := batch.next()) is not None:
                taken.append(b"%d" % place)

        thread = start_thread(take)
        ready.wait()
        cut = batch.cut()
        thread.join()
        assert sorted([*taken, *cut]) == sorted(b"%d" % i for i in range(50))


def test_what_was_not_started_when_the_jobs_end_is_left():
    batch = batch_with(IDS)
    batch.next()

    assert batch.end() == IDS[1:]


def test_of_two_jobs_the_second_gets_as_long_as_the_first():
    batch, many = batch_with(IDS[:2]), batch_with(IDS)
    batch.next()
    first, due = batch.due, many.due
    for _ in range(3):
        batch.next()
        many.next()

    assert first - many.due > MAX_ACK_DELAY_SECONDS
    assert batch.due > first
    assert many.due == due


class FakeSession:
    """Notes what it is told."""

    def __init__(self, *, is_away=False):
        self.released, self.settled, self.is_away = [], 0, is_away

    def release(self, job_ids):
        self.released += job_ids

    def settle(self):
        self.settled += 1
        if self.is_away:
            raise BrokerUnavailable("away")


@pytest.fixture
def watched():
    watches = []

    def begin(batch, **options):
        session = FakeSession(**options)
        watch = BatchWatch(session, session.release)
        watches.append(watch)
        watch.begin(batch)
        return session, watch

    yield begin
    for watch in watches:
        watch.stop()


@pytest.mark.parametrize("is_away", [False, True])
def test_jobs_behind_a_slow_one_are_given_back_once_and_the_next_batch_is_watched_again(watched, is_away):
    batch = batch_with(IDS)
    batch.next()
    session, watch = watched(batch, is_away=is_away)
    wait_until(lambda: session.settled > 0)
    assert session.released == IDS[1:]

    watch.end()
    again = batch_with(IDS)
    again.next()
    watch.begin(again)
    wait_until(lambda: session.released == IDS[1:] * 2)


def test_what_could_not_be_told_is_told_when_redis_is_back_though_the_slow_job_still_runs(watched):
    shared = FakePage()
    batch = batch_with(IDS, shared)
    batch.next()
    session, _ = watched(batch, is_away=True)
    wait_until(lambda: session.settled > 1)
    assert not shared.is_reported
    session.is_away = False
    tries = session.settled

    wait_until(lambda: session.settled > tries)
    assert session.released == IDS[1:]
    wait_until(lambda: shared.is_reported)


def test_a_batch_is_cut_when_it_takes_long_altogether_though_no_job_is_slow(watched):
    batch = batch_with([b"%d" % i for i in range(100_000)])
    session, watch = watched(batch)

    taken = 0
    while batch.next() is not None:
        taken += 1
    watch.end()

    wait_until(lambda: session.released)  # the watch does that after it has ended the batch
    assert taken + len(session.released) == 100_000


def test_a_batch_that_is_due_earlier_than_the_one_before_is_cut_in_time(watched, monkeypatch):
    monkeypatch.setattr(batches, "MAX_AHEAD_SECONDS", 1000)
    session, watch = watched(batch_with(IDS[:2]))
    wait_until(lambda: watch._wakes_at < 1e9 and watch._wakes_at > 0)
    watch.end()
    batch = batch_with(IDS)
    batch.next()
    watch.begin(batch)

    wait_until(lambda: session.released == IDS[1:])


def test_a_watch_survives_batches_that_end_at_any_moment(watched):
    session, watch = watched(batch_with(IDS))
    for _ in range(20_000):
        watch.begin(batch_with(IDS))
        watch.end()
    batch = batch_with(IDS)
    batch.next()
    before = session.settled
    watch.begin(batch)

    wait_until(lambda: session.settled > before)


def test_stop_may_be_called_twice_and_before_a_batch():
    watch = BatchWatch(FakeSession(), print)
    watch.stop()
    watch.stop()

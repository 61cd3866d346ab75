"""A release ends one wait, and a signal ends none too late."""

import signal
import time

import pytest

from django_rtq.core.threads import BinarySemaphore
from tests.support.waiting import PATIENCE, start_thread, wait_until


@pytest.fixture
def semaphore():
    return BinarySemaphore()


def test_releases_before_it_is_acquired_count_as_one(semaphore):
    assert not semaphore.acquire(0)
    for _ in range(3):
        semaphore.release()

    assert semaphore.acquire()
    assert not semaphore.acquire(0)
    assert not semaphore.acquire(0.001)


def test_a_release_wakes_the_thread_that_waits(semaphore):
    acquired = []
    thread = start_thread(lambda: acquired.append(semaphore.acquire(PATIENCE)))
    semaphore.release()
    thread.join(PATIENCE)

    assert acquired == [True]


def test_a_signal_that_comes_at_the_end_of_a_wait_does_not_prolong_it(semaphore):
    before, calls = signal.getsignal(signal.SIGALRM), []

    def on_alarm(signum, frame):
        calls.append(signum)
        assert len(calls) == 1, "the wait goes on"
        wait_until(lambda: time.monotonic() > over)

    signal.signal(signal.SIGALRM, on_alarm)
    over = time.monotonic() + 0.2
    signal.setitimer(signal.ITIMER_REAL, 0.05, PATIENCE)
    try:
        assert not semaphore.acquire(0.1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

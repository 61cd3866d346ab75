"""Time limits and cancellation inside jobs."""

import asyncio
import signal
import sys
import threading
import time
from contextlib import suppress

import pytest

from django_rtq.core.worker.process.running.interrupts import (
    CoroutineInterrupts,
    MainThreadInterrupts,
    ThreadInterrupts,
    limit_message,
)
from django_rtq.exceptions import JobCancelled, TimeLimitExceeded
from tests.support.waiting import PATIENCE, start_thread, wait_until


@pytest.fixture
def main_limit():
    before = signal.getsignal(signal.SIGALRM)
    yield MainThreadInterrupts()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def thread_limits():
    limits = ThreadInterrupts()
    yield limits
    limits.close()


def spin(seconds=5.0):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.001)


def in_thread(function):
    """The result of a function in a thread of its own, or what it raised."""
    results = []

    def call():
        try:
            results.append(function())
        except BaseException as error:  # noqa: BLE001
            results.append(error)

    start_thread(call).join(PATIENCE)
    return results[0]


def test_the_main_thread_is_interrupted_even_in_a_system_call(main_limit):
    started = time.monotonic()
    with pytest.raises(TimeLimitExceeded, match=r"0\.05 s"), main_limit.limit(0.05):
        time.sleep(60)

    assert time.monotonic() - started < 30


def test_a_job_before_may_have_used_the_alarm_for_itself(main_limit):
    with main_limit.limit(1):
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
    with pytest.raises(TimeLimitExceeded), main_limit.limit(0.05):
        spin()


def test_an_alarm_that_a_job_left_behind_does_not_hit_the_next(main_limit):
    with main_limit.limit(1):
        pass
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    spin(0.05)


def test_a_thread_is_interrupted(thread_limits):
    def job():
        with thread_limits.limit(0.05):
            spin()

    error = in_thread(job)

    assert type(error) is TimeLimitExceeded
    assert "0.05 s" in str(error)


def test_in_time_nothing_happens(main_limit, thread_limits):
    def job():
        with thread_limits.limit(5):
            return "in time"

    assert in_thread(job) == "in time"
    with main_limit.limit(5):
        pass
    with main_limit.limit(None), thread_limits.limit(None):
        pass


def test_a_limit_that_is_met_within_a_hair_is_raised_inside_or_not_at_all(thread_limits):
    """An exception on its way must not hit what the thread does next, nor leave a lock behind."""
    outcomes = []

    def jobs():
        for number in range(150):
            try:
                with thread_limits.limit(0.001):
                    spin(0.0005 + number % 10 * 0.0001)
                outcomes.append("in time")
            except TimeLimitExceeded as error:
                outcomes.append(str(error))
            sum(range(1000))
        return "sound"

    assert [in_thread(jobs) for _ in range(2)] == ["sound", "sound"]
    assert len(outcomes) == 300
    assert set(outcomes) <= {"in time", limit_message(0.001)}


def test_a_job_that_swallows_the_exception_leaves_the_thread_sound(thread_limits):
    def jobs():
        with suppress(Exception), thread_limits.limit(0.02), suppress(Exception):
            spin()
        with pytest.raises(TimeLimitExceeded), thread_limits.limit(0.02):
            spin()
        return "sound"

    assert in_thread(jobs) == "sound"


def test_a_coroutine_is_cancelled(thread_limits):
    cancelled = []

    async def job():
        try:
            await asyncio.sleep(5)
        finally:
            cancelled.append(True)

    with pytest.raises(TimeLimitExceeded, match=r"0\.05 s"):
        asyncio.run(CoroutineInterrupts().limited(job(), 0.05))
    assert cancelled == [True]


def in_the_main_thread(main_limit, thread_limits, handle):
    with main_limit.limit(0.05):
        try:
            spin()
        except TimeLimitExceeded:
            return handle()


def in_another_thread(main_limit, thread_limits, handle):
    def job():
        with thread_limits.limit(0.05):
            try:
                spin()
            except TimeLimitExceeded:
                return handle()

    result = in_thread(job)
    if isinstance(result, BaseException):
        raise result
    return result


def on_an_event_loop(main_limit, thread_limits, handle):
    async def job():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return handle()

    return asyncio.run(CoroutineInterrupts().limited(job(), 0.05))


@pytest.mark.parametrize("run", [in_the_main_thread, in_another_thread, on_an_event_loop])
def test_a_job_that_catches_the_interruption_has_its_own_outcome(main_limit, thread_limits, run):
    assert run(main_limit, thread_limits, lambda: "half of it") == "half of it"
    with pytest.raises(ZeroDivisionError):
        run(main_limit, thread_limits, lambda: 1 / 0)


def test_a_coroutine_that_was_stopped_is_not_interrupted_by_its_time_limit():
    coroutines, tidied = CoroutineInterrupts(), []

    async def job():
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.2)
            tidied.append(True)

    async def run():
        asyncio.get_running_loop().call_later(0.02, coroutines.cancel, b"ours")
        await coroutines.limited(job(), 0.1, b"ours")

    with pytest.raises((asyncio.CancelledError, TimeLimitExceeded)):
        asyncio.run(run())
    assert tidied == [True]


@pytest.mark.parametrize("seconds", [None, 5])
def test_a_coroutine_in_time_gives_its_result_or_its_error(seconds):
    async def job(error):
        if error:
            raise error
        return "in time"

    assert asyncio.run(CoroutineInterrupts().limited(job(None), seconds)) == "in time"
    with pytest.raises(ValueError, match="mine"):
        asyncio.run(CoroutineInterrupts().limited(job(ValueError("mine")), seconds))


def in_a_moment(function, seconds=0.05):
    """Call it in the main thread, by the alarm, as a signal handler."""
    signal.signal(signal.SIGUSR1, lambda signum, frame: function())
    timer = threading.Timer(seconds, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1))
    timer.start()
    return timer


def sleep_until(function):
    """Sleep until the alarm has called what raises."""
    timer = in_a_moment(function)
    try:
        time.sleep(60)
    finally:
        timer.join()


@pytest.fixture
def _sigusr1():
    before = signal.getsignal(signal.SIGUSR1)
    yield
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.usefixtures("_sigusr1")
def test_the_main_thread_stops_for_the_very_job_and_once(main_limit):
    with pytest.raises(JobCancelled), main_limit.limit(None, b"ours"):
        sleep_until(lambda: main_limit.cancel(b"ours"))

    main_limit.cancel(b"ours")  # it is over
    with main_limit.limit(None, b"next"):
        main_limit.cancel(b"ours")
        main_limit.cancel(b"")


@pytest.mark.usefixtures("_sigusr1")
def test_who_tidies_up_is_left_in_peace(main_limit):
    with suppress(JobCancelled), main_limit.limit(0.2, b"ours"):
        try:
            main_limit.cancel(b"ours")
        finally:
            main_limit.cancel(b"ours")
            spin(0.3)
            tidied = True

    assert tidied


def test_a_thread_stops_for_the_very_job(thread_limits):
    begun = threading.Event()

    def job():
        try:
            with thread_limits.limit(None, b"ours"):
                begun.set()
                spin()
        except JobCancelled as error:
            return str(error)

    def stop():
        begun.wait()
        thread_limits.cancel(b"another")
        thread_limits.cancel(b"ours")

    stopper = start_thread(stop)
    assert in_thread(job) == "the job was asked to stop"
    stopper.join()


@pytest.mark.usefixtures("_sigusr1")
def test_a_signal_to_the_watcher_just_before_a_deadline_does_not_stop_it(thread_limits):
    signal.signal(signal.SIGUSR1, lambda signum, frame: None)
    switch_interval, began = sys.getswitchinterval(), []

    def job():
        try:
            with thread_limits.limit(0.3):
                began.append(time.monotonic())
                spin()
        except TimeLimitExceeded:
            return "interrupted"

    def signal_watcher():
        wait_until(lambda: began and time.monotonic() > began[0] + 0.1)
        sys.setswitchinterval(10)  # from here on, the watcher does not run until its deadline is over
        signal.pthread_kill(thread_limits._watcher.ident, signal.SIGUSR1)
        while time.monotonic() < began[0] + 0.4:
            pass
        sys.setswitchinterval(switch_interval)

    signaller = start_thread(signal_watcher)
    assert in_thread(job) == "interrupted"
    signaller.join()


def test_a_job_that_ends_as_it_is_stopped_leaves_the_thread_sound(thread_limits):
    outcomes, number = [], iter(range(10**9))
    current, is_over = [b""], threading.Event()

    def jobs():
        for i in range(300):
            current[0] = b"%d" % next(number)
            try:
                with thread_limits.limit(None, current[0]):
                    spin(0.0002 * (i % 5))
                outcomes.append("in time")
            except JobCancelled:
                outcomes.append("stopped")
            sum(range(1000))
        return "sound"

    def stop():
        while not is_over.wait(0.0005):
            thread_limits.cancel(current[0])

    stopper = start_thread(stop)
    assert in_thread(jobs) == "sound"
    is_over.set()
    stopper.join()
    assert len(outcomes) == 300
    assert set(outcomes) == {"in time", "stopped"}


@pytest.mark.parametrize("seconds", [None, 5])
def test_a_coroutine_stops_for_the_very_job_and_once(seconds):
    coroutines, tidied = CoroutineInterrupts(), []

    async def job():
        try:
            await asyncio.sleep(5)
        finally:
            coroutines.cancel(b"ours")
            await asyncio.sleep(0.01)
            tidied.append(True)

    async def run():
        asyncio.get_running_loop().call_later(0.02, coroutines.cancel, b"another")
        asyncio.get_running_loop().call_later(0.02, coroutines.cancel, b"ours")
        await coroutines.limited(job(), seconds, b"ours")

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    assert tidied == [True]


def test_a_run_that_commits_is_not_interrupted_any_more(main_limit, thread_limits):
    def commits(limits):
        with limits.limit(0.5, b"id") as run:
            run.end()
            limits.cancel(b"id")
            spin(0.6)
        return "committed"

    assert commits(main_limit) == "committed"
    assert in_thread(lambda: commits(thread_limits)) == "committed"


def test_a_thread_that_was_interrupted_at_its_end_does_not_commit(thread_limits):
    def job():
        with thread_limits.limit(60, b"id") as run:
            thread_limits.cancel(b"id")
            while run in thread_limits._runs:
                pass
            run.end()
            return "committed"

    assert isinstance(in_thread(job), JobCancelled)

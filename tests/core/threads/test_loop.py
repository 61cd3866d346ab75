"""Loop: a thread that runs ticks until it is stopped."""

import itertools
import logging
import threading
from types import SimpleNamespace

import pytest

from django_rtq.core import threads as module
from django_rtq.core.threads import Loop, ReconnectDelay, pause_loops, stop_all
from django_rtq.exceptions import BrokerUnavailable
from tests.support.waiting import PATIENCE, wait_until


class Counter(Loop):
    """Counts its ticks; each may raise."""

    name = "counter"

    def __init__(self, *errors, seconds=0.0, **options):
        super().__init__(**options)
        self.errors = list(errors)
        self.ticks = 0
        self._seconds = seconds

    def tick(self):
        self.ticks += 1
        if self.errors:
            raise self.errors.pop(0)
        return self._seconds


class Blocked(Loop):
    """Waits on something that only an interruption ends."""

    name = "blocked"

    def __init__(self):
        super().__init__()
        self.woken = threading.Event()
        self.is_waiting = threading.Event()

    def tick(self):
        return 60.0

    def wait(self, seconds):
        self.is_waiting.set()
        self.woken.wait(seconds)
        raise RuntimeError("what it waited on was taken away")

    def interrupt(self):
        self.woken.set()


class Hanging(Loop):
    """Its tick lasts until the test lets it go on."""

    name = "hanging"

    def __init__(self):
        super().__init__()
        self.is_ticking = threading.Event()
        self.answer = threading.Event()

    def tick(self):
        self.is_ticking.set()
        self.answer.wait(30)
        return 0.0


@pytest.fixture
def hanging():
    """Three loops whose ticks hang; they end with the test."""
    loops = [Hanging() for _ in range(3)]
    for loop in loops:
        loop.start()
        loop.is_ticking.wait(PATIENCE)
    yield loops
    for loop in loops:
        loop.request_stop()
        loop.answer.set()
        wait_until(lambda loop=loop: loop.join(0.1))


@pytest.fixture
def started():
    """Start loops; they are stopped with the test."""
    loops = []

    def start(loop):
        loops.append(loop)
        loop.start()
        return loop

    yield start
    for loop in loops:
        loop.stop()


def test_a_loop_ticks_in_a_thread_with_its_name(started):
    loop = started(Counter())
    assert [t for t in threading.enumerate() if t.name == "rtq-counter"]
    wait_until(lambda: loop.ticks > 3)
    loop.stop()
    ticks = loop.ticks

    assert not [t for t in threading.enumerate() if t.name == "rtq-counter"]
    assert loop.ticks == ticks


def test_a_tick_says_when_the_next_is(started):
    loop = started(Counter(seconds=60))
    wait_until(lambda: loop.ticks == 1)
    loop.stop()

    assert loop.ticks == 1


def test_stop_may_be_called_twice_and_before_start():
    loop = Counter()
    loop.stop()
    loop.start()
    loop.stop()
    loop.stop()

    assert loop.ticks == 0


def test_a_loop_goes_on_when_redis_was_away_and_says_so_once(started, caplog):
    caplog.set_level(logging.INFO, "django_rtq")
    away = [BrokerUnavailable("away")] * 4
    loop = started(Counter(*away, max_delay_seconds=0.05))
    wait_until(lambda: loop.ticks > 6)

    assert len([r for r in caplog.records if "counter cannot reach Redis, retrying: away" in r.getMessage()]) >= 1
    assert len([r for r in caplog.records if "counter reached Redis again" in r.getMessage()]) == 1


def test_a_loop_goes_on_after_any_error_and_reports_it(started, caplog):
    loop = started(Counter(ValueError("a mistake")))
    wait_until(lambda: loop.ticks > 2)

    (record,) = [r for r in caplog.records if "counter failed, continuing" in r.getMessage()]
    assert record.exc_info[0] is ValueError


def test_a_wait_that_has_to_be_interrupted_is(started, caplog):
    loop = started(Blocked())
    loop.is_waiting.wait(PATIENCE)
    loop.stop()

    assert not [t for t in threading.enumerate() if t.name == "rtq-blocked"]
    assert not caplog.records


def test_whoever_is_about_to_wait_when_it_is_stopped_is_interrupted_all_the_same(started):
    """The first interruption comes too early, before there is anything to interrupt."""
    loop = Blocked()
    early = []

    def interrupt():
        if early:
            loop.woken.set()
        early.append(True)

    loop.interrupt = interrupt
    started(loop)
    loop.is_waiting.wait(PATIENCE)
    loop.stop()

    assert not [t for t in threading.enumerate() if t.name == "rtq-blocked"]
    assert len(early) >= 2


def test_nobody_ticks_while_somebody_holds_the_lock(started):
    loop = started(Counter())
    wait_until(lambda: loop.ticks > 0)
    with loop.tick_lock:
        ticks = loop.ticks
        assert not threading.Event().wait(0.02)
        assert loop.ticks == ticks


def test_a_wait_is_interrupted_so_that_the_next_tick_begins_at_once(started):
    loop = started(Counter(seconds=60))
    for times in range(1, 4):
        wait_until(lambda times=times: loop.ticks == times)
        loop.interrupt()


def test_what_rings_during_a_tick_is_not_forgotten(started):
    loop = Counter(seconds=60)
    tick = loop.tick

    def ring():
        if loop.ticks == 0:
            loop.interrupt()
        return tick()

    loop.tick = ring
    started(loop)
    wait_until(lambda: loop.ticks == 2)


def test_a_loop_knows_when_it_was_answered(started):
    loop = Counter(BrokerUnavailable("away"), seconds=60)
    seen, tick = [], loop.tick
    loop.tick = lambda: seen.append(loop.last_success_at) or tick()
    started(loop)
    wait_until(lambda: loop.last_success_at > 0.0)

    assert seen == [0.0, 0.0]  # before the first tick, which failed, and before the second


def test_loops_that_hang_are_stopped_together_against_one_deadline(hanging, monkeypatch):
    looks = itertools.count(1000)
    monkeypatch.setattr(module, "STOP_SECONDS", 30)
    monkeypatch.setattr(module, "HANGING_SECONDS", 10_000)
    clock = SimpleNamespace(monotonic=lambda: next(looks))  # each look at it is a second
    monkeypatch.setattr(module, "time", clock)
    stop_all(hanging)

    assert next(looks) < 1000 + 40
    for loop in hanging:
        loop.answer.set()
    wait_until(lambda: not [t for t in threading.enumerate() if t.name == "rtq-hanging"])  # all had been told


@pytest.mark.parametrize("is_urgent", [False, True])
def test_when_a_tick_hangs_or_somebody_is_in_a_hurry_a_stop_waits_less(hanging, monkeypatch, is_urgent):
    monkeypatch.setattr(module, "HANGING_SECONDS", 10_000 if is_urgent else 0.0)
    monkeypatch.setattr(module, "STOP_SECONDS", 10_000)
    monkeypatch.setattr(module, "URGENT_STOP_SECONDS", 0.0)
    assert all(loop.is_hanging is not is_urgent for loop in hanging)
    stop_all(hanging, is_urgent=is_urgent)

    assert all(loop.tick_lock.locked() for loop in hanging)


def test_at_rest_no_tick_runs_and_none_begins(started):
    loops = [started(Counter()) for _ in range(3)]
    wait_until(lambda: all(loop.ticks > 0 for loop in loops))
    with pause_loops(loops, seconds=10) as are_all_paused:
        ticks = [loop.ticks for loop in loops]
        assert are_all_paused
        assert not threading.Event().wait(0.02)
        assert [loop.ticks for loop in loops] == ticks
    wait_until(lambda: all(loop.ticks > before for loop, before in zip(loops, ticks, strict=True)))


def test_a_tick_that_hangs_is_not_waited_for_and_the_others_rest(hanging, started):
    quick = started(Counter())
    wait_until(lambda: quick.ticks > 0)
    with pause_loops([*hanging, quick], seconds=0.01) as are_all_paused:
        assert not are_all_paused
        hanging[0].answer.set()
        wait_until(lambda: not hanging[0].tick_lock.locked())
        assert not threading.Event().wait(0.02)
        assert not hanging[0].tick_lock.locked()  # the next one does not begin
    wait_until(lambda: hanging[0].tick_lock.locked() or hanging[0].last_success_at)


def test_waits_grow_up_to_a_limit_and_begin_anew_after_a_success():
    backoff = ReconnectDelay()
    waits = [backoff.next_seconds() for _ in range(20)]
    tops = [min(5.0, 0.05 * 2**n) for n in range(1, 21)]

    assert all(top / 2 <= wait <= top for wait, top in zip(waits, tops, strict=True))
    assert backoff.reset()
    assert not backoff.reset()
    assert backoff.next_seconds() <= 0.1


def test_the_longest_wait_can_be_chosen():
    backoff = ReconnectDelay(0.3)

    assert max(backoff.next_seconds() for _ in range(20)) <= 0.3

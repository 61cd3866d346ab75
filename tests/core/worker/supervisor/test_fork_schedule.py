"""How many processes still have to be forked, and when a supervisor gives up."""

import pytest

from django_rtq.core.worker.supervisor import fork_schedule
from django_rtq.core.worker.supervisor.fork_schedule import (
    CRASHES_WITHOUT_PAUSE,
    HEALTHY_SECONDS,
    MAX_FAILED_STARTS,
    MAX_PAUSE_SECONDS,
    ForkSchedule,
)
from tests.core.worker.clocks import Clock

CRASH = {"reason": "exited with code 70", "lived_seconds": 0.1, "has_claimed": True, "has_run": False}
FAILED_START = {**CRASH, "has_claimed": False}
CRASH_IN_JOB = {**CRASH, "reason": "was killed by SIGSEGV", "has_run": True}
IN_A_ROW = 20


def crash(schedule, crash=CRASH):
    """A process crashes. Returns the pause before its replacement."""
    schedule.on_crash(**crash, redis_answered_at=0.0)
    return schedule.seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(fork_schedule, "time", clock)
    return clock


def test_forks_are_added_and_done(clock):
    schedule = ForkSchedule(2)
    schedule.on_forked()
    schedule.on_forked()
    assert (schedule.pending, schedule.is_due) == (0, False)

    schedule.add()
    assert (schedule.pending, schedule.is_due) == (1, True)
    schedule.clear()
    assert (schedule.pending, schedule.is_due) == (0, False)


def test_a_false_start_puts_off_all_forks_each_time_for_longer(clock):
    schedule, pauses = ForkSchedule(1), []
    for _ in range(8):
        schedule.on_crash(**FAILED_START, redis_answered_at=0.0)
        before = clock.now
        while not schedule.is_due:
            clock.now += 0.05
        pauses.append(clock.now - before)

    assert pauses == sorted(pauses)
    assert pauses[0] == pytest.approx(0.2, abs=0.1)
    assert pauses[-1] == pytest.approx(5.0, abs=0.1)


def test_false_starts_in_a_row_are_hopeless(clock):
    schedule = ForkSchedule(1)
    for number in range(MAX_FAILED_STARTS):
        assert not schedule.should_give_up, number
        clock.now += 1
        schedule.on_crash(**FAILED_START, redis_answered_at=clock.now - 0.5)

    assert schedule.should_give_up


def test_one_that_has_worked_breaks_the_row(clock):
    schedule = ForkSchedule(1)
    for number in range(3 * MAX_FAILED_STARTS):
        clock.now += 1
        schedule.on_crash(**(CRASH if number % 9 == 8 else FAILED_START), redis_answered_at=clock.now - 0.5)

    assert not schedule.should_give_up


def test_while_redis_does_not_answer_no_false_start_counts(clock):
    schedule, answered_at = ForkSchedule(1), clock.now
    for _ in range(5 * MAX_FAILED_STARTS):
        clock.now += 1
        schedule.on_crash(**FAILED_START, redis_answered_at=answered_at)
    assert not schedule.should_give_up

    # It is back, and that says nothing of those that died before.
    clock.now += 1
    schedule.on_crash(**FAILED_START, redis_answered_at=clock.now)
    assert not schedule.should_give_up


def test_early_crashes_in_a_row_are_followed_by_longer_and_longer_pauses(clock):
    schedule, pauses = ForkSchedule(0), []
    for _ in range(IN_A_ROW):
        pauses.append(round(crash(schedule), 6))
        assert schedule.crash_loop == (CRASH["reason"] if pauses[-1] else "")
        clock.now += pauses[-1] + CRASH["lived_seconds"]
        schedule.on_forked()

    assert pauses[: CRASHES_WITHOUT_PAUSE + 1] == [0.0] * CRASHES_WITHOUT_PAUSE + [pytest.approx(0.1)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == pytest.approx(MAX_PAUSE_SECONDS)
    clock.now += HEALTHY_SECONDS
    assert schedule.crash_loop == ""


@pytest.mark.parametrize(
    "how",
    [
        CRASH_IN_JOB,
        {**CRASH_IN_JOB, "has_claimed": False},  # in its first job
        {**CRASH, "lived_seconds": HEALTHY_SECONDS},  # somebody kills idle processes
    ],
)
def test_a_process_that_has_run_a_job_or_lived_long_is_replaced_at_once_each_time(clock, how):
    schedule = ForkSchedule(0)
    for _ in range(10 * IN_A_ROW):
        assert crash(schedule, how) == 0.0
        assert schedule.crash_loop == ""
        schedule.on_forked()
        clock.now += 0.01


def test_failed_starts_in_a_row_are_a_crash_loop(clock):
    schedule, told = ForkSchedule(1), []
    for _ in range(5):
        crash(schedule, FAILED_START)
        told.append(schedule.crash_loop)

    assert told == ["", "", *[FAILED_START["reason"]] * 3]


def test_crashes_are_counted_anew_after_a_healthy_time(clock):
    schedule = ForkSchedule(0)
    for _ in range(IN_A_ROW):
        clock.now += crash(schedule)
        schedule.on_forked()
    clock.now += HEALTHY_SECONDS

    assert crash(schedule) == 0.0


def test_a_pause_for_one_reason_delays_no_replacement_for_another(clock):
    schedule = ForkSchedule(0)
    for _ in range(IN_A_ROW):
        crash(schedule)
        schedule.on_forked()
    assert crash(schedule) == pytest.approx(MAX_PAUSE_SECONDS)

    assert crash(schedule, CRASH_IN_JOB) == 0.0
    schedule.on_forked()
    schedule.add()
    assert schedule.is_due  # one that was recycled
    schedule.on_forked()
    assert (schedule.pending, schedule.is_due) == (1, False)


def test_a_refused_fork_is_tried_again_later(clock):
    schedule = ForkSchedule(1)
    schedule.on_fork_failed()
    assert (schedule.pending, schedule.is_due) == (1, False)

    clock.now += 5
    assert schedule.is_due


def test_a_fork_waits_for_a_tick_and_not_for_ever(clock):
    schedule = ForkSchedule(2)
    assert not schedule.waited_long_enough()
    clock.now += 1.9
    assert not schedule.waited_long_enough()
    clock.now += 0.2
    assert schedule.waited_long_enough()

    schedule.on_forked()
    assert not schedule.waited_long_enough()

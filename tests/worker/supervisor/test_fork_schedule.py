"""How many processes are yet to be forked, and when a supervisor gives up."""

import pytest

from django_rtq.worker.supervisor import fork_schedule
from django_rtq.worker.supervisor.fork_schedule import MOST_FALSE_STARTS, ForkSchedule


class Clock:
    """time.monotonic() as the test wants it."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(fork_schedule, "time", clock)
    return clock


def test_places_are_opened_and_filled(clock):
    places = ForkSchedule(2)
    places.filled()
    places.filled()
    assert (places.count, places.are_due) == (0, False)

    places.open()
    assert (places.count, places.are_due) == (1, True)
    places.close()
    assert (places.count, places.are_due) == (0, False)


def test_a_false_start_puts_off_all_forks_each_time_for_longer(clock):
    places, pauses = ForkSchedule(1), []
    for _ in range(8):
        places.note_death(has_worked=False, answered_at=0.0)
        before = clock.now
        while not places.are_due:
            clock.now += 0.05
        pauses.append(clock.now - before)

    assert pauses == sorted(pauses)
    assert pauses[0] == pytest.approx(0.2, abs=0.1)
    assert pauses[-1] == pytest.approx(5.0, abs=0.1)


def test_false_starts_in_a_row_are_hopeless(clock):
    places = ForkSchedule(1)
    for number in range(MOST_FALSE_STARTS):
        assert not places.are_hopeless, number
        clock.now += 1
        places.note_death(has_worked=False, answered_at=clock.now - 0.5)

    assert places.are_hopeless


def test_one_that_has_worked_breaks_the_row(clock):
    places = ForkSchedule(1)
    for number in range(3 * MOST_FALSE_STARTS):
        clock.now += 1
        places.note_death(has_worked=number % 9 == 8, answered_at=clock.now - 0.5)

    assert not places.are_hopeless


def test_while_redis_does_not_answer_no_false_start_counts(clock):
    places, answered_at = ForkSchedule(1), clock.now
    for _ in range(5 * MOST_FALSE_STARTS):
        clock.now += 1
        places.note_death(has_worked=False, answered_at=answered_at)
    assert not places.are_hopeless

    # It is back, and that says nothing of those that died before.
    clock.now += 1
    places.note_death(has_worked=False, answered_at=clock.now)
    assert not places.are_hopeless


def test_a_refused_fork_is_tried_again_later(clock):
    places = ForkSchedule(1)
    places.refused()
    assert (places.count, places.are_due) == (1, False)

    clock.now += 5
    assert places.are_due


def test_a_fork_waits_for_a_tick_and_not_for_ever(clock):
    places = ForkSchedule(2)
    assert not places.has_waited()
    clock.now += 1.9
    assert not places.has_waited()
    clock.now += 0.2
    assert places.has_waited()

    places.filled()
    assert not places.has_waited()

"""Clients whose jobs crash processes step aside, for longer and longer, and are forgiven."""

import pytest

from django_rtq.core.worker import shared_memory as module
from django_rtq.core.worker.shared_memory import (
    CALM_SECONDS,
    FIRST_PAUSE_SECONDS,
    MAX_CLIENTS,
    MAX_PAUSE_SECONDS,
    CrashingClients,
)
from tests.core.worker.clocks import Clock

BAD, OTHER = ("mail", "bad"), ("mail", "other")


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def crashing(clock):
    return CrashingClients()


def pause_of(crashing, clock, client=BAD):
    """How long a client steps aside from now on."""
    began = clock.now
    while client in crashing.aside(is_trial=True):
        clock.now += FIRST_PAUSE_SECONDS / 10
    return clock.now - began


def test_without_a_crash_nobody_steps_aside(crashing):
    assert crashing.aside(is_trial=False) == crashing.aside(is_trial=True) == []


def test_the_pause_doubles_with_each_crash_and_has_an_end(crashing, clock):
    pauses = []
    for _ in range(8):
        crashing.note_crash([BAD])
        pauses.append(pause_of(crashing, clock))

    assert pauses[0] == pytest.approx(FIRST_PAUSE_SECONDS, rel=0.11)
    assert pauses[1] == pytest.approx(2 * FIRST_PAUSE_SECONDS, rel=0.11)
    assert pauses == sorted(pauses)
    assert pauses[-1] == pytest.approx(MAX_PAUSE_SECONDS, rel=0.11)


def test_crashes_of_jobs_that_were_claimed_before_the_pause_double_nothing(crashing, clock):
    for _ in range(8):
        crashing.note_crash([BAD])

    assert pause_of(crashing, clock) == pytest.approx(FIRST_PAUSE_SECONDS, rel=0.11)


def test_who_ran_beside_the_crash_of_another_waits_no_longer_each_time(crashing, clock):
    """Nobody knows whose job it was: the innocent must not be slowed down for as long as the others crash."""
    for _ in range(8):
        crashing.note_crash([BAD, OTHER])
        assert pause_of(crashing, clock, OTHER) == pytest.approx(FIRST_PAUSE_SECONDS, rel=0.11)


def test_most_processes_claim_nothing_of_them_until_they_are_calm(crashing, clock):
    crashing.note_crash([BAD])
    clock.now += FIRST_PAUSE_SECONDS
    assert (crashing.aside(is_trial=True), crashing.aside(is_trial=False)) == ([], [BAD])

    clock.now += CALM_SECONDS
    assert crashing.aside(is_trial=False) == []
    crashing.note_crash([BAD])
    assert pause_of(crashing, clock) == pytest.approx(FIRST_PAUSE_SECONDS, rel=0.11)


def test_who_may_go_on_first_comes_first(crashing, clock):
    crashing.note_crash([BAD])
    clock.now += FIRST_PAUSE_SECONDS / 2
    crashing.note_crash([("mail", "äöü €")])

    assert crashing.aside(is_trial=True) == [BAD, ("mail", "äöü €")]


def test_of_very_many_the_last_ones_are_known(crashing, clock):
    for number in range(10 * MAX_CLIENTS):
        crashing.note_crash([("q" * 60, f"{number:04}" + "😀" * 196)])

    aside = crashing.aside(is_trial=True)
    assert len(aside) == MAX_CLIENTS
    assert {int(client[:4]) for _, client in aside} == set(range(9 * MAX_CLIENTS, 10 * MAX_CLIENTS))


def test_a_text_that_is_being_written_is_not_read(crashing, clock):
    crashing.note_crash([BAD])
    assert crashing.aside(is_trial=True) == [BAD]
    number, until, _ = module._HEAD.unpack_from(crashing._memory)
    module._HEAD.pack_into(crashing._memory, 0, number + 1, until, 0)

    assert crashing.aside(is_trial=True) == [BAD]

"""Jobs that are claimed before there is a slot for them."""

import pytest

from django_rtq.core.worker.process.running import threaded_runner
from django_rtq.core.worker.process.running.batch import MAX_ACK_DELAY_SECONDS, MEAN_RUNS, ClaimAhead
from django_rtq.core.worker.shared_memory import Revoked
from tests.core.worker.process.running.fake_session import run_of
from tests.support.waiting import PATIENCE, wait_until


@pytest.fixture
def patient(monkeypatch):
    """Jobs may wait for a slot for as long as a test takes, and all jobs are short."""
    monkeypatch.setattr(threaded_runner, "MAX_ACK_DELAY_SECONDS", 60)


@pytest.fixture
def busy(make, journal):
    """A runner that claims ahead, with four slots, in which jobs wait at gates."""
    runner, session, shared = make(4)
    runner._ahead._mean_seconds = 0
    runner.run([run_of(gate, "gate", gate) for gate in "abcd"])
    wait_until(lambda: len(journal.names()) == 4)
    yield runner, session, shared
    open_gates(journal, "abcd", runner)


def open_gates(journal, gates, *runners):
    for gate in gates:
        journal.open(gate)
    wait_until(lambda: all(runner.is_idle for runner in runners))


def test_as_many_as_there_are_slots_while_jobs_are_short():
    ahead = ClaimAhead(4, MAX_ACK_DELAY_SECONDS)
    assert ahead.jobs == 0
    ahead.update(0.001)
    assert ahead.jobs == 4
    for _ in range(MEAN_RUNS):
        ahead.update(0.001)
    ahead.update(10 * 60)
    assert ahead.jobs == 4  # one long job among many that are short
    for _ in range(MEAN_RUNS):
        ahead.update(0.02)
    assert ahead.jobs == 0


def test_it_recovers_from_a_long_job_after_some_short_ones():
    ahead = ClaimAhead(4, MAX_ACK_DELAY_SECONDS)
    ahead.stop()
    for _ in range(3 * MEAN_RUNS):
        assert not ahead.jobs or ahead.jobs == 4
        ahead.update(0.001)
    assert ahead.jobs == 4


def test_a_runner_that_has_run_nothing_yet_claims_none_ahead(make, journal):
    runner, _, _ = make(4)
    runner.run([run_of(gate, "gate", gate) for gate in "abc"])
    assert runner.wanted() == 1
    open_gates(journal, "abc", runner)


def test_an_idle_runner_wants_as_many_as_it_has_slots(patient, busy, journal):
    runner, _, _ = busy
    assert runner.wanted() == 4  # ahead
    open_gates(journal, "abcd", runner)
    assert (runner.wanted(), runner.is_idle) == (4, True)


def test_the_next_one_starts_when_a_slot_is_free(patient, busy, journal):
    runner, session, shared = busy
    assert runner.run([run_of("e", "gate", "e"), run_of("f", "agate", "f")]) == 2
    assert (shared.waiting(), runner.wanted(), runner.is_idle) == (["e", "f"], 2, False)
    journal.open("a")
    journal.wait("start", "e")
    assert (shared.waiting(), sorted(shared.running())) == (["f"], ["b", "c", "d", "e"])
    journal.open("b")
    journal.wait("start", "f")
    assert shared.waiting() == []
    open_gates(journal, "cdef", runner)
    assert sorted(session.outcomes) == [b"a", b"b", b"c", b"d", b"e", b"f"]
    assert session.released == []


def test_a_job_that_cannot_be_read_leaves_its_slot_to_the_next(patient, busy, journal):
    runner, session, _ = busy
    runner.run([run_of("x" * 256), run_of("e")])
    journal.open("a")
    wait_until(lambda: b"e" in session.outcomes)
    assert sorted(journal.names()) == ["a", "b", "c", "d", "e"]


def test_jobs_that_wait_for_too_long_are_given_back_and_none_is_claimed_ahead_any_more(busy, journal):
    runner, session, shared = busy
    runner._ahead._mean_seconds = 0
    session.on_release = lambda: journal.open("a")
    assert runner.run([run_of(name) for name in ("e", "f", "g", "h")]) == 0

    assert session.released == [b"e", b"f", b"g", b"h"]
    assert (shared.waiting(), runner.wanted()) == ([], 1)
    assert sorted(journal.names()) == ["a", "b", "c", "d"]


def test_none_is_claimed_ahead_once_no_job_was_over_for_too_long(busy, journal):
    runner, _, _ = busy
    assert runner.wanted() == 4
    assert not runner.wait(0)
    assert runner.wanted() == 0


def test_all_that_wait_can_be_given_back(patient, busy, journal):
    runner, session, _ = busy
    runner.run([run_of("e"), run_of("f")])
    runner.release_waiting()
    runner.release_waiting()
    open_gates(journal, "abcd")

    wait_until(lambda: runner.is_idle)
    assert session.released == [b"e", b"f"]
    assert sorted(journal.names()) == ["a", "b", "c", "d"]
    assert runner.run([]) == -2  # they count as claimed, not as run


def test_what_the_supervisor_has_revoked_is_neither_run_nor_given_back(patient, busy, journal):
    runner, session, shared = busy
    runner.run([run_of("e"), run_of("f")])
    shared.revoke(Revoked.REST, shared.claim_number)
    journal.open("a")
    wait_until(lambda: b"a" in session.outcomes)
    assert (runner.wanted(), runner.wait(PATIENCE)) == (0, True)

    assert (session.forgotten, session.released) == ([b"e", b"f"], [])
    assert shared.revoked is Revoked.NOTHING
    assert runner.wanted() == 0  # the supervisor may not be done
    shared.revoke(Revoked.NOTHING)
    assert runner.wanted() == 5
    runner.run([run_of("g")])
    wait_until(lambda: b"g" in session.outcomes)


def test_suspects_are_not_claimed_ahead_of_others(patient, busy, journal):
    runner, _, _ = busy
    runner.run([run_of("e")])
    runner.note_claim(0, is_suspect_next=True)
    assert runner.wanted() == 0
    open_gates(journal, "abcd", runner)
    assert (runner.wanted(), runner.is_idle) == (4, True)

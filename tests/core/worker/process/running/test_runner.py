"""The runners: main thread, threads, event loop."""

import json
import signal
import threading
import time

import pytest

from django_rtq.core.worker import operating_system
from django_rtq.core.worker.outcome import ACKED, BURIED, RETRIED
from django_rtq.core.worker.process.running import threaded_runner
from django_rtq.core.worker.run import Run
from django_rtq.core.worker.shared_memory import Revoked
from tests.core.worker.process.running.fake_session import run_of
from tests.support.waiting import PATIENCE, wait_until


def keep_batches_whole(runner):
    """Do not cut batches that take long: on a busy machine they do, though no job is slow."""
    runner._watch.begin = lambda batch: None


def test_one_slot_runs_a_batch_in_order_and_the_page_is_clean_afterwards(make, journal):
    runner, session, shared = make(1)
    keep_batches_whole(runner)
    runner.run([run_of(f"job-{i}") for i in range(5)])

    assert journal.names() == [f"job-{i}" for i in range(5)]
    assert [outcome.verb for outcome in session.outcomes.values()] == [ACKED] * 5
    assert shared.running() == []
    assert runner.is_settled


@pytest.mark.parametrize("is_stopping", [False, True])
def test_a_process_that_is_to_rest_starts_none_of_the_jobs_that_it_has_claimed(make, journal, is_stopping):
    runner, session, shared = make(1)
    keep_batches_whole(runner)
    first, held = run_of("first"), run_of("held")
    opened = first.open

    def rest():
        shared.is_quiet = not is_stopping
        runner.hurry(is_stopping=is_stopping)
        opened()

    first.open = rest
    assert runner.run([first, held]) == 1
    assert runner.run([run_of("none"), run_of("either")]) == 0
    assert session.released == [b"held", b"none", b"either"]

    shared.is_quiet = False
    runner.run([run_of("next"), run_of("last")])
    assert journal.names() == (["first"] if is_stopping else ["first", "next", "last"])


@pytest.mark.parametrize("slots", [1, 2])
def test_what_the_supervisor_has_taken_is_not_run_and_not_given_back_once_more(make, journal, slots):
    runner, session, shared = make(slots)
    shared.revoke(Revoked.ALL)
    runner.run([run_of("one"), run_of("two")])

    assert journal.names() == []
    assert (session.released, session.forgotten) == ([], [b"one", b"two"])
    assert runner.is_idle
    shared.set_name("new")
    runner.run([run_of("three")])
    wait_until(lambda: runner.is_idle)
    assert journal.names() == ["three"]


def test_what_the_supervisor_took_while_a_job_ran_is_not_given_back_once_more(make, journal):
    runner, session, shared = make(1)
    keep_batches_whole(runner)
    run = run_of("taking", "sleep", 0)
    opened = run.open
    run.open = lambda: (shared.revoke(Revoked.REST, shared.claim_number), opened())
    runner.run([run, run_of("rest")])

    assert (session.released, session.forgotten) == ([], [b"rest"])
    runner.run([run_of("next")])
    assert journal.names()[-1] == "next"


@pytest.mark.parametrize("slots", [1, 2])
def test_a_job_whose_id_is_too_long_for_the_page_is_buried_unrun(make, journal, slots):
    runner, session, _ = make(slots)
    keep_batches_whole(runner)
    runner.run([run_of("x" * 256), run_of("good")])
    wait_until(lambda: runner.is_idle)

    assert [outcome.verb for outcome in session.outcomes.values()] == [BURIED, ACKED]
    assert journal.names() == ["good"]


@pytest.mark.parametrize("slots", [1, 2])
def test_what_may_run_only_once_is_told_before_anything_else_runs(make, journal, slots):
    runner, session, _ = make(slots)
    runner.run([run_of("once", max_crashes=0)])
    wait_until(lambda: runner.is_idle)
    runner.run([run_of("often")])
    wait_until(lambda: runner.is_idle)

    assert session.settled == [[b"once"]]


def test_slots_are_taken_until_their_jobs_are_over(make, journal):
    runner, session, shared = make(3)
    runner.run([run_of("sync", "gate", "one"), run_of("async", "agate", "two")])

    assert runner.wanted() == 1
    assert not runner.is_idle
    assert sorted(shared.running()) == ["async", "sync"]
    assert not runner.wait(0)
    journal.open("one")
    assert runner.wait(PATIENCE)
    runner.clear_finished_flag()
    assert list(session.outcomes) == [b"sync"]
    journal.open("two")
    assert runner.wait(PATIENCE)
    assert runner.is_idle
    assert shared.running() == []


def test_a_runner_is_not_settled_before_finished_jobs_are_reported(make, journal):
    runner, _, _ = make(2)
    runner.run([run_of("job")])
    wait_until(lambda: runner.is_idle)
    assert not runner.is_settled
    runner.clear_finished_flag()
    assert runner.is_settled


def test_a_suspect_waits_until_the_slots_are_empty_and_then_has_them_alone(make, journal):
    runner, _, _ = make(2)
    runner.run([run_of("beside", "gate", "one")])
    runner.note_claim(0, is_suspect_next=True)
    assert runner.wanted() == 0
    journal.open("one")
    wait_until(lambda: runner.is_idle)
    assert runner.wanted() == 2
    runner.run([run_of("suspect", "gate", "two", crashes=1)])
    runner.note_claim(0, is_suspect_next=False)
    assert runner.wanted() == 0
    journal.open("two")
    wait_until(lambda: runner.is_idle)
    assert runner.wanted() == 2


def test_suspects_that_came_together_run_beside_each_other_and_nothing_else_does(make, journal):
    runner, _, _ = make(4)
    assert runner.is_idle
    runner.run([run_of(name, "gate", name, crashes=1) for name in ("one", "two")])
    runner.note_claim(0, is_suspect_next=True)
    for gate in ("one", "two"):
        journal.wait("start", gate)
    for number, gate in enumerate(("one", "two"), 1):
        assert (runner.wanted(), runner.is_idle) == (0, False)
        journal.open(gate)
        wait_until(lambda number=number: runner._free == 2 + number)

    assert (runner.wanted(), runner.is_idle) == (4, True)


def test_jobs_that_end_together_are_settled_in_one_round_trip(make, journal, monkeypatch):
    """The main thread lets the second one end before it returns to claim."""
    runner, _, _ = make(3)
    sleep, gates = time.sleep, ["second", "third"]

    def end_one_more(seconds):
        if seconds == threaded_runner.GATHER_SECONDS:
            free = runner._free
            journal.open(gates.pop(0))
            while runner._free == free:
                sleep(0.001)
        else:
            sleep(seconds)

    runner.run([run_of("second", "gate", "second"), run_of("third", "gate", "third")])
    monkeypatch.setattr(threaded_runner.time, "sleep", end_one_more)
    threading.Timer(0.05, journal.open, ["first"]).start()
    runner.run([run_of("first", "gate", "first")])

    assert runner.wanted() == 3


def test_what_a_coroutine_raises_to_leave_does_not_end_the_event_loop(make, journal):
    runner, session, _ = make(2)
    for kind in ("SystemExit", "Interrupt", "Cancelled"):
        run = run_of(kind, "aleave", kind)
        run.record = run.record.replace(b'"args"', b'"time_limit": 5, "args"')
        runner.run([run])
        wait_until(lambda: runner.is_idle)
    runner.run([run_of("after", "asleep", 0)])
    wait_until(lambda: runner.is_idle)

    assert [outcome.verb for outcome in session.outcomes.values()] == [RETRIED, RETRIED, RETRIED, ACKED]


def test_a_runner_can_be_stopped_twice_and_before_it_ran_anything(make):
    for slots in (1, 2):
        runner, _, _ = make(slots)
        runner.stop()
        runner.stop()


def test_a_job_that_takes_signals_takes_them_from_none_that_was_claimed_with_it(make):
    runner, session, _ = make(1)
    keep_batches_whole(runner)
    before = {signum: signal.getsignal(signum) for signum in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)}
    own = operating_system.ignore_signal
    try:
        runner.handlers = [(signum, own) for signum in before]
        runner.run([signal_run("take_signals"), signal_run("handlers")])
        assert {signal.getsignal(signum) for signum in before} == {own}
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)

    assert json.loads(session.outcomes[b"handlers"].text)["result"][:3] == ["ignore_signal"] * 3


def signal_run(task):
    record = f"0 3 1 0 \n{json.dumps({'task': f'tests.app.signal_tasks.{task}'})}".encode()
    return Run("default", task.encode(), record, worker="w1", now_ms=1)

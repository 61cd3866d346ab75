"""Jobs that one call of a function gets, in the main thread and in threads."""

import json

import pytest

from django_rtq import signals
from django_rtq.core.worker.outcome import ACKED, CANCELLED, RETRIED, UNKNOWN_TASK
from django_rtq.core.worker.run import Run
from django_rtq.core.worker.shared_memory import Revoked, SharedState
from tests.app import batch_tasks
from tests.support.jobs import receiving
from tests.support.waiting import wait_until


def run_of(name, task="index", *args, crashes=0, max_crashes=3, worker="w1"):
    body = json.dumps({"task": f"tests.app.batch_tasks.{task}", "args": [name, *args]})
    record = f"0 {max_crashes} 1 0 \n{body}".encode()
    return Run("default", name.encode(), record, worker=worker, now_ms=1, counts=(0, crashes))


def together(names, *args, **options):
    """Runs that one call gets: the first of them."""
    first, *first_others = [run_of(name, *args, **options) for name in names]
    first.others = first_others
    return first


def batches(journal):
    return [entry.name for entry in journal.entries("batch")]


def kinds(session):
    return {job_id.decode(): outcome.verb for job_id, outcome in session.outcomes.items()}


@pytest.fixture(params=[1, 3])
def runner(request, make):
    """With one slot, and with several; it has the session and the shared memory."""
    runner, runner.session, runner.shared = make(request.param)
    if request.param == 1:
        runner._watch.begin = lambda batch: None  # on a busy machine it would cut batches that take long
    return runner


def ended(runner):
    wait_until(lambda: runner.is_idle)
    return kinds(runner.session)


def test_one_call_gets_them_and_each_has_its_outcome(runner, journal):
    assert runner.run([together("abc"), together("de")]) == 5

    assert ended(runner) == dict.fromkeys("abcde", ACKED)
    assert sorted(batches(journal)) == ["a b c", "d e"]
    assert runner.shared.running() == runner.shared.waiting() == []


def test_a_call_takes_one_slot_and_all_its_jobs_run(make, journal):
    runner, session, shared = make(2)
    runner.run([together("abc", "gate", "open")])
    journal.wait("batch", "a b c")

    assert (runner.is_idle, runner.wanted()) == (False, 1)
    assert sorted(shared.running()) == ["a", "b", "c"]

    journal.open("open")
    wait_until(lambda: runner.is_idle)
    assert kinds(session) == dict.fromkeys("abc", ACKED)


def test_the_time_of_a_call_is_shared_by_its_jobs(runner, journal):
    first = together("abcd", "sleep")

    runner.run([first])

    ended(runner)
    seconds = {run.seconds for run in (first, *first.others)}
    assert len(seconds) == 1
    assert seconds.pop() * 4 >= 0.02


def test_the_first_is_the_current_job_also_where_somebody_hears_that_they_start(runner):
    started = []
    with receiving(lambda job, **_: started.append(job.id), signals.job_started):
        runner.run([together("abc", "does")])
        ended(runner)

    assert sorted(started) == ["a", "b", "c"]
    assert [json.loads(outcome.text)["result"] for outcome in runner.session.outcomes.values()] == ["a"] * 3


def test_others_run_beside_jobs_of_other_tasks(runner, journal):
    runner.run([run_of("x", "double"), together("ab"), run_of("y", "unknown")])

    found = ended(runner)
    assert found.pop("y") is UNKNOWN_TASK
    assert found == dict.fromkeys("xab", ACKED)
    assert batches(journal) == ["a b"]


def test_one_that_is_asked_to_stop_does_not_stop_the_others(make, journal):
    runner, session, shared = make(2)
    runner.run([together(["a", "b", "c"], "gate_and_fail", "open")])
    journal.wait("batch", "a b c")
    shared.request_cancel("b")
    runner.cancel_jobs()
    journal.open("open")

    wait_until(lambda: runner.is_idle)

    assert kinds(session) == {"a": RETRIED, "b": CANCELLED, "c": RETRIED}


def test_revoked_jobs_do_not_start(make, journal):
    runner, session, shared = make(1)
    runner._watch.begin = lambda batch: None
    first = together("abc")
    start = shared.start

    def revoke_after_the_first(entry):
        if entry == 1:
            shared.revoke(Revoked.REST, shared.claim_number)
        return start(entry)

    shared.start = revoke_after_the_first
    runner.run([first])

    assert kinds(session) == {"a": ACKED}
    assert batches(journal) == ["a"]
    assert sorted(session.forgotten) == [b"b", b"c"]


def test_in_threads_revoked_jobs_do_not_start_either(make, journal):
    runner, session, shared = make(2)
    shared.set_name("w1")
    shared.revoke(Revoked.ALL, shared.claim_number)

    assert runner.run([together("abc")]) == 0

    assert session.outcomes == {}
    assert sorted(session.forgotten) == [b"a", b"b", b"c"]
    assert len(shared._free) == shared.entries


def test_jobs_that_wait_for_a_slot_are_given_back_together(make, journal):
    runner, session, _ = make(2)
    session.on_release = lambda: journal.open("open")

    assert runner.run([together(names, "gate", "open") for names in ("ab", "cd", "ef")]) == 4

    assert sorted(session.released) == [b"e", b"f"]
    wait_until(lambda: runner.is_idle)
    assert kinds(session) == dict.fromkeys("abcd", ACKED)


def test_a_process_that_is_to_rest_gives_all_of_them_back(make, journal):
    runner, session, _ = make(1)
    runner.hurry(is_stopping=True)

    assert runner.run([together("abc")]) == 0

    assert sorted(session.released) == [b"a", b"b", b"c"]


def test_a_process_without_memory_has_to_exit_and_none_has_failed(make, monkeypatch):
    runner, session, _ = make(1)
    monkeypatch.setattr(batch_tasks, "_tell", lambda calls: bytes(1 << 62))

    with pytest.raises(MemoryError):
        runner.run([together("abc")])
    assert session.outcomes == {}


def test_a_call_that_its_function_had_no_memory_for_fails_alone(make, journal):
    runner, session, _ = make(1)
    first = run_of("a", "pick", "memory")
    first.others = [run_of("b", "pick", "well")]
    runner.run([first])

    assert kinds(session) == {"a": RETRIED, "b": ACKED}


def test_jobs_that_must_not_run_twice_are_settled_before_the_next_begin(runner, journal):
    runner.run([together("ab", max_crashes=0)])

    assert ended(runner) == dict.fromkeys("ab", ACKED)
    assert [b"a", b"b"] in [sorted(ids) for ids in runner.session.settled]


def test_entries_are_for_as_many_jobs_as_may_run():
    shared = SharedState(3, together=100)

    assert shared.entries >= 3 * 200
    assert 3 * 100 <= shared.room <= shared.entries - 6
    assert SharedState(3).entries == 16
    assert SharedState(1, together=100).room == SharedState(1).room == 128

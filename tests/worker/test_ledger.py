"""What a child holds and has to tell."""

import os
import time

import pytest

from django_rtq import signals
from django_rtq.broker.broker import Fetched
from django_rtq.exceptions import BrokerUnavailable
from django_rtq.worker.outcome import Buried, Cancelled, Expired, Retried
from django_rtq.worker.process.session import Ledger
from django_rtq.worker.shared_memory import Page
from tests.seeds import QUEUE
from tests.snapshots import places_of, snapshot
from tests.worker.conservation import places
from tests.worker.ledgers import DONE, claim, enqueue


def test_names_are_never_used_again_and_fit_into_records_of_errors(broker):
    page = Page(1)
    ledger = Ledger(broker, page, [QUEUE], base_name='a "strange" \\name' + "x" * 100)
    names = set()
    for _ in range(5):
        ledger.sign_on()
        assert page.worker == ledger.worker
        names.add(ledger.worker)

    assert len(names) == 5
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-:_.") and len(name) <= 63 for name in names)
    assert all(f":{os.getpid()}:" in name for name in names)


def test_outcomes_are_told_with_the_next_claim(redis, broker, ledger):
    jobs = enqueue(broker, 5)
    acked, retried, buried, expired, released = claim(ledger)
    outcomes = [DONE, Retried(ValueError("x"), 60), Buried(ValueError("x")), Expired()]
    for run, outcome in zip([acked, retried, buried, expired], outcomes, strict=True):
        ledger.add(run, outcome)
    assert ledger.held == [released.job_id]
    ledger.release(ledger.held)
    ledger.fetch(0, idle=False)

    assert [places_of(redis, job) for job in jobs] == [
        ["finished"], ["scheduled"], ["dead"], ["finished"], ["lane:0:"],
    ]  # fmt: skip
    assert ledger.held == []
    assert not places_of_worker(redis, ledger)


def places_of_worker(redis, ledger):
    return [names for names in places(redis).values() if f"running:{ledger.worker}" in names]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_what_could_not_be_told_is_told_again_and_is_not_called_stale(redis, broker, ledger, stale, moment):
    enqueue(broker)
    (run,) = claim(ledger)
    ledger.add(run, DONE)
    redis.drop_connection(moment)
    with pytest.raises(BrokerUnavailable):
        ledger.fetch(1, idle=True)
    ledger.reconcile()

    assert places(redis) == {}
    assert stale == []


@pytest.mark.parametrize("moment", ["before", "after"])
def test_jobs_of_a_claim_that_got_lost_are_given_back(redis, broker, ledger, moment):
    enqueue(broker, 3)
    redis.drop_connection(moment)
    with pytest.raises(BrokerUnavailable):
        ledger.fetch(2, idle=True)
    ledger.reconcile()

    assert set(map(tuple, places(redis).values())) == {("lane:0:",)}
    assert len(claim(ledger)) == 3


def test_a_job_that_ends_while_the_books_are_compared_is_not_given_back(redis, broker, ledger):
    """Its outcome is noted and not told yet: given back, it would run twice."""
    enqueue(broker, 2)
    one, other = claim(ledger)
    ledger.doubt()
    running = broker.running

    def end_meanwhile(*arguments):
        answer = running(*arguments)
        ledger.add(one, DONE)
        return answer

    broker.running = end_meanwhile
    ledger.reconcile()
    ledger.settle()

    assert ledger.held == [other.job_id]
    assert {job_id.encode(): names for job_id, names in places(redis).items()} == {
        other.job_id: [f"running:{ledger.worker}"]
    }


def lose_a_claim(redis, broker, ledger):
    """Gives the command of the claim up: it may still reach the server at any time."""
    late = broker.claim_command(ledger.worker, [QUEUE], 1)
    redis.drop_connection("before")
    with pytest.raises(BrokerUnavailable):
        ledger.fetch(1, idle=True)
    return late


def test_a_claim_that_was_given_up_and_comes_late_gets_nothing(redis, broker, ledger):
    enqueue(broker)
    former = ledger.worker
    late = lose_a_claim(redis, broker, ledger)
    ledger.reconcile()

    assert broker.wire.one(late)[0][0] == b"unknown"
    assert list(places(redis).values()) == [["lane:0:"]]
    assert ledger.worker != former
    assert len(claim(ledger)) == 1


def test_a_claim_that_comes_late_while_the_name_is_given_up_keeps_nothing(redis, broker, ledger):
    enqueue(broker, 2)
    late = lose_a_claim(redis, broker, ledger)
    sign_off, calls = broker.sign_off, []

    def be_late(*arguments):
        if not calls:
            broker.wire.one(late)
        calls.append(arguments)
        return sign_off(*arguments)

    broker.sign_off = be_late
    ledger.reconcile()

    assert len(calls) == 2
    assert list(places(redis).values()) == [["lane:0:"]] * 2
    assert len(claim(ledger)) == 2


def test_the_answer_to_a_claim_is_not_believed_when_it_is_read_late(redis, broker, ledger):
    enqueue(broker)
    fetched = Fetched(claimed=broker.claim(ledger.worker, [QUEUE], 1))
    with pytest.raises(BrokerUnavailable, match="s, too late to believe it"):
        ledger.hold(fetched, asked_at=time.monotonic() - broker.config.lease_seconds / 2 - 0.1)
    assert ledger.held == []
    ledger.reconcile()

    assert list(places(redis).values()) == [["lane:0:"]]


def test_who_holds_jobs_keeps_its_name_and_looks_again(redis, broker, ledger, monkeypatch):
    enqueue(broker, 2)
    (held,) = claim(ledger, 1)
    former = ledger.worker
    late = lose_a_claim(redis, broker, ledger)
    ledger.reconcile()
    broker.wire.one(late)  # the server has hung for longer than we
    ledger.reconcile()  # not again so soon
    assert len(broker.running(former, [QUEUE])[QUEUE]) == 2

    monkeypatch.setattr("django_rtq.worker.process.session.LOOK_AGAIN_SECONDS", 0.0)
    ledger.doubt()
    ledger.reconcile()
    assert broker.running(former, [QUEUE])[QUEUE] == [held.job_id]
    assert ledger.worker == former

    ledger.add(held, DONE)
    ledger.reconcile()
    assert ledger.worker != former
    assert broker.wire.one(late)[0][0] == b"unknown"
    assert len(claim(ledger)) == 1


def test_a_run_of_a_former_name_changes_nothing_not_even_when_the_job_came_back(redis, broker, ledger, stale):
    enqueue(broker)
    (late,) = claim(ledger)
    former = ledger.worker
    broker.reclaim_child(QUEUE, former, [])
    ledger.sign_on()
    (again,) = claim(ledger)
    before = snapshot(redis)
    ledger.add(late, Retried(ValueError("late"), 0))
    ledger.settle()

    assert stale == [late.job_id.decode()]
    assert snapshot(redis) == before
    assert ledger.held == [again.job_id]


def test_a_result_that_comes_too_late_is_said_to(redis, broker, ledger, stale):
    enqueue(broker)
    (run,) = claim(ledger)
    broker.reclaim_child(QUEUE, ledger.worker, [])
    ledger.add(run, DONE)
    ledger.settle()

    assert stale == [run.job_id.decode()]


def test_nothing_to_tell_takes_no_round_trip(redis, ledger):
    calls = redis.info("commandstats")["cmdstat_evalsha"]["calls"]
    ledger.settle()
    ledger.reconcile()

    assert redis.info("commandstats")["cmdstat_evalsha"]["calls"] == calls


def test_a_receiver_that_fails_does_no_harm(redis, broker, ledger):
    def fail(**kwargs):
        raise RuntimeError("a receiver")

    enqueue(broker, 2)
    one, other = claim(ledger)
    for signal in (signals.job_succeeded, signals.job_buried):
        signal.connect(fail)
    try:
        ledger.add(one, DONE)
        ledger.add(other, Buried(ValueError("x")))
    finally:
        for signal in (signals.job_succeeded, signals.job_buried):
            signal.disconnect(fail)
    ledger.settle()

    assert list(places(redis).values()) == [["dead"]]


def test_a_job_that_stopped_is_told_and_said_to_be_cancelled(redis, broker, ledger, inspector):
    heard = []
    signals.job_cancelled.connect(lambda **said: heard.append(said["job_id"]), weak=False, dispatch_uid="test")
    (job,) = enqueue(broker)
    (run,) = claim(ledger)
    try:
        ledger.add(run, Cancelled())
    finally:
        signals.job_cancelled.disconnect(dispatch_uid="test")
    ledger.settle()

    details = inspector.find(job.id)
    assert (details.state, details.task, details.attempt) == ("cancelled", "tests.app.tasks.note", 1)
    assert heard == [job.id]


def test_how_far_a_job_is_is_told_under_the_name_that_claimed_it(redis, broker, ledger, inspector):
    enqueue(broker, 2)
    first, second = claim(ledger)
    former = ledger.worker
    ledger.sign_on()
    line = '{"done":1,"total":null,"text":""}'
    ledger.tell_progress(
        {
            (former, QUEUE, first.job_id.decode()): line,
            (ledger.worker, QUEUE, second.job_id.decode()): line,
        }
    )

    assert inspector.find(first.job_id.decode()).progress.done == 1
    assert inspector.find(second.job_id.decode()).progress is None

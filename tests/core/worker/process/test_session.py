"""The session: claimed jobs, and outcomes to report."""

import os
import time

import pytest

from django_rtq import signals
from django_rtq.core.broker.worker_broker import ClaimResult
from django_rtq.core.worker.outcome import BURIED, CANCELLED, EXPIRED, RETRIED, Outcome
from django_rtq.core.worker.process.session import WorkerSession
from django_rtq.core.worker.supervisor.heartbeat import Heartbeat
from django_rtq.exceptions import BrokerUnavailable, TimeLimitExceeded
from tests.core.worker.claimed_runs import BODY, DONE, claim, claim_new, enqueue
from tests.core.worker.conservation import places
from tests.support.jobs import QUEUE, queued_job, receiving
from tests.support.snapshots import places_of, snapshot


def test_names_are_never_used_again_and_fit_into_records_of_errors(broker, shared):
    session = WorkerSession(broker, shared, [QUEUE], base_name='a "strange" \\name' + "x" * 100)
    names = set()
    for _ in range(5):
        session.sign_on()
        assert shared.worker == session.worker
        names.add(session.worker)

    assert len(names) == 5
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-:_.") and len(name) <= 63 for name in names)
    assert all(f":{os.getpid()}:" in name for name in names)


def test_outcomes_are_told_with_the_next_claim(redis, broker, session):
    jobs = enqueue(broker, 5)
    acked, retried, buried, expired, released = claim(session)
    outcomes = [DONE, Outcome(RETRIED, ValueError("x"), 60), Outcome(BURIED, ValueError("x")), Outcome(EXPIRED)]
    for run, outcome in zip([acked, retried, buried, expired], outcomes, strict=True):
        session.add(run, outcome)
    assert session.held == [released.job_id]
    session.release(session.held)
    session.fetch(0, idle=False)

    assert [places_of(redis, job) for job in jobs] == [
        ["finished"], ["scheduled"], ["dead"], ["finished"], ["lane:0:"],
    ]  # fmt: skip
    assert session.held == []
    assert not [names for names in places(redis).values() if f"running:{session.worker}" in names]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_what_could_not_be_told_is_told_again_and_is_not_called_stale(redis, broker, session, stale, moment):
    (run,) = claim_new(broker, session)
    session.add(run, DONE)
    redis.drop_connection(moment)
    with pytest.raises(BrokerUnavailable):
        session.fetch(1, idle=True)
    session.reconcile()

    assert places(redis) == {}
    assert stale == []


@pytest.mark.parametrize("moment", ["before", "after"])
def test_jobs_of_a_claim_that_got_lost_are_given_back(redis, broker, session, moment):
    enqueue(broker, 3)
    redis.drop_connection(moment)
    with pytest.raises(BrokerUnavailable):
        session.fetch(2, idle=True)
    session.reconcile()

    assert set(map(tuple, places(redis).values())) == {("lane:0:",)}
    assert len(claim(session)) == 3


def test_a_job_that_ends_while_the_books_are_compared_is_not_given_back(redis, broker, session):
    """Its outcome is noted and not told yet: given back, it would run twice."""
    one, other = claim_new(broker, session, 2)
    session.mark_uncertain()
    running = broker.running

    def end_meanwhile(*arguments):
        answer = running(*arguments)
        session.add(one, DONE)
        return answer

    broker.running = end_meanwhile
    session.reconcile()
    session.settle()

    assert session.held == [other.job_id]
    assert {job_id.encode(): names for job_id, names in places(redis).items()} == {
        other.job_id: [f"running:{session.worker}"]
    }


def lose_a_claim(redis, broker, session):
    """Gives the command of the claim up: it may still reach the server at any time."""
    late = broker.claim_command(session.worker, [QUEUE], 1)
    redis.drop_connection("before")
    with pytest.raises(BrokerUnavailable):
        session.fetch(1, idle=True)
    return late


def test_a_claim_that_was_given_up_and_comes_late_gets_nothing(redis, broker, session):
    enqueue(broker)
    former = session.worker
    late = lose_a_claim(redis, broker, session)
    session.reconcile()

    assert broker.redis.execute_one(late)[2] == b"unknown"
    assert list(places(redis).values()) == [["lane:0:"]]
    assert session.worker != former
    assert len(claim(session)) == 1


def test_a_claim_that_comes_late_while_the_name_is_given_up_keeps_nothing(redis, broker, session):
    enqueue(broker, 2)
    late = lose_a_claim(redis, broker, session)
    sign_off, calls = broker.sign_off, []

    def be_late(*arguments):
        if not calls:
            broker.redis.execute_one(late)
        calls.append(arguments)
        return sign_off(*arguments)

    broker.sign_off = be_late
    session.reconcile()

    assert len(calls) == 2
    assert list(places(redis).values()) == [["lane:0:"]] * 2
    assert len(claim(session)) == 2


def test_the_answer_to_a_claim_is_not_believed_when_it_is_read_late(redis, broker, session):
    enqueue(broker)
    fetched = ClaimResult(claimed=broker.claim(session.worker, [QUEUE], 1).claimed)
    lease = broker.config.lease_seconds
    session._shared.renewed_at = time.monotonic() - lease * 2 / 3 - 0.1
    with pytest.raises(BrokerUnavailable, match="s, too late to be valid"):
        session.hold(fetched, asked_at=time.monotonic() - lease / 2 - 0.1)
    assert session.held == []
    session.reconcile()

    assert list(places(redis).values()) == [["lane:0:"]]


def test_the_answer_to_a_claim_that_blocked_for_long_is_believed_while_the_lease_is_valid(broker, session):
    enqueue(broker)
    fetched = ClaimResult(claimed=broker.claim(session.worker, [QUEUE], 1).claimed)
    session._shared.renewed_at = time.monotonic() - broker.config.lease_seconds / 2

    session.hold(fetched, asked_at=time.monotonic() - 1000)

    assert len(session.held) == 1


def test_who_holds_jobs_keeps_its_name_and_looks_again(redis, broker, session, monkeypatch):
    (held,) = claim_new(broker, session, 2, wanted=1)
    former = session.worker
    late = lose_a_claim(redis, broker, session)
    session.reconcile()
    broker.redis.execute_one(late)  # the server has hung for longer than we
    session.reconcile()  # not again so soon
    assert len(broker.running(former, [QUEUE])[QUEUE]) == 2

    monkeypatch.setattr("django_rtq.core.worker.process.session.CHECK_AGAIN_SECONDS", 0.0)
    session.mark_uncertain()
    session.reconcile()
    assert broker.running(former, [QUEUE])[QUEUE] == [held.job_id]
    assert session.worker == former

    session.add(held, DONE)
    session.reconcile()
    assert session.worker != former
    assert broker.redis.execute_one(late)[2] == b"unknown"
    assert len(claim(session)) == 1


def test_a_run_of_a_former_name_changes_nothing_not_even_when_the_job_came_back(redis, broker, session, stale):
    (late,) = claim_new(broker, session)
    former = session.worker
    broker.reclaim_child(QUEUE, former, [])
    session.sign_on()
    (again,) = claim(session)
    before = snapshot(redis)
    session.add(late, Outcome(RETRIED, ValueError("late"), 0))
    session.settle()

    assert stale == [late.job_id.decode()]
    assert snapshot(redis) == before
    assert session.held == [again.job_id]


def test_nothing_to_tell_takes_no_round_trip(redis, session):
    calls = redis.info("commandstats")["cmdstat_evalsha"]["calls"]
    session.settle()
    session.reconcile()

    assert redis.info("commandstats")["cmdstat_evalsha"]["calls"] == calls


def test_a_job_that_stopped_is_told_and_said_to_be_cancelled(redis, broker, session, readers):
    heard = []
    (job,) = enqueue(broker)
    (run,) = claim(session)
    with receiving(lambda job_id, **_: heard.append(job_id), signals.job_cancelled):
        session.add(run, Outcome(CANCELLED))
    session.settle()

    details = readers.find(job.id)
    assert (details.state, details.task, details.attempt) == ("cancelled", "tests.app.tasks.note", 1)
    assert heard == [job.id]


def test_how_far_a_job_is_is_told_under_the_name_that_claimed_it(redis, broker, session, readers):
    first, second = claim_new(broker, session, 2)
    former = session.worker
    session.sign_on()
    line = '{"done":1,"total":null,"text":""}'
    session.report_progress(
        {
            (former, QUEUE, first.job_id.decode()): line,
            (session.worker, QUEUE, second.job_id.decode()): line,
        }
    )

    assert readers.find(first.job_id.decode()).progress.done == 1
    assert readers.find(second.job_id.decode()).progress is None


@pytest.mark.parametrize("verb", [RETRIED, BURIED])
def test_a_client_whose_job_runs_into_its_time_limit_steps_aside_in_this_process(broker, session, verb):
    for _ in range(4):
        queued_job(broker, body=BODY, client="slow")
    first, second, third = claim(session, 3)
    session.add(first, Outcome(RETRIED, ValueError("other errors do not count"), 1.0))
    session.add(third, DONE)
    assert session._shared.clients_aside() == []

    session.add(second, Outcome(verb, TimeLimitExceeded("too long"), 1.0))
    assert session._shared.clients_aside() == [(QUEUE, "slow")]

    queued_job(broker, body=BODY, client="other")
    assert [run.client for run in claim(session, 1)] == [b"other"]
    assert [run.client for run in claim(session, 1)] == [b"slow"]  # nobody else has a job


def test_a_lease_that_has_expired_is_lost_until_there_is_a_new_name(broker, session):
    shared = session._shared
    heartbeat = Heartbeat(broker, [QUEUE], lambda: [(os.getpid(), shared)], promotes=False)
    broker.sign_off([QUEUE], session.worker)
    heartbeat.tick()
    assert session.has_lost_lease  # though no heartbeat has renewed it before

    session.sign_on()
    heartbeat.tick()
    assert not session.has_lost_lease
    broker.sign_off([QUEUE], session.worker)  # as if it had expired
    heartbeat.tick()
    assert session.has_lost_lease

    session.sign_on()
    assert not session.has_lost_lease
    heartbeat.tick()
    assert not session.has_lost_lease

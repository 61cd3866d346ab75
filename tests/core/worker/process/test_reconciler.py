"""A worker compares its jobs with its processing list in Redis."""

import time

import pytest

from django_rtq import signals
from django_rtq.core.broker.redis.speedups import _is_open
from django_rtq.core.worker.process.session import Reconciler
from django_rtq.exceptions import BrokerUnavailable
from tests.core.worker.claimed_runs import DONE, claim, claim_new, enqueue
from tests.core.worker.conservation import places
from tests.support.jobs import QUEUE, receiving
from tests.support.waiting import start_thread, wait_until


class Comparisons:
    """Stands for a session: counts its comparisons, and fails as often as it is told to."""

    def __init__(self):
        self.number, self.failures, self.has_jobs = 0, 0, False

    def reconcile_held(self):
        self.number += 1
        if self.failures:
            self.failures -= 1
            raise BrokerUnavailable("away")


@pytest.fixture
def make():
    """A reconciler with a lease of so many seconds, and what it calls."""
    made = []

    def make(lease_seconds):
        comparisons = Comparisons()
        reconciler = Reconciler(comparisons.reconcile_held, lambda: comparisons.has_jobs, lease_seconds=lease_seconds)
        made.append(reconciler)
        return reconciler, comparisons

    yield make
    for reconciler in made:
        reconciler.stop()
        reconciler.stop()


def begin(reconciler, comparisons):
    comparisons.has_jobs = True
    reconciler.note_jobs()


def test_who_has_no_jobs_is_not_compared_and_has_no_timer(make):
    reconciler, comparisons = make(0.01)
    reconciler.note_jobs()
    wait_until(lambda: reconciler._is_asleep)
    begin(reconciler, comparisons)
    wait_until(lambda: comparisons.number >= 1)
    comparisons.has_jobs = False
    wait_until(lambda: reconciler._is_asleep)
    time.sleep(0.05)  # a comparison may have been under way
    before = comparisons.number
    time.sleep(0.1)
    assert comparisons.number == before
    begin(reconciler, comparisons)

    wait_until(lambda: comparisons.number > before)


def test_who_has_many_short_jobs_does_not_wake_the_thread_with_each(make):
    reconciler, comparisons = make(3600)
    begin(reconciler, comparisons)
    wait_until(lambda: not reconciler._is_asleep and not reconciler._wake_event.is_set())
    wakes = []
    reconciler._wake_event.set = lambda: wakes.append(1)
    for _ in range(10):
        reconciler.note_jobs()  # all jobs are over again whenever the thread looks
    del reconciler._wake_event.set

    assert (wakes, comparisons.number) == ([], 0)


def test_a_reason_to_compare_ends_the_pause(make):
    reconciler, comparisons = make(3600)
    begin(reconciler, comparisons)
    wait_until(lambda: not reconciler._is_asleep)
    assert comparisons.number == 0
    reconciler.reconcile_soon()

    wait_until(lambda: comparisons.number == 1)


def test_it_tries_again_until_redis_answers(make):
    reconciler, comparisons = make(3600)
    comparisons.failures = 2
    begin(reconciler, comparisons)
    reconciler.reconcile_soon()

    wait_until(lambda: comparisons.number == 3)
    wait_until(lambda: not reconciler._is_due)


# What a session finds


def older(redis):
    """Brings the queue back to what it is now, in another connection, as a server that lost its last moments."""
    dumps = {key: redis.dump(key) for key in redis.scan_iter("{*}:*", count=1000)}

    def restore():
        with redis.pipeline(transaction=True) as pipe:  # nobody sees half of it
            pipe.delete(*redis.scan_iter("{*}:*", count=1000))
            for key, dump in dumps.items():
                pipe.restore(key, 0, dump)
            pipe.execute()

    return restore


def held_by(redis, session):
    name = f"running:{session.worker}"
    return sorted(job_id.encode() for job_id, names in places(redis).items() if names == [name])


@pytest.fixture
def one_lost(redis, broker, session):
    """Of three jobs one was acknowledged, and Redis has forgotten it. Two are held."""
    runs = claim_new(broker, session, 3)
    restore = older(redis)
    session.add(runs[0], DONE)
    session.settle()
    restore()
    return runs


def test_a_job_that_redis_brought_back_is_given_back_when_another_is_stale(redis, broker, session, stale):
    """The connection was not cut: that the next outcome comes too late is all there is to see."""
    (lost,) = claim_new(broker, session, 2, wanted=1)
    restore = older(redis)
    session.add(lost, DONE)
    session.fetch(0, idle=False)
    (current,) = claim(session, 1)
    restore()
    session.add(current, DONE)
    session.fetch(0, idle=False)
    session.reconcile()

    assert stale == [current.job_id.decode()]
    assert set(map(tuple, places(redis).values())) == {("lane:0:",)}
    assert len(claim(session)) == 2


def test_a_connection_that_was_cut_is_a_reason_to_compare(redis, broker, session, one_lost):
    assert held_by(redis, session) == sorted(run.job_id for run in one_lost)
    redis.client_kill_filter(_type="normal", skipme=True)
    wait_until(lambda: not any(map(_is_open, broker.redis.connections._idle)))
    assert not session.needs_reconcile
    session.fetch(1, idle=False)  # it is made anew without an error
    session.reconcile()

    lost, *held = one_lost
    assert places(redis)[lost.job_id.decode()] == ["lane:0:"]
    assert held_by(redis, session) == sorted(run.job_id for run in held)


def test_nothing_is_asked_without_a_reason(redis, broker, session, one_lost):
    calls = redis.info("commandstats").get("cmdstat_hkeys", {}).get("calls", 0)
    session.reconcile()
    session.reconcile(max_age_seconds=3600)

    assert redis.info("commandstats").get("cmdstat_hkeys", {}).get("calls", 0) == calls


@pytest.fixture
def thread_looks(session):
    session._reconciler._lease_seconds = 0.1


def test_who_has_a_job_is_compared_by_a_thread_while_it_runs(redis, broker, session, thread_looks, one_lost):
    lost, *held = one_lost
    wait_until(lambda: places(redis).get(lost.job_id.decode()) == ["lane:0:"])

    assert held_by(redis, session) == sorted(run.job_id for run in held)


def test_who_has_nothing_may_be_waiting_for_a_claim_which_is_left_alone(redis, broker, session):
    """Its answer is on the way: what it brings is known a moment later."""
    enqueue(broker)
    broker.redis.execute_one(broker.claim_command(session.worker, [QUEUE], 1))
    before = held_by(redis, session)
    session.reconcile_held()

    assert held_by(redis, session) == before != []


def test_what_is_being_claimed_is_not_given_back(redis, broker, session):
    (held,) = claim_new(broker, session, 2, wanted=1)
    claim_jobs, threads = broker.claim, []

    def compare_meanwhile(*arguments, **options):
        answer = claim_jobs(*arguments, **options)
        threads.append(start_thread(session.reconcile_held))
        threads[0].join(0.2)
        return answer

    broker.claim = compare_meanwhile
    try:
        (claimed,) = claim(session, 1)
    finally:
        del broker.claim
    threads[0].join()

    assert held_by(redis, session) == sorted([held.job_id, claimed.job_id])


def test_who_claims_nothing_and_holds_nothing_is_compared_now_and_then(redis, broker, session):
    (run,) = claim_new(broker, session)
    restore = older(redis)
    session.add(run, DONE)
    session.settle()
    restore()
    session.reconcile(max_age_seconds=0.0)

    assert places(redis)[run.job_id.decode()] == ["lane:0:"]


def test_a_comparison_that_failed_is_repeated(redis, broker, session, one_lost, monkeypatch):
    monkeypatch.setattr(session._reconciler, "reconcile_soon", lambda: None)  # its thread would compare, too
    session.reconcile_soon()
    running = broker.running

    def be_away(*arguments):
        raise BrokerUnavailable("away")

    broker.running = be_away
    with pytest.raises(BrokerUnavailable):
        session.reconcile()
    broker.running = running
    assert session.needs_reconcile
    session.reconcile()

    assert places(redis)[one_lost[0].job_id.decode()] == ["lane:0:"]
    assert not session.needs_reconcile


def test_of_outcomes_that_were_sent_twice_only_those_of_others_are_said_to_be_late(redis, broker, session, stale):
    resent, late = claim_new(broker, session, 2)
    session.add(resent, DONE)
    redis.drop_connection("after")
    with pytest.raises(BrokerUnavailable):
        session.fetch(0, idle=False)
    broker.reclaim_child(QUEUE, session.worker, [])
    session.add(late, DONE)
    session.settle()

    assert stale == [late.job_id.decode()]


def test_who_has_an_outcome_to_tell_keeps_its_name_until_it_is_told(redis, broker, session):
    (run,) = claim_new(broker, session)
    name = session.worker
    session.mark_uncertain()
    running, told = broker.running, []

    def end_meanwhile(*arguments):
        answer = running(*arguments)
        session.add(run, DONE)
        return answer

    broker.running = end_meanwhile
    with receiving(lambda **said: told.append(said), signals.job_stale):
        session.reconcile()
        assert session.worker == name
        assert session.has_outcomes
        broker.running = running
        session.settle()

    assert (told, places(redis)) == ([], {})

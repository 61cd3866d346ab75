"""What a job waits for."""

from dataclasses import replace

from django_rtq.console.reading.details import NO_HOLDS, Holds
from tests.support.jobs import (
    QUEUE,
    WORKER,
    claim,
    claimed_job,
    enqueue,
    held_job,
    let_lapse,
    queued_job,
    unique_job,
)
from tests.support.snapshots import snapshot


def standing(readers, job):
    return readers.find_with_position(job.id, QUEUE)[1]


def test_it_comes_with_the_job_and_changes_nothing(redis, broker, readers):
    job = queued_job(broker)
    before = snapshot(redis)

    details, found = readers.find_with_position(job.id)

    assert (details.log, details.queue) == ([], QUEUE)
    assert replace(details, log=(), steps=()) == readers.find(job.id)
    assert (found.workers, found.ahead, found.clients_ahead, found.after, found.promoted_at) == (0, 0, 0, "", None)
    assert (found.queue_holds, found.client_holds, found.are_workers_busy) == (NO_HOLDS, NO_HOLDS, False)
    assert snapshot(redis) == before


def test_jobs_of_its_own_client_are_counted_up_to_a_thousand(broker, readers):
    jobs = [queued_job(broker, client="x") for _ in range(3)]
    other = queued_job(broker, client="y")
    for _ in range(1200):
        last = queued_job(broker, client="z")

    assert [standing(readers, job).ahead for job in (*jobs, other, last)] == [0, 1, 2, 0, 1000]


def test_workers_count_while_their_lease_lasts(broker, readers):
    job = queued_job(broker)
    broker.sign_on([QUEUE], WORKER)
    broker.sign_on([QUEUE], "w2")
    let_lapse(broker, "w2")

    assert standing(readers, job).workers == 1


def test_a_job_that_runs_after_another_names_it(broker, readers):
    first, successor = held_job(broker, "a"), unique_job("b", on_conflict="rerun")
    enqueue(broker, successor)

    assert standing(readers, successor).after == first.id
    assert standing(readers, first).after == ""


def test_what_runs_is_in_no_lane(broker, readers):
    assert standing(readers, claimed_job(broker)).ahead is None


def test_limits_that_hold_it_up_are_told(broker, readers, rtq):
    waiting, other = queued_job(broker, client="x"), queued_job(broker, client="y")
    found = standing(readers, waiting)
    assert (found.client_holds, found.queue_holds) == (NO_HOLDS, NO_HOLDS)

    rtq.clients["x"].pause(QUEUE, by="eve")
    rtq.queues[QUEUE].limit_clients(max_running=0)
    rtq.queues[QUEUE].limit(max_running=1)

    found = standing(readers, waiting)
    assert 0 <= found.client_holds.paused_seconds < 60
    assert (found.client_holds.paused_by, found.queue_holds) == ("eve", NO_HOLDS)
    assert standing(readers, other).client_holds == Holds(at_limit=0)
    rtq.queues[QUEUE].limit(max_running=0)
    assert standing(readers, other).queue_holds == Holds(at_limit=0)


def test_rates_that_hold_it_up_are_told(broker, readers, rtq):
    rtq.clients["x"].limit(QUEUE, rate="1/h")
    rtq.queues[QUEUE].limit(rate="2/h", burst=2)
    claimed_job(broker, client="x")
    waiting, other = queued_job(broker, client="x"), queued_job(broker, client="y")

    found = standing(readers, waiting)
    assert 3500 < found.client_holds.starts_in_seconds <= 3600
    assert (found.client_holds.at_limit, found.queue_holds) == (None, NO_HOLDS)
    assert standing(readers, other).client_holds == NO_HOLDS

    assert claim(broker, 5) == [other.id]
    found = standing(readers, queued_job(broker))
    assert 1700 < found.queue_holds.starts_in_seconds <= 1800
    assert found.queue_holds.at_limit is None


def test_clients_whose_turn_comes_first_are_counted(broker, readers, rtq):
    rtq.clients["paused"].pause(QUEUE)
    jobs = [queued_job(broker, client=client) for client in ("paused", "x", "y", "z")]
    claim(broker)  # x had its turn, and the paused one has left the ring
    behind = queued_job(broker, client="x")
    urgent = queued_job(broker, client="y", priority=5)

    assert standing(readers, jobs[0]).clients_ahead is None
    assert [standing(readers, job).clients_ahead for job in (urgent, jobs[2], jobs[3], behind)] == [0, 1, 2, 3]


def test_no_worker_is_idle_while_nobody_takes_the_signal(broker, readers):
    job = queued_job(broker)
    assert not standing(readers, job).are_workers_busy  # there are none

    broker.sign_on([QUEUE], WORKER)
    assert standing(readers, job).are_workers_busy
    queued_job(broker)
    claim(broker)
    assert standing(readers, queued_job(broker)).are_workers_busy

"""gone -> queued, scheduled, retrying: a purge is undone."""

import pytest

from django_rtq.inspector.jobs import undo
from tests.support import sweeps
from tests.support.jobs import (
    QUEUE,
    WORKER,
    claim,
    claim_all,
    claimed_job,
    dead_job,
    held_job,
    let_fall_due,
    new_job,
    queued_job,
    retrying_job,
    scheduled_job,
    settle,
    unique_job,
)
from tests.support.single_steps import promote
from tests.support.snapshots import snapshot

TOKEN = undo.new_token("purge")
CHARGE = '{"task":"charge"}'


def purge(inspector, client=None):
    """Purge all. Returns how many."""
    counts = [inspector.purge(QUEUE, client, undo=TOKEN)]
    while counts[-1]:
        counts.append(inspector.purge(QUEUE, client, undo=TOKEN))
    return sum(counts)


def restore(inspector):
    return sweeps.run(inspector, "restore", undo=TOKEN)


def told(redis):
    """What there is, but for turns, counters, what is set aside, and since when lanes wait: the ids say that again."""
    taken = snapshot(redis)
    return {
        key: value
        for key, value in taken.items()
        if not key.startswith(("undo", "stats", "turn", "ring", "lanes", "clock", "due_s"))
    }


def test_all_that_waited_is_where_it_was(redis, broker, inspector):
    dead_job(broker)
    for seed in (retrying_job, scheduled_job, queued_job, queued_job):
        for client in "xy":
            seed(broker, client=client, priority=5)
    broker.enqueue(QUEUE, [new_job(client="x") for _ in range(250)])
    before = told(redis)

    assert purge(inspector) == 258
    assert "scheduled" not in snapshot(redis)
    assert len(restore(inspector).done) == 258

    assert told(redis) == before


def test_they_run_in_their_order_and_before_later_ones(broker, inspector):
    first = [queued_job(broker, client="x") for _ in range(3)]
    purge(inspector)
    later = queued_job(broker, client="x")
    restore(inspector)

    assert claim_all(broker) == [job.id for job in [*first, later]]


def test_after_the_ring_was_cleaned_they_are_claimed_too(broker, inspector):
    jobs = [queued_job(broker, client="x") for _ in range(3)]
    purge(inspector)
    assert claim_all(broker) == []
    restore(inspector)

    assert claim_all(broker) == [job.id for job in jobs]


def test_only_the_client_that_was_purged_comes_back(broker, inspector):
    gone, kept = queued_job(broker, client="x"), queued_job(broker, client="y")
    purge(inspector, "x")

    assert restore(inspector).done == [gone.id]
    assert set(claim_all(broker)) == {gone.id, kept.id}


def test_what_fell_due_meanwhile_is_due_now(broker, inspector):
    job = scheduled_job(broker)
    let_fall_due(broker, job)
    purge(inspector)
    restore(inspector)

    promote(broker, QUEUE)

    assert claim_all(broker) == [job.id]


def test_a_retrying_job_keeps_its_failures(broker, inspector):
    job = retrying_job(broker)
    purge(inspector)
    restore(inspector)

    found = inspector.find(job.id)
    assert (found.state, found.failures) == ("retrying", 1)


def test_cancelled_ones_stay_cancelled(broker, inspector):
    cancelled, job = queued_job(broker), queued_job(broker)
    inspector.cancel(cancelled.id, QUEUE)

    assert purge(inspector) == 1
    assert restore(inspector).done == [job.id]
    assert inspector.find(cancelled.id).state == "cancelled"


def test_a_unique_job_holds_its_digest_again(broker, inspector):
    broker.enqueue_unique(QUEUE, [unique_job("a")])
    purge(inspector)
    restore(inspector)

    (answer,) = broker.enqueue_unique(QUEUE, [unique_job("b")])
    assert answer.startswith("duplicate")


def test_a_unique_job_does_not_come_back_beside_another_like_it(redis, broker, inspector):
    broker.enqueue_unique(QUEUE, [unique_job("a"), unique_job("c", digest="d2")])
    purge(inspector)
    second = unique_job("b")
    broker.enqueue_unique(QUEUE, [second])
    before = snapshot(redis)["digests"]

    result = restore(inspector)

    assert (len(result.done), result.left_out) == (1, 1)
    assert set(before) < set(snapshot(redis)["digests"])
    assert len(claim_all(broker)) == 2


def test_a_successor_waits_for_its_owner_again(broker, inspector):
    owner = held_job(broker, "a", successor="b")
    assert purge(inspector) == 1
    restore(inspector)
    promote(broker, QUEUE)
    assert claim_all(broker) == []

    settle(broker, "ack", owner)
    promote(broker, QUEUE)

    assert len(claim_all(broker)) == 1


def test_a_successor_whose_owner_has_ended_is_due(broker, inspector):
    owner = held_job(broker, "a", successor="b")
    purge(inspector)
    settle(broker, "ack", owner)
    restore(inspector)
    promote(broker, QUEUE)

    assert len(claim_all(broker)) == 1


@pytest.mark.parametrize("is_over", [False, True])
def test_what_a_pause_held_runs_after_it(broker, inspector, is_over):
    broker.sign_on([QUEUE], WORKER)
    inspector.task_pauses.pause_task("charge", QUEUE)
    jobs = [queued_job(broker, client="x", body=CHARGE) for _ in range(3)]
    assert claim_all(broker) == []
    purge(inspector)
    if is_over:
        inspector.task_pauses.resume_task("charge", QUEUE)
    restore(inspector)
    if not is_over:
        assert claim_all(broker) == []
        inspector.task_pauses.resume_task("charge", QUEUE)

    assert claim_all(broker) == [job.id for job in jobs]


def test_no_limit_of_waiting_jobs_refuses_them(broker, inspector):
    inspector.limits.set_queue(QUEUE, max_waiting=2)
    jobs = [queued_job(broker) for _ in range(2)]
    purge(inspector)
    jobs += [queued_job(broker) for _ in range(2)]
    restore(inspector)

    assert len(claim_all(broker)) == 4


def test_a_blocked_client_gets_its_jobs_back(broker, inspector):
    inspector.limits.set_default(QUEUE, max_running=1)
    running = claimed_job(broker, client="x")
    waiting = queued_job(broker, client="x")
    assert claim(broker) == []
    purge(inspector)
    restore(inspector)
    assert claim(broker) == []

    settle(broker, "ack", running)

    assert claim_all(broker) == [waiting.id]


def test_a_job_that_waits_behind_a_pause_of_the_queue_stays_there(broker, inspector):
    job = queued_job(broker)
    inspector.pause(QUEUE)
    purge(inspector)
    restore(inspector)
    assert claim(broker) == []
    inspector.resume(QUEUE)

    assert claim_all(broker) == [job.id]

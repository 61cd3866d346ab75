"""A person moves jobs to another queue."""

import pytest

from django_rtq import signals
from django_rtq.exceptions import InvalidTask, JobNotFound, WrongState
from django_rtq.handle import JobHandle
from django_rtq.inspector.jobs.job_filter import JobFilter
from django_rtq.inspector.selection import Selection
from django_rtq.jobs.job import JobState
from tests.support.jobs import (
    QUEUE,
    claim,
    claim_all,
    claimed_job,
    dead_job,
    enqueue_unique,
    entered_job,
    finished_job,
    held_job,
    limit_of,
    queued_job,
    retrying_job,
    scheduled_job,
    settle,
    suspect_job,
    unique_job,
)
from tests.support.snapshots import GONE, MS, changes, snapshot

TARGET = "bulk"


@pytest.fixture
def move(inspector):
    """Move a job of QUEUE to TARGET."""
    return lambda job, queue=None: inspector.job_mover.move(job.id, TARGET, queue)


def test_the_first_job_of_a_lane_leaves_it(redis, broker, move):
    job = queued_job(broker, "a", client="x", priority=5)
    before = snapshot(redis, times=False)

    move(job)

    assert changes(before, snapshot(redis, times=False)) == {
        **dict.fromkeys(["bands", "jobs", "lane:5:x", "lanes", "ring:5"], GONE),
        "finished": {"a"},  # so that it is not enqueued again
        "stats": {"enqueued": 1, "moved": 1},
        "rtq:queues": {QUEUE, TARGET},
        "bulk:bands": {"5": 5},
        "bulk:jobs": {"a": f"5 3 {MS} 0 x\n{{}}"},
        "bulk:lane:5:x": ["a"],
        "bulk:lanes": {"5:x": MS},
        "bulk:ring:5": {"x": 1},
        "bulk:turn": "1",
        "bulk:waiting_since": {"a": MS},
        "bulk:work_signal": {"work": 0},
    }
    assert claim(broker, queues=[QUEUE, TARGET]) == [job.id]


def test_a_job_in_the_middle_of_a_lane_is_passed_over_there(redis, broker, move):
    first, job, last = (queued_job(broker, name) for name in "abc")

    move(job)

    assert snapshot(redis)["lane:0:"] == [first.id, job.id, last.id]
    assert claim_all(broker) == [first.id, last.id]
    assert claim_all(broker, queue=TARGET) == [job.id]
    assert "cancelled_in_lane" not in snapshot(redis)


def test_a_scheduled_job_keeps_its_time(redis, broker, move):
    job = scheduled_job(broker, "a", client="x")
    before = snapshot(redis)

    move(job)

    after = snapshot(redis)
    for key in ("scheduled", "scheduled_by_client", "scheduled_by_client:x"):
        assert (after.get(key), after[f"bulk:{key}"]) == (None, before[key])
    assert after["bulk:due_signal"] == {"due": 0}


def test_a_retry_keeps_its_time_and_its_failures(redis, broker, inspector, move):
    job = retrying_job(broker, "a")
    before = inspector.find(job.id)

    move(job)

    found = inspector.find(job.id)
    assert (found.queue, found.state) == (TARGET, JobState.RETRYING)
    assert (found.due_at, found.failures, found.errors) == (before.due_at, 1, before.errors)
    assert not {"scheduled", "retrying", "failures", "errors"} & set(snapshot(redis))


def test_a_suspect_stays_one(redis, broker, move):
    job = suspect_job(broker, "a")

    move(job)

    assert snapshot(redis)["bulk:crashes"] == {job.id: "1"}


def test_a_dead_letter_is_requeued_there(broker, inspector, move):
    job = dead_job(broker, "a", expires="+1")

    move(job)

    found = inspector.find(job.id)
    assert (found.queue, found.state, found.failures, len(found.errors)) == (TARGET, JobState.QUEUED, 0, 1)
    assert found.expires_at is None
    assert claim(broker, queues=[TARGET]) == [job.id]


def test_a_job_that_a_paused_task_holds_is_queued(redis, broker, inspector, move):
    inspector.task_pauses.pause_task("charge", QUEUE, by="eve")
    job = queued_job(broker, "a", body='{"task":"charge"}')
    assert claim(broker) == []

    move(job)

    assert claim(broker, queues=[TARGET]) == [job.id]


def test_limits_of_waiting_jobs_do_not_matter(broker, move):
    broker.limits.change(TARGET, {"run:queue": "max_waiting=1"})
    queued_job(broker, "a", queue=TARGET)
    job = queued_job(broker, "b")

    move(job)

    assert len(claim_all(broker, queue=TARGET)) == 2


def test_a_running_job_is_left_alone(redis, broker, move):
    job = claimed_job(broker)
    before = snapshot(redis)

    with pytest.raises(WrongState, match=f"{job.id} is running. Only jobs that do not run can be moved"):
        move(job)

    assert snapshot(redis) == before


def test_a_finished_job_is_left_alone(redis, broker, move):
    job = finished_job(broker)
    before = snapshot(redis)

    with pytest.raises(WrongState, match="has finished already"):
        move(job)

    assert snapshot(redis) == before


def test_a_job_that_is_not_there_is_not_found(broker, inspector):
    broker.register_queues([QUEUE])

    with pytest.raises(JobNotFound):
        inspector.job_mover.move("unknown", TARGET)
    with pytest.raises(WrongState, match="unknown is not in queue default any more"):
        inspector.job_mover.move("unknown", TARGET, QUEUE)


def test_the_target_has_to_be_another_queue_with_a_valid_name(broker, inspector):
    job = queued_job(broker)

    with pytest.raises(WrongState, match="is in queue default already"):
        inspector.job_mover.move(job.id, QUEUE)
    with pytest.raises(ValueError, match="are in queue default already"):
        inspector.job_mover.move_some(QUEUE, [job.id], QUEUE)
    with pytest.raises(InvalidTask):
        inspector.job_mover.move(job.id, "no{good}")


def test_the_second_one_to_ask_hears_that_it_was_done(redis, broker, move):
    job = queued_job(broker)
    move(job)
    before = snapshot(redis)

    with pytest.raises(WrongState, match="is in queue bulk already"):
        move(job, QUEUE)

    assert snapshot(redis) == before


@pytest.mark.parametrize("moment", ["before", "after"])
def test_after_a_lost_reply_it_is_told_what_was_done(redis, broker, inspector, moment):
    jobs = [queued_job(broker).id, claimed_job(broker, queue="other").id]
    redis.drop_connection(moment)

    assert inspector.job_mover.move_some(QUEUE, jobs, TARGET) == jobs[:1]


def test_a_job_may_go_back_although_its_lane_still_names_it(redis, broker, inspector, move):
    first, job, last = (queued_job(broker, name) for name in "abc")
    move(job)

    inspector.job_mover.move(job.id, QUEUE)

    after = snapshot(redis)
    assert after["lane:0:"] == [first.id, last.id, job.id]
    assert not {"cancelled_in_lane", "finished"} & set(after)
    assert claim_all(broker) == [first.id, last.id, job.id]


def test_a_moved_job_is_known_in_its_old_queue(broker, move):
    job = queued_job(broker)
    move(job)

    assert broker.enqueue(QUEUE, [job]) == ["exists"]


# -- unique jobs


def test_a_unique_job_holds_its_digest_there(redis, broker, move):
    job = entered_job(broker)

    move(job)

    again = unique_job("b")
    assert broker.enqueue_unique(TARGET, [again]) == [f"duplicate {job.id}"]
    assert 0 < redis.pttl("{rtq:bulk}:unique:d1") <= 3_600_000
    assert limit_of(broker) == -2
    assert enqueue_unique(broker, again) == ["ok"]  # a queue knows only its own jobs


def test_a_unique_job_does_not_enter_beside_one_like_it(redis, broker, move):
    other = unique_job("b")
    job = entered_job(broker, "a")
    broker.enqueue_unique(TARGET, [other])
    before = snapshot(redis)

    with pytest.raises(WrongState, match=f"is unique, and job {other.id} of the same key is alive in queue bulk"):
        move(job)

    assert snapshot(redis) == before


def test_a_job_and_the_one_that_waits_for_its_end_stay_together(redis, broker, move):
    first = held_job(broker, successor="b")
    (successor,) = (job_id.decode() for job_id in redis.zrange(broker.keys.of(QUEUE).scheduled, 0, -1))
    settle(broker, "retry", first)
    before = snapshot(redis)

    with pytest.raises(WrongState, match=f"waits until job {first.id} has ended"):
        move(JobHandle(successor, QUEUE))
    with pytest.raises(WrongState, match=f"job {successor} waits in its queue for its end"):
        move(first)

    assert snapshot(redis) == before


def test_a_dead_letter_that_is_unique_gets_its_digest_again(broker, move):
    job = held_job(broker)
    settle(broker, "bury", job)

    move(job)

    assert broker.enqueue_unique(TARGET, [unique_job("b")]) == [f"duplicate {job.id}"]


# -- handles


def test_a_handle_finds_its_job(broker, inspector, move):
    job = queued_job(broker)
    move(job)

    assert inspector.find(job.id, QUEUE).queue == TARGET
    assert inspector.find_with_position(job.id, QUEUE)[0].queue == TARGET
    assert inspector.cancel(job.id, QUEUE) == "cancelled"
    assert inspector.find(job.id, QUEUE).state is JobState.CANCELLED


def test_a_job_can_be_cancelled_and_run_by_its_id_alone(broker, inspector, move):
    jobs = [scheduled_job(broker) for _ in range(2)]
    for job in jobs:
        inspector.job_mover.move(job.id, "zebra")  # behind its old queue in the list

    inspector.run_now(jobs[0].id)
    inspector.cancel(jobs[1].id)

    assert [inspector.find(job.id).state for job in jobs] == [JobState.QUEUED, JobState.CANCELLED]


def test_a_job_that_nobody_has_is_not_found_with_its_queue(broker, inspector):
    broker.register_queues([QUEUE, TARGET])

    for look in (inspector.find, inspector.find_with_position, inspector.cancel):
        with pytest.raises(JobNotFound):
            look("unknown", QUEUE)


# -- many


def test_all_that_match_are_moved(broker, inspector):
    jobs = [queued_job(broker, body=f'{{"task":"{task}"}}') for task in ("report", "flood", "report") * 2]
    later = queued_job(broker, body='{"task":"report"}')
    until_ms = int(later.id[:12], 16) - 1
    jobs = [job for job in jobs if int(job.id[:12], 16) <= until_ms]
    reports = [job.id for job in jobs if "report" in job.body]
    these = Selection(queues=[QUEUE], states=["queued"], filter=JobFilter(task="report"), until_ms=until_ms)

    done = [job_id for step in inspector.job_mover.steps(these, TARGET, limit=1) for job_id in step.done]

    assert done == reports
    assert claim_all(broker, queue=TARGET) == reports


def test_dead_letters_that_match_are_requeued(broker, inspector):
    jobs = [dead_job(broker) for _ in range(3)]
    these = Selection(queues=[QUEUE], states=["dead"])

    done = [job_id for step in inspector.job_mover.steps(these, TARGET, limit=2) for job_id in step.done]

    assert sorted(done) == sorted(job.id for job in jobs)
    assert sorted(claim_all(broker, queue=TARGET)) == sorted(done)


def test_a_signal_says_so(broker, inspector):
    jobs, heard = [queued_job(broker).id for _ in range(2)], []
    signals.job_moved.connect(lambda **said: heard.append(said), weak=False, dispatch_uid="test")
    try:
        inspector.job_mover.move_some(QUEUE, [*jobs, "unknown"], TARGET)
    finally:
        signals.job_moved.disconnect(dispatch_uid="test")

    assert [(said["job_ids"], said["queue"], said["target"]) for said in heard] == [(jobs, QUEUE, TARGET)]


def test_a_job_stays_away_from_a_lane_that_is_too_long_to_be_searched(redis, broker, inspector, move):
    _, job = queued_job(broker), queued_job(broker)
    move(job)
    redis.rpush(f"{{rtq:{QUEUE}}}:lane:0:", *[f"other-{number}" for number in range(50_000)])

    with pytest.raises(WrongState, match="more than 50,000 jobs of its client wait in that lane"):
        inspector.job_mover.move(job.id, QUEUE)

    assert inspector.find(job.id).queue == TARGET

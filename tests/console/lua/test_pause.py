"""Nothing of a queue, or of a task, is claimed until it is resumed."""

import pytest

from django_rtq.core.jobs.job import JobState
from django_rtq.exceptions import TooManyPausedTasks
from tests.protocol.model.task_calls import CHARGE
from tests.support import sweeps
from tests.support.jobs import QUEUE, WORKER, claim, new_job, queued_job
from tests.support.snapshots import snapshot

TASK = "charge"


def test_the_second_time_changes_nothing(redis, rtq):
    rtq.queues[QUEUE].pause()
    before = snapshot(redis)

    assert not rtq.queues[QUEUE].pause()

    assert snapshot(redis) == before


def test_its_jobs_wait_and_those_of_others_go_on(broker, readers, rtq):
    waits = [queued_job(broker, body=CHARGE) for _ in range(3)]
    runs = [queued_job(broker, body=body) for body in ('{"task":"mail"}', "{}", '{"task":"charge.later"}')]
    rtq.tasks[TASK].pause(QUEUE)

    assert claim(broker, 9) == [job.id for job in runs]

    (pause,) = readers.queues.get(QUEUE).paused_tasks
    assert (pause.task, pause.held, pause.is_over) == (TASK, 3, False)
    assert [readers.find(job.id).state for job in waits] == [JobState.SCHEDULED] * 3
    assert claim(broker) == []


def test_a_claim_holds_200_jobs_at_most_and_says_that_there_are_more(redis, broker, readers, rtq):
    broker.enqueue(QUEUE, [new_job(str(number), body=CHARGE) for number in range(300)])
    last = queued_job(broker)
    rtq.tasks[TASK].pause(QUEUE)
    broker.sign_on([QUEUE], WORKER)

    first, second = (broker.claim(WORKER, [QUEUE], 1) for _ in range(2))

    assert (first.found, set(first.statuses)) == (0, {"more"})
    assert readers.queues.get(QUEUE).held == 300
    assert [job_id.decode() for part in second.claimed for job_id in part.ids] == [last.id]


def test_large_records_make_a_claim_hold_fewer(broker, readers, rtq):
    body = '{"task":"charge","args":["' + 200_000 * "x" + '"]}'
    for _ in range(60):
        queued_job(broker, body=body)
    rtq.tasks[TASK].pause(QUEUE)

    assert claim(broker) == []

    assert readers.queues.get(QUEUE).held == 15  # one, two, four and eight together


def test_a_hundred_tasks_of_a_queue_may_be_paused(rtq):
    for number in range(100):
        assert rtq.tasks[f"task{number}"].pause(QUEUE) == [QUEUE]

    with pytest.raises(TooManyPausedTasks, match="In queue default, 100 tasks are paused already"):
        rtq.tasks["one.more"].pause(QUEUE)
    rtq.tasks["task7"].resume(QUEUE)
    assert rtq.tasks["one.more"].pause(QUEUE) == [QUEUE]


def test_a_claim_for_many_does_not_look_again_and_again(broker, rtq):
    """Where each second job is of a paused task."""
    for body in 100 * (CHARGE, "{}"):
        queued_job(broker, body=body)
    rtq.tasks[TASK].pause(QUEUE)
    broker.sign_on([QUEUE], WORKER)

    first = broker.claim(WORKER, [QUEUE], 100)

    assert (first.found, set(first.statuses)) == (34, {"more"})
    assert len(claim(broker, 100)) == 34


def test_its_jobs_are_cancelled_although_claims_move_them_meanwhile(broker, readers, rtq):
    jobs = [queued_job(broker, body=CHARGE) for _ in range(5)]
    rtq.tasks[TASK].pause(QUEUE)
    steps = sweeps.steps(readers, "cancel", task=TASK)

    done = list(next(steps).done)  # the scheduled ones
    assert claim(broker) == []
    done += [job_id for step in steps for job_id in step.done]

    assert sorted(done) == sorted(job.id for job in jobs)
    assert readers.queues.get(QUEUE).held == 0


def test_large_records_that_are_read_in_vain_end_a_claim(broker, rtq):
    for _ in range(40):
        queued_job(broker, body=CHARGE)
        queued_job(broker, body='{"task":"mail","args":["' + 100_000 * "x" + '"]}')
    rtq.tasks[TASK].pause(QUEUE)
    broker.sign_on([QUEUE], WORKER)

    first = broker.claim(WORKER, [QUEUE], 40)

    assert 0 < first.found < 40
    assert set(first.statuses) == {"more"}


def test_promote_says_that_held_jobs_went_back(broker, keys, rtq):
    queued_job(broker, body=CHARGE)
    rtq.tasks[TASK].pause(QUEUE)
    claim(broker)
    entry = broker.redis.execute_one(("HGET", keys.paused, f"task:{TASK}"))
    broker.redis.execute_one(("HSET", keys.paused, f"task:{TASK}", entry.split(b" ")[0]))  # the caller died

    assert broker.promote([QUEUE]) == ({QUEUE: []}, True)
    assert broker.promote([QUEUE]) == ({QUEUE: []}, False)


def test_many_go_back_in_steps(broker, readers, rtq):
    rtq.tasks[TASK].pause(QUEUE)
    jobs = [queued_job(broker, str(number), body=CHARGE) for number in range(230)]
    assert claim(broker) == claim(broker) == []

    assert rtq.tasks[TASK].resume(QUEUE) == [QUEUE]

    assert readers.queues.get(QUEUE).paused_tasks == ()
    assert claim(broker, 500) == [job.id for job in jobs]

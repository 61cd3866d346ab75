"""scheduled, retrying -> queued."""

from tests.support.jobs import (
    QUEUE,
    let_fall_due,
    new_job,
    scheduled_job,
)
from tests.support.single_steps import promote
from tests.support.snapshots import snapshot


def test_it_waits_since_it_was_due(redis, broker):
    job = scheduled_job(broker)
    let_fall_due(broker, job)
    due = snapshot(redis)["scheduled"][job.id]

    promote(broker, QUEUE)

    after = snapshot(redis)
    assert after["waiting_since"] == {job.id: str(due)}
    assert after["lanes"] == {"0:": due}


def test_what_is_missing_in_the_index_is_promoted_all_the_same(redis, broker):
    flood = [new_job(f"f{n}", client="flood", due="+60000") for n in range(30)]
    broker.enqueue(QUEUE, flood)
    other = scheduled_job(broker, client="other")
    let_fall_due(broker, *flood, other)
    redis.delete(*redis.keys("*scheduled_by_client*"))
    late = [scheduled_job(broker, client="late") for _ in range(30)]
    let_fall_due(broker, *late)

    promoted = []
    while job_ids := promote(broker, QUEUE, limit=8)[1]:
        assert len(job_ids) == min(8, 61 - len(promoted))
        promoted += job_ids

    assert sorted(promoted) == sorted(job.id for job in (*flood, other, *late))
    assert redis.keys("*scheduled_by_client*") == []

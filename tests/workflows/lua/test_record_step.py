"""What a running job has done, for its later runs."""

import pytest

from tests.protocol.model.step_calls import DONE, holder, read_steps, write_step
from tests.support.jobs import (
    KEEP_MS,
    QUEUE,
    claimed_job,
    queued_job,
    settle,
)
from tests.support.snapshots import changes, snapshot

STEPS = {"step charge": DONE}


def test_it_is_kept_beside_the_job(redis, broker):
    job = claimed_job(broker, "a")
    before = snapshot(redis)

    assert write_step(broker, holder(broker, job), "step charge")

    assert changes(before, snapshot(redis)) == {"step_jobs": {job.id: ""}, f"steps:{job.id}": STEPS}
    assert read_steps(broker, holder(broker, job)).fields == {"step charge": DONE.encode()}


def test_what_went_wrong_before_counts_no_longer(redis, broker):
    job, keys = claimed_job(broker, "a"), broker.keys.of(QUEUE)
    for key in (keys.failures, keys.crashes):
        redis.hset(key, job.id, 2)

    assert write_step(broker, holder(broker, job), "step charge")

    assert snapshot(redis).keys().isdisjoint({"failures", "crashes"})


def test_who_does_not_hold_the_job_writes_and_reads_nothing(redis, broker):
    job = claimed_job(broker, "a")
    write_step(broker, holder(broker, job), "step charge")
    former, before = holder(broker, job)._replace(claimed_ms=1), snapshot(redis)

    for other in (holder(broker, job, "w2"), former, holder(broker, queued_job(broker, "b"))._replace(job_id="nobody")):
        assert not write_step(broker, other, "step book")
        assert read_steps(broker, other) is None

    assert {name: value for name, value in snapshot(redis).items() if "step" in name} == {
        name: value for name, value in before.items() if "step" in name
    }


@pytest.mark.parametrize("verb", ["ack", "expire", "finish_cancel"])
def test_it_is_kept_as_long_as_the_outcome(redis, broker, verb):
    job = claimed_job(broker, "a")
    write_step(broker, holder(broker, job), "step charge")

    settle(broker, verb, job)

    assert [name for name in snapshot(redis) if "step" in name] == [f"steps:{job.id}"]
    assert 0 < redis.pttl(broker.keys.of(QUEUE).steps + job.id.encode()) <= KEEP_MS


def test_a_dead_letter_keeps_it_until_it_is_discarded(redis, broker, readers):
    job = claimed_job(broker, "a")
    write_step(broker, holder(broker, job), "step charge")
    settle(broker, "bury", job)
    assert snapshot(redis)[f"steps:{job.id}"] == STEPS

    readers.actions.done("discard", QUEUE, [job.id])

    assert not [name for name in snapshot(redis) if "step" in name]

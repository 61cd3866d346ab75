"""dead -> gone."""

import pytest

from tests.support.jobs import (
    QUEUE,
    claimed_job,
    dead_job,
    finished_job,
    new_job,
    queued_job,
    retrying_job,
)
from tests.support.snapshots import changes, snapshot


def test_nothing_is_left_of_it(redis, broker, inspector):
    job, other = dead_job(broker), dead_job(broker)
    before = snapshot(redis)

    assert inspector.discard(QUEUE, [job.id]) == [job.id]

    assert changes(before, snapshot(redis)) == {
        **{key: {other.id: before[key][other.id]} for key in ("dead", "jobs", "failures", "errors")},
        "stats": {**before["stats"], "discarded": 1},
    }


@pytest.mark.parametrize("seed", [queued_job, claimed_job, retrying_job, finished_job])
def test_a_job_that_is_not_dead_is_left_alone(redis, broker, inspector, seed):
    job = seed(broker)
    before = snapshot(redis)

    assert inspector.discard(QUEUE, [job.id, new_job().id]) == []

    assert snapshot(redis) == before

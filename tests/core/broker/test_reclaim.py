"""running, lease over -> queued, or dead."""

import pytest

from tests.support.jobs import (
    QUEUE,
    WORKER,
    claimed_job,
    let_lapse,
)


@pytest.mark.parametrize("record", ["", "{}", "no header at all"])
def test_a_record_without_a_header_may_not_crash_at_all(redis, broker, record):
    job = claimed_job(broker)
    let_lapse(broker, WORKER)
    redis.hset(broker.keys.of(QUEUE).jobs, job.id, record)

    assert broker.reclaim(QUEUE) == (None, [(job.id, "dead")])

"""dead -> gone."""

from tests.support.jobs import (
    QUEUE,
    dead_job,
)
from tests.support.snapshots import changes, snapshot


def test_nothing_is_left_of_it(redis, broker, readers):
    job, other = dead_job(broker), dead_job(broker)
    before = snapshot(redis)

    assert readers.actions.done("discard", QUEUE, [job.id]) == [job.id]

    assert changes(before, snapshot(redis)) == {
        **{key: {other.id: before[key][other.id]} for key in ("dead", "jobs", "failures", "errors")},
        "stats": {**before["stats"], "discarded": 1},
    }

"""dead -> gone."""

import pytest

from tests.support.jobs import (
    QUEUE,
    claimed_job,
    dead_job,
    finished_job,
    lose_record,
    new_job,
    queued_job,
    retrying_job,
)
from tests.support.snapshots import GONE, changes, snapshot


def test_nothing_is_left_of_it(redis, broker, inspector):
    job, other = dead_job(broker), dead_job(broker)
    before = snapshot(redis)

    assert inspector.discard(QUEUE, [job.id]) == [job.id]

    assert changes(before, snapshot(redis)) == {
        **{key: {other.id: before[key][other.id]} for key in ("dead", "jobs", "failures", "errors")},
        "stats": {**before["stats"], "discarded": 1},
    }


def test_its_crashes_go_with_it(redis, broker, inspector):
    job = claimed_job(broker, max_crashes=0)
    broker.reclaim_child(QUEUE, "w1", [job.id])

    inspector.discard(QUEUE, [job.id])

    assert not {"dead", "jobs", "crashes", "errors"} & set(snapshot(redis))


@pytest.mark.parametrize("seed", [queued_job, claimed_job, retrying_job, finished_job])
def test_a_job_that_is_not_dead_is_left_alone(redis, broker, inspector, seed):
    job = seed(broker)
    before = snapshot(redis)

    assert inspector.discard(QUEUE, [job.id, new_job().id]) == []

    assert snapshot(redis) == before


def test_a_dead_letter_whose_record_is_gone_goes_too(redis, broker, inspector):
    job = dead_job(broker)
    lose_record(broker, job)
    before = snapshot(redis)

    assert inspector.discard(QUEUE, [job.id]) == [job.id]

    assert changes(before, snapshot(redis)) == {
        **dict.fromkeys(["dead", "failures", "errors"], GONE),
        "stats": {**before["stats"], "discarded": 1},
    }


def test_many_go_in_several_calls(redis, broker, inspector):
    jobs = [dead_job(broker) for _ in range(120)]

    assert len(inspector.discard(QUEUE, [job.id for job in jobs])) == 120

    assert not {"dead", "jobs"} & set(snapshot(redis))


def test_nothing_is_no_question(redis, inspector):
    assert inspector.discard(QUEUE, []) == []

    assert snapshot(redis) == {}

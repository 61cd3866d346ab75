"""running -> queued, or dead, by the supervisor that saw the worker die."""

from dataclasses import replace

import pytest

from tests.support.jobs import QUEUE, WORKER, claimed_job, claimed_jobs, let_lapse, new_job
from tests.support.snapshots import GONE, MS, changes, snapshot


def test_the_guilty_count_a_crash_and_the_others_are_given_back(redis, broker):
    guilty, innocent = claimed_jobs(broker, new_job("a", client="x"), new_job("b", client="x"))
    before = snapshot(redis, times=False)

    assert sorted(broker.reclaim_child(QUEUE, WORKER, [guilty.id])) == [
        (guilty.id, "queued"),
        (innocent.id, "queued"),
    ]

    after = snapshot(redis, times=False)
    assert changes(before, after) == {
        "running:w1": GONE,
        "workers": GONE,
        "signed_on": GONE,
        "lane:0:x": ["a", "b"],
        "lanes": {"0:x": MS},
        "ring:0": {"x": after["ring:0"]["x"]},
        "bands": {"0": 0},
        "turn": after["turn"],
        "work_signal": {"work": 0},
        "crashes": {"a": "1"},
        "errors": {"a": after["errors"]["a"]},
        "stats": {"enqueued": 2, "reclaimed": 2, "failed": 1, "crashed": 1},
    }


def test_a_crash_is_a_failed_run_of_its_task(redis, broker, readers):
    body = '{"task":"shop.tasks.ship"}'
    broker.register_queues([QUEUE])
    for allowed in (0, 1):
        job = claimed_job(broker, max_crashes=allowed, body=body)
        broker.reclaim_child(QUEUE, WORKER, [job.id])

    figures = readers.tasks.all()["shop.tasks.ship"]
    assert (figures.failed, figures.dead, figures.retried, figures.failure_rate) == (2, 1, 1, 1.0)
    assert readers.overview.read().queues[0].series.total("failed") == 2


def test_a_task_whose_name_cannot_be_read_counts_for_the_queue_alone(redis, broker, readers):
    broker.reclaim_child(QUEUE, WORKER, [claimed_job(broker, body='{"task":"a\\"b"}').id])

    assert readers.tasks.all() == {}
    assert readers.overview.read().queues[0].series.total("failed") == 1


def test_the_guilty_one_may_be_somebody_elses_by_now(redis, broker):
    other = claimed_job(broker, worker="other")
    broker.sign_on([QUEUE], WORKER)
    before = snapshot(redis)

    assert broker.reclaim_child(QUEUE, WORKER, [other.id]) == []

    assert set(changes(before, snapshot(redis))) == {"workers", "signed_on"}
    assert set(snapshot(redis)["workers"]) == {"other"}


@pytest.mark.parametrize("way", ["lapsed", "by a person", "seen by its supervisor"])
def test_a_crash_counts_for_the_version_of_the_dead_worker(redis, broker, rtq, readers, monkeypatch, way):
    monkeypatch.setattr(broker, "config", replace(broker.config, version="v44"))
    job = claimed_job(broker, body='{"task":"ship"}')
    redis.hset(broker.keys.worker(WORKER), "project_version", "v44")
    if way != "seen by its supervisor":
        monkeypatch.setattr(broker, "config", replace(broker.config, version="v45"))
        let_lapse(broker, WORKER)

    if way == "lapsed":
        broker.reclaim(QUEUE)
    elif way == "by a person":
        rtq.workers[WORKER].reclaim()
    else:
        broker.reclaim_child(QUEUE, WORKER, [job.id])

    of_queue = readers.queue(QUEUE).versions
    assert [(each.version, each.metrics.done, each.metrics.failed) for each in of_queue] == [("v44", 0, 1)]

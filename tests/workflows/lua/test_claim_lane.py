"""queued -> running, for a function that gets many jobs at once."""

import pytest

from django_rtq.workflows.batches import claim_lanes
from tests.protocol.model.batch_calls import BODY, TASK, new_jobs
from tests.support.jobs import (
    QUEUE,
    WORKER,
    claim,
    claim_all,
    names,
    queued_job,
    retrying_job,
)
from tests.support.single_steps import promote
from tests.support.snapshots import changes, snapshot


def index_jobs(broker, letters, *, client="x", **options):
    """Waiting jobs of the task, one for each letter."""
    jobs = new_jobs(letters, client=client, **options)
    broker.enqueue(QUEUE, jobs)
    return jobs


def claim_more(broker, wanted=100, *, client="x", band="0", task=TASK, worker=WORKER):
    return claim_lanes([(QUEUE, wanted, band.encode(), client.encode(), task)], broker, worker)


def names_in(result):
    return [name for claimed in result.claimed for name in names(claimed.ids)]


def next_names(broker, total):
    """The names of the next jobs, claimed one by one."""
    return "".join(names(claim(broker))[0] for _ in range(total))


def test_it_gets_the_next_jobs_of_the_client(redis, broker):
    index_jobs(broker, "abcd")
    queued_job(broker, "y", client="y")
    claim(broker, worker=WORKER)
    before = snapshot(redis, times=False)

    result = claim_more(broker, 2)

    (claimed,) = result.claimed
    assert (claimed.queue, claimed.status, claimed.counts, result.found) == (QUEUE, "ok", {}, 2)
    assert names(claimed.ids) == ["b", "c"]
    assert [record.partition(b"\n")[2].decode() for record in claimed.records] == [BODY, BODY]
    assert changes(before, snapshot(redis, times=False)) == {
        "running:w1": {"a": "1 <ms>", "b": "1 <ms>", "c": "1 <ms>"},
        "lane:0:x": ["d"],
        "ring:0": {"y": 2, "x": 5},
    }


def test_when_the_lane_is_empty_nothing_is_left_of_it(redis, broker):
    index_jobs(broker, "abc")
    claim(broker, worker=WORKER)

    assert names_in(claim_more(broker)) == ["b", "c"]

    left = snapshot(redis)
    assert not left.keys() & {"lane:0:x", "lanes", "ring:0", "bands", "work_signal"}


def test_a_limit_that_was_lowered_below_what_runs_leaves_no_room(redis, broker):
    broker.limits.change(QUEUE, {"run:client:x": "max_running=4"})
    index_jobs(broker, "abcdef")
    for _ in range(3):
        claim(broker, worker=WORKER)
    broker.limits.change(QUEUE, {"run:client:x": "max_running=1"})
    before = snapshot(redis)

    assert claim_more(broker, 2).found == 0

    assert changes(before, snapshot(redis)).keys() <= {"clock"}


def test_others_come_as_often_before_the_client_is_next(broker):
    index_jobs(broker, "abcdef")
    index_jobs(broker, "123456", client="y")
    claim(broker, worker=WORKER)

    assert names_in(claim_more(broker, 3)) == ["b", "c", "d"]

    assert next_names(broker, 8) == "1234e5f6"


def test_who_is_alone_owes_nobody_anything(broker):
    index_jobs(broker, "abcdefghi")
    claim(broker, worker=WORKER)
    claim_more(broker, 5)
    index_jobs(broker, "123", client="y")

    assert next_names(broker, 5) == "g1h2i"


def test_a_job_of_another_task_ends_it(broker):
    index_jobs(broker, "ab")
    queued_job(broker, "other", client="x", body='{"task":"shop.index2"}')
    index_jobs(broker, "c")
    claim(broker, worker=WORKER)

    assert names_in(claim_more(broker)) == ["b"]
    assert names_in(claim_more(broker)) == []
    assert names(claim_all(broker)) == ["other", "c"]


def test_it_tells_earlier_failures_and_notes_no_more_since_when_they_wait(redis, broker):
    first, second = (retrying_job(broker, name, client="x", body=BODY, wait_ms=0) for name in "ab")
    promote(broker, QUEUE)
    assert names(claim(broker, worker=WORKER)) == ["a"]

    (claimed,) = claim_more(broker).claimed

    assert (names(claimed.ids), claimed.counts) == (["b"], {0: (1, 0)})
    assert first.id != second.id
    assert "waiting_since" not in snapshot(redis)


# What stops it


def test_a_worker_that_is_not_known_gets_nothing(redis, broker):
    index_jobs(broker, "ab")
    before = snapshot(redis)

    result = claim_more(broker, worker="w9")

    assert (result.found, result.statuses) == (0, {"unknown"})
    assert snapshot(redis) == before


@pytest.mark.parametrize("what", ["queue", "task", "client"])
def test_what_is_paused_gives_nothing(broker, rtq, limits, what):
    index_jobs(broker, "ab")
    claim(broker, worker=WORKER)
    if what == "queue":
        rtq.queues[QUEUE].pause()
    elif what == "task":
        rtq.tasks["shop.index"].pause(QUEUE)
    else:
        rtq.clients["x"].pause(QUEUE)

    assert names_in(claim_more(broker)) == []


def test_weights_count_each_job(broker, rtq):
    rtq.clients["x"].limit(QUEUE, weight=2)
    index_jobs(broker, "abcdefghi")
    index_jobs(broker, "123456", client="y")
    assert names(claim(broker, worker=WORKER)) == ["a"]

    assert names_in(claim_more(broker, 4)) == ["b", "c", "d", "e"]

    found = next_names(broker, 6)
    assert found.index("f") in (2, 3), "x has had five, so y gets two or three before"


def test_a_client_of_great_weight_is_back_sooner(broker, rtq):
    rtq.clients["x"].limit(QUEUE, weight=10)
    index_jobs(broker, "abcdefghijklm")
    index_jobs(broker, "123456", client="y")
    assert names(claim(broker, worker=WORKER)) == ["a"]

    assert names_in(claim_more(broker, 10)) == list("bcdefghijk")

    assert next_names(broker, 4).index("l") <= 2


def test_clients_that_are_blocked_are_not_waited_for(broker, rtq):
    rtq.clients["z"].limit(QUEUE, max_running=1)
    index_jobs(broker, "67", client="z")
    assert names(claim(broker, 2, worker="w3")) == ["6"]
    index_jobs(broker, "abcdef")
    index_jobs(broker, "12345", client="y")
    assert names(claim(broker, worker=WORKER)) == ["a"]

    assert names_in(claim_more(broker, 2)) == ["b", "c"]

    assert next_names(broker, 4) == "123d"


def test_a_client_without_jobs_keeps_its_turn_where_there_are_weights(broker, rtq):
    rtq.clients["x"].limit(QUEUE, weight=1)
    rtq.clients["y"].limit(QUEUE, weight=2)
    index_jobs(broker, "abcd")
    index_jobs(broker, "123456789", client="y")
    while names(claim(broker, worker=WORKER)) != ["a"]:
        pass
    assert names_in(claim_more(broker)) == ["b", "c", "d"]
    index_jobs(broker, "e")

    assert "e" not in next_names(broker, 4)

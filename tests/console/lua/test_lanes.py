"""All waiting jobs of a task are cancelled, wherever they lie in their lanes."""

import json

import pytest

from django_rtq.console.reading.jobs.walk import JobWalk
from tests.support.jobs import QUEUE, claim, queued_job

at_once = pytest.mark.parametrize("at_once", [1, 2, 3, 7, 200])


def body(task):
    return json.dumps({"task": task}, separators=(",", ":"))


def queue_up(broker, count, *, clients="xyz", **options):
    """Jobs of `ship` and `mail` in turn, of these clients in turn."""
    return [
        queued_job(broker, f"{n}", client=clients[n % len(clients)], body=body("mail" if n % 2 else "ship"), **options)
        for n in range(count)
    ]


def steps(broker, at_once):
    walk, cursor = JobWalk(broker, [(QUEUE, "lanes")]), ""
    while True:
        ids, cursor = walk.next_ids(cursor, at_once)
        yield ids
        if not cursor:
            return


def walk(broker, at_once):
    return sorted(job_id for ids in steps(broker, at_once) for job_id in ids)


@at_once
def test_every_queued_job_is_found_once(redis, broker, at_once):
    jobs = queue_up(broker, 10) + queue_up(broker, 5, clients="v", priority=3)
    assert walk(broker, at_once) == sorted(job.id for job in jobs)


@at_once
def test_lanes_that_began_to_wait_together_are_all_walked(redis, broker, at_once):
    jobs = queue_up(broker, 8, clients="abcd")
    redis.zadd(broker.keys.of(QUEUE).lanes, {f"0:{client}": 5 for client in "abcd"})
    assert walk(broker, at_once) == sorted(job.id for job in jobs)


@at_once
def test_claims_and_new_jobs_meanwhile_leave_no_other_job_out(redis, broker, at_once):
    jobs = queue_up(broker, 12)
    broker.sign_on([QUEUE], "w1")
    found, claimed = set(), set()
    for step, ids in enumerate(steps(broker, at_once)):
        found |= set(ids)
        if step < 3:
            claimed |= set(claim(broker))
            queued_job(broker, client="x")
    assert {job.id for job in jobs} - found <= claimed

"""In a queue of many workers a hash says who runs a job, so that nobody reads all processing lists."""

import pytest

from django_rtq.console.reading.readers import Readers
from django_rtq.core.broker.one_job import JobAccess
from tests.protocol.model.batch_calls import claim_others, first_claimed
from tests.protocol.model.step_calls import suspend
from tests.protocol.test_torn_log import copy_of, cuts, restore, writes_of
from tests.support.jobs import QUEUE, WORKER, claim, claimed_job, claimed_jobs, let_lapse, new_job, queued_job, settle
from tests.support.single_steps import repair_lanes

MANY = 101
SIGNED_ON_MS = 1_700_000_000_000


@pytest.fixture
def job(redis, broker, keys):
    """A job that runs in a queue of many workers, claimed before there were many."""
    running = claimed_job(broker)
    for number in range(MANY):
        broker.sign_on([QUEUE], f"w-{number}")
    tend(broker, 4)
    assert runners(redis, keys)[""] == "ready"
    return running


def tend(broker, times=1):
    for _ in range(times):
        repair_lanes(broker, QUEUE)


def runners(redis, keys):
    return {job_id.decode(): worker.decode() for job_id, worker in redis.hgetall(keys.runners).items()}


def running(broker):
    """As the overview has it."""
    (details,) = Readers(broker).queues.details([QUEUE])
    return details.running


def test_with_few_workers_there_is_no_such_hash(redis, broker, keys):
    claimed_job(broker)
    tend(broker, 3)

    assert not redis.exists(keys.runners)


def test_jobs_that_ran_before_are_added(redis, broker, keys, job):
    assert runners(redis, keys) == {"": "ready", job.id: WORKER}
    assert Readers(broker).find(job.id).worker == WORKER
    assert running(broker) == 1


def test_claims_write_it_while_it_is_built(redis, broker, keys):
    for number in range(MANY):
        broker.sign_on([QUEUE], f"w-{number}")
    tend(broker)
    assert runners(redis, keys)[""] != "ready"

    for later in claimed_jobs(broker, new_job(), new_job(), worker="w-7"):
        assert runners(redis, keys)[later.id] == "w-7"
        assert Readers(broker).find(later.id).worker == "w-7"


def test_so_do_claims_of_many_jobs_of_a_client(redis, broker, keys, job):
    claim_others(broker, first_claimed(broker))

    assert len(running_of_all := redis.hkeys(keys.running(WORKER))) == 4
    assert runners(redis, keys) == {"": "ready", **dict.fromkeys(map(bytes.decode, running_of_all), WORKER)}


def test_it_begins_with_the_worker_behind_the_hundredth(redis, broker, keys):
    for number in range(MANY - 1):
        broker.sign_on([QUEUE], f"w-{number}")
    tend(broker)
    assert not redis.exists(keys.runners)

    broker.sign_on([QUEUE], "w-last")
    tend(broker)

    assert redis.exists(keys.runners)


def test_with_it_nobody_reads_all_lists(redis, broker, job):
    redis.config_resetstat()

    assert Readers(broker).find(job.id).worker == WORKER
    assert running(broker) == 1

    stats = redis.info("commandstats")
    assert sum(stats[f"cmdstat_{name}"]["calls"] for name in ("hget", "hlen")) < MANY


def test_many_that_signed_on_in_the_same_millisecond_are_all_added(redis, broker, keys):
    held = {f"{number:032x}": f"w-{number}" for number in range(MANY + 50)}
    for job_id, worker in held.items():
        redis.hset(keys.running(worker), job_id, "1 1")
    redis.zadd(keys.signed_on, dict.fromkeys(held.values(), SIGNED_ON_MS - 10**13))
    redis.zadd(keys.workers, dict.fromkeys(held.values(), SIGNED_ON_MS * 2))

    tend(broker, 2)

    assert runners(redis, keys) == {"": "ready", **held}


ENDS = {
    "suspend": suspend,
    "reclaim_child": lambda broker, job: broker.reclaim_child(QUEUE, WORKER, []),
    "reclaim": lambda broker, job: (let_lapse(broker, WORKER), broker.reclaim(QUEUE)),
}


@pytest.mark.parametrize("verb", ["ack", "expire", "finish_cancel", "retry", "bury", "release", *ENDS])
def test_the_end_of_a_run_removes_it(redis, broker, keys, job, verb):
    ENDS.get(verb, lambda broker, job: settle(broker, verb, job))(broker, job)

    assert runners(redis, keys) == {"": "ready"}
    assert running(broker) == 0


def test_a_running_job_is_cancelled_by_its_worker(broker, job):
    assert JobAccess(broker).cancel(job.id) == "asked"


def test_a_queued_job_is_not_taken_for_a_running_one(redis, broker, keys, job):
    waiting = queued_job(broker)
    redis.hset(keys.runners, waiting.id, WORKER)  # a torn log

    assert Readers(broker).find(waiting.id).worker == ""
    tend(broker)
    assert waiting.id not in runners(redis, keys)


def test_a_job_with_an_entry_too_many_is_queued_and_then_of_its_next_worker(redis, broker, keys, job):
    settle(broker, "release", job)
    redis.hset(keys.runners, job.id, WORKER)
    assert Readers(broker).find(job.id).state == "queued"

    assert claim(broker, worker="w-3") == [job.id]

    assert Readers(broker).find(job.id).worker == "w-3"


@pytest.mark.parametrize("verb", ["claim", "ack", "retry", "bury", "release", *ENDS])
def test_after_no_prefix_of_what_a_script_wrote_another_worker_is_named(redis, broker, keys, job, verb):
    queued_job(broker)
    copy, acts = copy_of(redis), {**ENDS, "claim": lambda broker, job: claim(broker, worker="w-3")}
    act = acts.get(verb, lambda broker, job: settle(broker, verb, job))
    writes = writes_of(redis, lambda: act(broker, job))
    assert [write for write in writes if write[1] == keys.runners]

    for kept in cuts(writes):
        restore(redis, copy, writes[:kept])
        for job_id in redis.hkeys(keys.jobs):
            held_by = [worker for worker in (WORKER, "w-3") if redis.hexists(keys.running(worker), job_id)]
            found = Readers(broker).find(job_id.decode())
            assert found.state in ("dead", "scheduled", "retrying") or found.worker == "".join(held_by)


def test_what_a_torn_log_has_left_of_it_is_deleted(redis, broker, keys):
    redis.hset(keys.runners, "a", "w-1")
    claimed_job(broker)

    tend(broker)

    assert not redis.exists(keys.runners)


def test_it_is_deleted_when_few_workers_are_left(redis, broker, keys, job):
    for number in range(MANY - 50):
        broker.sign_off([QUEUE], f"w-{number}")
    tend(broker)
    assert redis.exists(keys.runners)

    broker.sign_off([QUEUE], f"w-{MANY - 50}")
    tend(broker)

    assert not redis.exists(keys.runners)
    assert running(broker) == 1

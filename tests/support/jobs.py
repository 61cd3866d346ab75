"""Makes jobs in each state, as the starting point of a test; takes them as workers do, and hears of them.

An id has the time when the job was made, a number and a name, "019a…-000001-a": scripts read the time, people the name.
"""

import itertools
import json
import time
from contextlib import contextmanager

from django_rtq.core.broker.control import cancel_call, wake_supervisor_of
from django_rtq.core.broker.messages import NewJob
from django_rtq.core.broker.settlement import Report, Settlement
from django_rtq.core.broker.worker_broker import for_workers
from django_rtq.core.jobs.record import read_record

QUEUE = "default"
WORKER = "w1"
KEEP_MS = 3_600_000
ERROR = json.dumps({"error": "it broke"})
NOTE = "done 3600000 d1"  # what is kept of the digest of a unique_job()

_numbers = itertools.count(1)


def new_job(name=None, *, client="", priority=0, max_crashes=3, due="", expires="", at_front=False, body="{}"):
    """A job that is not enqueued yet."""
    return NewJob(
        id=job_id(name, time.time_ns() // 1_000_000),
        priority=priority,
        max_crashes=max_crashes,
        client=client,
        due=due,
        expires=expires,
        at_front="1" if at_front else "",
        body=body,
    )


def unique_job(name=None, *, digest="d1", until="done", limit_ms=3_600_000, on_conflict="return", **options):
    """A unique job that is not enqueued yet."""
    held = {"digest": digest, "until": until, "limit_ms": limit_ms, "on_conflict": on_conflict}
    return new_job(name, **options)._replace(**held)


def job_id(name, made_ms):
    """The id of a job that was made at that time."""
    return f"{made_ms:012x}-{next(_numbers):06}-{name or 'job'}"


def queued_job(broker, name=None, *, queue=QUEUE, **options):
    """A job that waits for a worker."""
    job = new_job(name, **options)
    assert broker.enqueue(queue, [job]) == ["ok"]
    return job


def scheduled_job(broker, name=None, *, due="+60000", **options):
    """A job that waits for its time."""
    return queued_job(broker, name, due=due, **options)


def claimed_job(broker, name=None, *, worker=WORKER, queue=QUEUE, **options):
    """A job that a worker holds, in a queue where nothing else waited."""
    (job,) = claimed_jobs(broker, new_job(name, **options), worker=worker, queue=queue)
    return job


def claimed_jobs(broker, *jobs, worker=WORKER, queue=QUEUE):
    """Jobs that a worker holds, in a queue where nothing else waited."""
    assert set(broker.enqueue(queue, jobs)) == {"ok"}
    for_workers(broker).sign_on([queue], worker)
    (claimed,) = for_workers(broker).claim(worker, [queue], len(jobs)).claimed
    assert {i.decode() for i in claimed.ids} == {job.id for job in jobs}
    return list(jobs)


def asked_job(broker, name=None, *, terminate=False, **options):
    """A job that a worker holds, and that was asked to stop."""
    job = claimed_job(broker, name, **options)
    how = "terminate" if terminate else "ask"
    call = cancel_call(broker.keys.of(options.get("queue", QUEUE)), broker.config, job.id, how)
    answer, worker = broker.redis.execute_one(call)
    assert answer == b"asked"
    broker.redis.run(wake_supervisor_of(broker.keys, worker.decode()))
    return job


def retrying_job(broker, name=None, *, wait_ms=60_000, **options):
    """A job that has failed once and waits for its next attempt."""
    job = claimed_job(broker, name, worker="failing", **options)
    settle(broker, "retry", job, worker="failing", wait_ms=wait_ms)
    for_workers(broker).sign_off([QUEUE], "failing")
    return job


def dead_job(broker, name=None, **options):
    """A dead letter that failed once."""
    job = claimed_job(broker, name, worker="failing", **options)
    settle(broker, "bury", job, worker="failing")
    for_workers(broker).sign_off([QUEUE], "failing")
    return job


def suspect_job(broker, name=None, **options):
    """A queued job that has crashed a worker before."""
    job = claimed_job(broker, name, worker="crashing", **options)
    for_workers(broker).reclaim_child(QUEUE, "crashing", [job.id])
    return job


def finished_job(broker, name=None, **options):
    job = claimed_job(broker, name, worker="finishing", **options)
    settle(broker, "ack", job, worker="finishing")
    for_workers(broker).sign_off([QUEUE], "finishing")
    return job


#: By state; a job is claimed where nothing else waits, so those that wait in the queue are last.
SEEDS = {
    "dead": dead_job,
    "finished": finished_job,
    "retrying": retrying_job,
    "running": claimed_job,
    "scheduled": scheduled_job,
    "queued": queued_job,
}


def enqueue(broker, *jobs):
    """Enqueue jobs; returns the answer for each."""
    return broker.enqueue(QUEUE, jobs)


def entered_job(broker, name="a", **options):
    """A unique job that waits."""
    job = unique_job(name, **options)
    assert enqueue(broker, job) == ["ok"]
    return job


def held_job(broker, name=None, *, successor=None, worker=WORKER, **options):
    """A unique job that a worker runs; another of that name waits for its end."""
    job = entered_job(broker, name, **options)
    assert claim(broker, worker=worker) == [job.id]
    if successor:
        again = unique_job(successor, **{**options, "on_conflict": "rerun"})
        assert enqueue(broker, again) == [f"after {job.id}"]
    return job


def dead_unique_job(broker, name="a", **options):
    """A dead letter that held its digest."""
    job = held_job(broker, name, **options)
    settle(broker, "bury", job)
    return job


def settlement(verb, *jobs, wait_ms=60_000, counted=1, outcome='"done"', error=ERROR, keep_ms=KEEP_MS):
    """A settlement of jobs that all end in the same way."""
    made, is_failure = Settlement(), verb in ("retry", "bury")
    for job in jobs:
        made.add(Report(verb, job.id, wait_ms if is_failure else keep_ms, error if is_failure else outcome, counted))
    return made


def client_of(job):
    """The client of a job; "" for a handle, which does not know it."""
    return getattr(job, "client", "")


def settle(broker, verb, *jobs, worker=WORKER, **details):
    """End the run of jobs; answers the stale ids."""
    return for_workers(broker).settle(worker, QUEUE, settlement(verb, *jobs, **details))


def claim(broker, wanted=1, *, worker="w2", queues=(QUEUE,), idle=1):
    """Claim for a worker that is new, or was not; answers the ids."""
    broker = for_workers(broker)
    broker.sign_on(queues, worker)
    return [i.decode() for part in broker.claim(worker, queues, wanted, idle=idle).claimed for i in part.ids]


def claim_all(broker, wanted=10, *, queue=QUEUE, **options):
    """Claim until nothing is left to claim."""
    ids = []
    while broker.redis.execute_one(("EXISTS", broker.keys.of(queue).bands)):
        ids += claim(broker, wanted, queues=[queue], **options)
    return ids


def let_lapse(broker, *workers, queue=QUEUE):
    """Make the leases of workers expire."""
    for worker in workers:
        broker.redis.execute_one(("ZADD", broker.keys.of(queue).workers, "XX", 1, worker))


def let_fall_due(broker, *jobs):
    """Make delayed jobs due since a minute ago, one millisecond apart."""
    keys, now_ms = broker.keys.of(QUEUE), time.time_ns() // 1_000_000
    for place, job in enumerate(jobs):
        client = client_of(job)
        due, of_client = now_ms - 60_000 + place, keys.scheduled_by_client + f":{client}".encode()
        for key in (keys.scheduled, keys.retrying, of_client):
            broker.redis.execute_one(("ZADD", key, "XX", due, job.id))
        broker.redis.execute_one(("ZADD", keys.scheduled_by_client, "XX", "LT", due, client))


def lose_record(broker, *jobs):
    """Delete the records of jobs, as a truncated append-only log does."""
    broker.redis.execute_one(("HDEL", broker.keys.of(QUEUE).jobs, *(job.id for job in jobs)))


def names(ids):
    texts = [i.decode() if isinstance(i, bytes) else i for i in ids]
    return [text.split("-", 2)[2] for text in texts]


def read_all(read, *, most=100):
    """The pages of a list, and their jobs."""
    pages, cursor = [], ""
    for _ in range(most):
        pages.append(read(cursor))
        cursor = pages[-1].next_cursor
        if not cursor:
            return pages, [job.id for page in pages for job in page.jobs]
    raise AssertionError("The list has no end.")


def take_all(broker, *, queue=QUEUE, wanted=100, worker="taker"):
    """Claim up to so many jobs, in the order in which they would run."""
    for_workers(broker).sign_on([queue], worker)
    return [
        read_record(job_id.decode(), queue, record)
        for claimed in for_workers(broker).claim(worker, [queue], wanted).claimed
        for job_id, record in zip(claimed.ids, claimed.records, strict=True)
    ]


def take(broker, **options):
    """Claim the one job that waits."""
    (job,) = take_all(broker, **options)
    return job


@contextmanager
def receiving(receiver, *signals):
    """Meanwhile it receives these signals."""
    for signal in signals:
        signal.connect(receiver)
    try:
        yield
    finally:
        for signal in signals:
            signal.disconnect(receiver)

"""Calls of the scripts for functions that get many jobs at once."""

from django_rtq.workflows.batches import claim_lanes
from tests.support.jobs import QUEUE, WORKER, new_job

TASK = "shop.index"
BODY = f'{{"task":"{TASK}","args":[1]}}'


def new_jobs(letters, *, client="x", **options):
    """Jobs of the task that are not enqueued yet, one for each letter."""
    return [new_job(letter, client=client, body=BODY, **options) for letter in letters]


def first_claimed(broker):
    """One of several jobs of a client is claimed; another client waits."""
    jobs = [*new_jobs("abcde"), *new_jobs("y", client="y")]
    broker.enqueue(QUEUE, jobs)
    broker.sign_on([QUEUE], WORKER)
    broker.claim(WORKER, [QUEUE], 1)
    return jobs


def claim_others(broker, jobs):
    return claim_lanes([(QUEUE, 2, b"0", b"x", TASK)], broker, WORKER)

"""Several workers, each with a scheduler: a slot fires once, whichever of them die (G7)."""

from collections import Counter

from tests.support.jobs import QUEUE
from tests.support.waiting import wait_until

STEP_MS = 200
TICK = {"task": "tests.app.tasks.note", "every": STEP_MS / 1000, "args": ["tick"], "missed": "all"}


def slots_of(redis):
    """The slots of the jobs that are done."""
    return sorted(int(job_id[:12], 16) for job_id in redis.smembers(f"{{rtq:{QUEUE}}}:finished"))


def enqueued(redis):
    return sum(int(redis.hget(key, "enqueued") or 0) for key in redis.scan_iter(f"{{rtq:{QUEUE}}}:stats:*"))


def gaps(slots):
    """The slots that are missing, or doubled."""
    return Counter(range(slots[0], slots[-1] + 1, STEP_MS)) - Counter(slots) or Counter(slots) - Counter({*slots})


def test_each_slot_fires_once_while_schedulers_come_and_die(redis, rtq_worker, journal):
    workers = [rtq_worker(SCHEDULES={"tick": TICK}) for _ in range(3)]
    wait_until(lambda: len(slots_of(redis)) >= 5)

    workers[0].kill_group(9)  # others run its job when its lease has expired
    done = len(slots_of(redis))  # the first worker may have done many, before the others had started
    wait_until(lambda: len(slots_of(redis)) >= done + 10 and not gaps(slots_of(redis)))
    for worker in workers[1:]:
        assert worker.stop() == 0

    slots = slots_of(redis)
    fired = int(redis.hget(f"{{rtq:{QUEUE}}}:schedules", "tick").split()[0])
    waiting = redis.llen(f"{{rtq:{QUEUE}}}:lane:0:")
    assert not gaps(slots)
    assert (fired - slots[0]) // STEP_MS + 1 == enqueued(redis) == len(slots) + waiting
    assert len(slots) <= journal.starts("tick") <= len(slots) + 1  # who was killed may have been at it

"""No job may be lost, and none may be in two places."""

from redis.exceptions import RedisError

KEPT = (
    *("finished", "finished_before", "no_outcome", "no_outcome_before"),
    *("results", "recent_results", "result_times", "result_expiry"),
    "clock",
    "settings_stamp",
    "stats",
    "turn",
    "lanes",
    "work_signal",
    "due_signal",
    "announced",
)
COUNTED = (
    *("tasks", "client_runs", "client_time", "hours"),
    *("done_runs", "failed_runs", "failing"),
)  # some appear when an hour is over


def keys_of(redis):
    """All keys of queues: (queue, name) -> key."""
    found = {}
    for key in redis.scan_iter("{*}:*", count=1000):
        tag, _, name = key.decode().partition("}:")
        queue = tag.rpartition(":")[2]
        if ":" not in tag:  # in a Cluster
            queue, _, name = name.partition(":")
        found[queue, name] = key
    return found


def places(redis):
    """Each live job's places: id -> names of keys."""
    found = {}
    for (_, name), key in keys_of(redis).items():
        kind = name.partition(":")[0]
        if kind == "lane":
            ids = redis.lrange(key, 0, -1)
        elif kind == "running":
            ids = redis.hkeys(key)
        elif kind in ("scheduled", "dead"):
            ids = redis.zrange(key, 0, -1)
        else:
            continue
        for job_id in ids:
            found.setdefault(job_id.decode(errors="replace"), []).append(name)
    return found


def records(redis):
    """The ids of all live jobs."""
    return {
        i.decode(errors="replace")
        for (_, name), key in keys_of(redis).items()
        if name == "jobs"
        for i in redis.hkeys(key)
    }


def is_empty(redis):
    """Whether no job lives; False while Redis is away."""
    try:
        return not records(redis)
    except RedisError:
        return False


def dead(redis):
    """The ids of all dead letters."""
    return {
        i.decode(errors="replace")
        for (_, n), key in keys_of(redis).items()
        if n == "dead"
        for i in redis.zrange(key, 0, -1)
    }


def signed_on(redis):
    """The process ids of those that may hold jobs, in whatever queue."""
    keys = [key for (_, name), key in keys_of(redis).items() if name == "signed_on"]
    return {int(worker.split(b":")[-2]) for key in keys for worker in redis.zrange(key, 0, -1)}


def assert_conserved(redis):
    """Every live job is in one place, and nobody holds one."""
    found = places(redis)
    assert not {job_id: names for job_id, names in found.items() if len(names) != 1}
    assert not {job_id: names for job_id, names in found.items() if names[0].startswith("running:")}
    assert records(redis) == found.keys()


def assert_all_settled(redis, *workers):
    """When these have stopped, nothing waits and nothing runs: every job is finished or dead."""
    for worker in workers:
        worker.stop()
    assert_conserved(redis)
    assert records(redis) == dead(redis)


def assert_nothing_left(redis, *workers):
    """When these have stopped, all jobs are finished, and of the keys only those are left that are kept for a time."""
    assert_all_settled(redis, *workers)
    assert not dead(redis)
    left = [pair for pair in keys_of(redis) if pair[1].partition(":")[0] not in KEPT + COUNTED]
    assert not left, left

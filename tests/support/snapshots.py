"""Snapshots of all keys as plain Python values, and the difference between two of them."""

import math
import re
from collections import Counter

from tests.support.jobs import QUEUE

MS = "<ms>"  # stands for a moment in a snapshot without times
GONE = None  # stands for a key that is there no more

_READ = {
    b"string": lambda pipe, key: pipe.get(key),
    b"list": lambda pipe, key: pipe.lrange(key, 0, -1),
    b"set": lambda pipe, key: pipe.smembers(key),
    b"hash": lambda pipe, key: pipe.hgetall(key),
    b"zset": lambda pipe, key: pipe.zrange(key, 0, -1, withscores=True),
}
_TIMES = (
    (re.compile(r"\b[0-9a-f]{12}-\d{6}-"), ""),  # how an id of tests/support/jobs.py begins
    (re.compile(r"\b[0-9a-f]{12}(?=8[0-9a-f]{3}[89][0-9a-f]{15}\b)"), ""),  # and one of a member of a workflow
    (re.compile(r"(?<![\d.])1\d{12,13}(?!\d)"), MS),  # ms, or tenths of them
    (re.compile(r"(?<=^\d )\d{10,12}(?= [\d.]+ )"), MS),  # sums of times, in `job_times`
)


def snapshot(redis, *, times=True):
    """Every key but the format, by its name in the queue, with its value. The counters of all minutes are added up.

    Without times moments become MS, and of ids only the names are left.
    """
    keys = sorted(set(redis.scan_iter(count=1000)) - {b"rtq:format", b"{rtq.0.0}::format"})
    with redis.pipeline(transaction=False) as pipe:
        for key in keys:
            pipe.type(key)
        types = pipe.execute()
        for key, kind in zip(keys, types, strict=True):
            _READ[kind](pipe, key)
        values = pipe.execute()
    taken = {}
    for key, value in zip(keys, values, strict=True):
        name = _short(key.decode())
        taken[name] = _added_up(taken.get(name, {}), value) if name.endswith("stats") else _plain(value)
        if name.endswith("totals"):  # the next minute may have begun since the last snapshot
            taken[name] = {each: number for each, number in taken[name].items() if each not in ("minute", "hour")}
    return taken if times else _without_times(taken)


def changes(before, after):
    """The keys that are not the same, with their new values, or GONE."""
    return {key: after.get(key, GONE) for key in sorted({*before, *after}) if before.get(key) != after.get(key)}


def live_jobs(redis):
    """Every job that has a record: id -> record."""
    taken = snapshot(redis)
    return {job_id: record for key in taken if key.endswith("jobs") for job_id, record in taken[key].items()}


def places_of(redis, job):
    """Where a job is, by the names of the keys."""
    taken = snapshot(redis)
    names = {key: key.removeprefix("low:") for key in taken}
    return [
        key
        for key, name in names.items()
        if (name in ("scheduled", "dead", "finished") or name.startswith(("lane:", "running:")))
        and job.id in taken[key]
    ]


def place_of(redis, job):
    (place,) = places_of(redis, job)
    return place


def is_foreign(key):
    """Whether a key is none of ours."""
    return not key.startswith((b"rtq:", b"{rtq:", b"{rtq.0.0}:"))


def _short(key):
    key = re.sub(r"^\{rtq\.0\.0\}:([^:]+):", r"{rtq:\1}:", key).replace("{rtq.0.0}::", "rtq:")  # in a Cluster
    name = key.removeprefix(f"{{rtq:{QUEUE}}}:").replace("{rtq:", "").replace("}", "")
    return re.sub(r"\b(stats|tasks|client_runs|client_time|done_runs|failed_runs):\d+$", r"\1", name)


def _added_up(counters, more):
    return dict(Counter(counters) + Counter({name.decode(): int(n) for name, n in more.items()}))


def _plain(value):
    match value:
        case bytes():
            return value.decode(errors="backslashreplace")  # a bitmap is no text
        case float():
            return int(value) if math.isfinite(value) else value
        case dict():
            return {_plain(key): _plain(item) for key, item in value.items()}
        case [(_, float()), *_]:
            return {_plain(key): _plain(score) for key, score in value}
        case list():
            return [_plain(item) for item in value]
        case set():
            return {_plain(item) for item in value}
        case _:
            return value


def _without_times(value):
    match value:
        case str():
            for pattern, word in _TIMES:
                value = pattern.sub(word, value)
            return value
        case int() if abs(value) > 10**12:
            return MS
        case dict():
            return {_without_times(key): _without_times(item) for key, item in value.items()}
        case list() | set():
            return type(value)(_without_times(item) for item in value)
        case _:
            return value

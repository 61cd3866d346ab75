"""What workers note of tasks that they do not know."""

import pytest

from django_rtq.core.jobs.job import PARK_SECONDS
from tests.support.jobs import QUEUE, claimed_job, settle
from tests.support.snapshots import changes, snapshot
from tests.support.waiting import server_ms

PARK_MS = round(PARK_SECONDS * 1000)
TASK = "shop.tasks.charge"


@pytest.fixture
def noted(redis, broker, keys):
    """The fields of what is noted of the task, as numbers and the workers."""

    def read(task=TASK):
        since, last, slot, jobs, before, *workers = redis.hget(keys.unknown_tasks, task).decode().split(" ")
        return {"since": int(since), "last": int(last), "slice": int(slot), "jobs": int(jobs), "before": int(before),
                "workers": workers}  # fmt: skip

    return read


@pytest.fixture
def rewrite(redis, keys, noted):
    """Lets time pass for what is noted."""

    def change(task=TASK, **fields):
        line = {**noted(task), **fields}
        workers = line.pop("workers")
        redis.hset(keys.unknown_tasks, task, " ".join([*map(str, line.values()), *workers]))

    return change


def note(broker, job_id="a", worker="web1:7:x", task=TASK):
    return broker.note_unknown_task(QUEUE, job_id.encode(), task, worker)


def test_the_first_job_is_noted_with_its_time_and_worker(redis, broker, keys, noted):
    claimed_job(broker, "a")
    before, earliest = snapshot(redis), server_ms(redis)

    assert note(broker) == b""

    assert list(changes(before, snapshot(redis))) == ["unknown_tasks"]
    found = noted()
    assert earliest <= found["since"] == found["last"] <= server_ms(redis)
    assert found["slice"] == found["last"] // PARK_MS
    assert (found["jobs"], found["before"], found["workers"]) == (1, 0, ["web1:7:x"])
    assert 3500 < redis.ttl(keys.unknown_tasks) <= 3600


def test_the_failures_of_the_job_come_back(broker):
    job = claimed_job(broker, "a")
    settle(broker, "retry", job)
    assert note(broker, job.id) == b'{"error": "it broke"}\n'


def test_jobs_are_counted_by_half_minutes_and_the_latest_workers_named(broker, noted):
    for number in range(5):
        note(broker, str(number), worker=f"web{number}:7:x")
    assert noted()["jobs"] + noted()["before"] == 5  # a half minute may end right now
    assert noted()["workers"] == ["web4:7:x", "web3:7:x", "web2:7:x"]

    note(broker, worker="web2:7:x")
    assert noted()["workers"] == ["web2:7:x", "web4:7:x", "web3:7:x"]


@pytest.mark.parametrize(("slices", "before"), [(1, 6), (2, 0)])
def test_a_new_half_minute_begins_at_one_and_keeps_the_last(broker, noted, rewrite, slices, before):
    note(broker)
    since = noted()["since"] - slices * PARK_MS
    rewrite(since=since, slice=noted()["last"] // PARK_MS - slices, jobs=6, before=4)

    note(broker)

    assert (noted()["since"], noted()["jobs"], noted()["before"]) == (since, 1, before)


def test_after_a_silence_it_begins_anew(broker, noted, rewrite):
    note(broker, worker="old:1:x")
    last = noted()["last"] - 3 * PARK_MS - 1
    rewrite(since=last - 9, last=last, jobs=6, before=4)

    note(broker)

    found = noted()
    assert found["since"] == found["last"]
    assert (found["jobs"], found["before"], found["workers"]) == (1, 0, ["web1:7:x"])


def test_no_more_than_a_hundred_tasks_are_noted(redis, broker, keys):
    for number in range(101):
        note(broker, task=f"task{number}")
    assert redis.hlen(keys.unknown_tasks) == 100
    note(broker, task="task5")
    assert redis.hget(keys.unknown_tasks, "task5").split(b" ")[3] in (b"1", b"2")

"""Dead letters by task and error, counted and swept up."""

from django_rtq.console.reading.actions import How
from django_rtq.core.jobs import serializer
from tests.support import sweeps
from tests.support.jobs import QUEUE, claim, claimed_job, dead_job, settle
from tests.support.snapshots import snapshot


def bury(broker, task, kind="builtins.ValueError", message="no", **options):
    """A dead letter of this task and error."""
    job = claimed_job(broker, worker="failing", body=serializer.dumps({"task": task}), **options)
    line = serializer.dumps({"at": 1, "error_class": kind, "error": message, "traceback": "t" * 20_000})
    settle(broker, "bury", job, worker="failing", error=line)
    broker.sign_off([QUEUE], "failing")
    return job


def sweep(readers, action="requeue", limit=1000, *, until_ms, **wanted):
    """All steps; what was done, and how many steps it took."""
    steps = list(sweeps.steps(readers, action, until_ms=until_ms, limit=limit, **wanted))
    return [job_id for step in steps for job_id in step.done], len(steps)


def test_what_cannot_be_read_is_a_group_too(redis, broker, readers):
    job = dead_job(broker)
    redis.hset(broker.keys.of(QUEUE).jobs, job.id, "nonsense")
    redis.hset(broker.keys.of(QUEUE).errors, job.id, "nonsense")

    (group,) = readers.dead_letters.with_messages(readers.dead_letters.all_groups().groups)

    assert (group.task, group.error_class, group.count, group.message) == ("", "", 1, "nonsense")


def test_the_newest_of_several_failures_counts(redis, broker, readers):
    job = bury(broker, "ship", "a.First")
    readers.actions.done("requeue", QUEUE, [job.id])
    claim(broker)
    line = serializer.dumps({"error_class": "b.Second", "error": "x" * 5000})
    settle(broker, "bury", job, worker="w2", error=line)

    (group,) = readers.dead_letters.with_messages(readers.dead_letters.all_groups().groups)

    assert group.error_class == "b.Second"
    assert group.message.startswith("xxxx")


def test_who_dies_after_the_snapshot_is_not_meant(redis, broker, readers):
    early = bury(broker, "ship")
    until_ms = sweeps.count(readers, "requeue").until_ms
    late = bury(broker, "ship")
    redis.zadd(broker.keys.of(QUEUE).dead, {late.id: until_ms + 1})

    done, _ = sweep(readers, "discard", until_ms=until_ms)

    assert done == [early.id]
    assert snapshot(redis)["dead"] == {late.id: until_ms + 1}


def test_who_was_requeued_and_dies_anew_is_not_swept_twice(redis, broker, readers):
    job = bury(broker, "ship")
    until_ms = sweeps.count(readers, "requeue").until_ms
    assert sweep(readers, until_ms=until_ms)[0] == [job.id]
    claim(broker)
    settle(broker, "bury", job, worker="w2")
    redis.zadd(broker.keys.of(QUEUE).dead, {job.id: until_ms + 1})

    assert sweep(readers, until_ms=until_ms)[0] == []
    assert (
        readers.actions.done("requeue", QUEUE, [job.id], How(latest_ms=until_ms)) == []
    )  # even when it was looked up before
    assert readers.actions.done("discard", QUEUE, [job.id], How(latest_ms=until_ms)) == []

"""What a job takes along to another shard."""

from django_rtq.broker.job_steps import send_command
from tests.broker.model.carry_calls import pack
from tests.broker.model.step_calls import DONE, holder
from tests.support.jobs import (
    QUEUE,
    claim,
    claimed_job,
    dead_job,
    entered_job,
    finished_job,
    held_job,
    queued_job,
    retrying_job,
    scheduled_job,
    settle,
    suspect_job,
)
from tests.support.snapshots import snapshot


def reason(broker, job_id):
    stamp, text = pack(broker, job_id)
    assert stamp == b""
    return text.decode()


def test_where_it_is_and_all_that_lies_beside_it(redis, broker):
    jobs = {
        "retrying": retrying_job(broker),
        "dead": dead_job(broker),
        "scheduled": scheduled_job(broker),
        "lane": queued_job(broker, client="x", priority=5),
    }
    before = snapshot(redis)

    for state, job in jobs.items():
        _, texts, steps, lines, log_ms = pack(broker, job.id)
        assert texts[0].split(b" ")[0] == state.encode()
        assert texts[1:3] == [job.id.encode(), redis.hget(broker.keys.of(QUEUE).jobs, job.id)]
        assert len(texts) == 10
        assert (steps, lines, log_ms) == ([], [], -2)
    assert pack(broker, jobs["retrying"].id)[1][3] == b"1"
    assert snapshot(redis) == before


def test_a_crash_a_key_and_lines_go_along(redis, broker):
    suspect, unique = suspect_job(broker, "a"), entered_job(broker, "b")
    redis.rpush(broker.keys.of(QUEUE).log_of(suspect.id), "one", "two")

    _, texts, _, lines, log_ms = pack(broker, suspect.id)

    assert (texts[4], lines, log_ms) == (b"1", [b"one", b"two"], -1)
    assert pack(broker, unique.id)[1][7].startswith(b"done 3600000 d1")


def test_what_a_paused_task_holds_is_of_its_lane(redis, broker, inspector):
    inspector.task_pauses.pause_task("charge", QUEUE, by="eve")
    job = queued_job(broker, "a", body='{"task":"charge"}')
    assert claim(broker) == []

    place, since = pack(broker, job.id)[1][0].split(b" ")

    assert place == b"lane"
    assert int(since) == int(job.id[:12], 16)


def test_steps_and_events_go_along_and_change_the_stamp(redis, broker):
    job = claimed_job(broker)
    assert broker.steps.write(holder(broker, job), "step charge", DONE)
    settle(broker, "retry", job)
    stamp, texts, steps, *_ = pack(broker, job.id)
    assert (texts[9], dict(zip(steps[::2], steps[1::2], strict=True))) == (b"", {b"step charge": DONE.encode()})

    broker.redis.execute_one(send_command(broker.keys.of(QUEUE), job.id, "paid", "t1", "1"))

    assert pack(broker, job.id)[0] != stamp


def test_an_outcome(redis, broker):
    job = finished_job(broker)

    _, texts, *_ = pack(broker, job.id)

    assert texts == [b"finished 0", job.id.encode(), redis.hget(broker.keys.of(QUEUE).results, job.id)]


def test_why_it_stays(broker):
    running, owner = claimed_job(broker), held_job(broker, "a", successor="b")
    (successor,) = [job_id for job_id in broker.redis.execute_one(("ZRANGE", broker.keys.of(QUEUE).scheduled, 0, -1))]

    assert reason(broker, "unknown") == "missing"
    assert reason(broker, running.id) == "running"
    assert reason(broker, owner.id) == "running"
    assert reason(broker, successor.decode()) == f"after {owner.id}"
    settle(broker, "ack", owner)
    assert pack(broker, successor.decode())[0]

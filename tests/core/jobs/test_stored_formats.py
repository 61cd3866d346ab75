"""Lua scripts and Python read and write the same formats: records, failures, outcomes, details and schedules."""

import json

import pytest

from django_rtq.core.broker import scripts
from django_rtq.core.broker.schedule_store import ScheduleState
from django_rtq.core.jobs.failure import (
    FAILURE,
    Attempt,
    read_cut_failure,
    read_failures,
    shorten_failure,
    write_failure,
)
from django_rtq.core.jobs.job import new_job_id, write_body, write_record
from django_rtq.core.jobs.outcome import (
    CANCELLED_UNRUN,
    drop_result,
    is_result_lost,
    read_outcome,
    write_call,
    write_cancelled,
    write_expired,
    write_succeeded,
)
from django_rtq.core.jobs.record import has_body, read_head, read_leniently
from django_rtq.core.jobs.serializer import unquoted
from django_rtq.exceptions import WorkerLost
from tests.support.jobs import KEEP_MS, QUEUE, claimed_job, dead_job, new_job, queued_job, settle, suspect_job
from tests.support.waiting import server_ms

TASK = "shop.tasks.mail"
BODY = write_body(TASK, '"args":[1,"a b"],"kwargs":{"x":null}', '"time_limit":5')
CLIENTS = ["", "acme", "two words", "Zoë"]


def lua(redis, function, call, *arguments):
    """Call a function of the part of the scripts that defines it."""
    parts = [path.read_text() for folder in scripts.LUA for path in folder.rglob("*.lua")]
    (part,) = [text for text in parts if f"\nlocal function {function}(" in text]
    return redis.eval(f"{part}\n{call}", 0, *arguments)


def record_of(redis, broker, job):
    return redis.hget(broker.keys.of(QUEUE).jobs, job.id)


# -- records


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("priority", [-100, 0, 7])
def test_python_reads_the_header_that_a_script_writes(redis, broker, client, priority):
    job = queued_job(broker, client=client, priority=priority, max_crashes=2, due="5000", expires="+1000", body=BODY)

    record = record_of(redis, broker, job)

    header, call = read_leniently(record)
    assert header == {
        "priority": priority, "max_crashes": 2, "ready_ms": 5000, "expires_ms": 6000, "client": client,
    }  # fmt: skip
    assert call == json.loads(BODY)
    assert read_head(record[:200]) == (client, TASK)
    assert has_body(record, BODY)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("band", ["-100", "0", "5+"])
def test_scripts_and_python_read_the_same_header(redis, client, band):
    record = write_record(band, 3, 5000, client, BODY, 6000)

    found = lua(redis, "read_header", "local b, c, m = read_header(ARGV[1]) return { b, c, tostring(m) }", record)

    assert [text.decode() for text in found] == [band, client, "3"]
    priority = int(band.removesuffix("+"))
    header = {"priority": priority, "max_crashes": 3, "ready_ms": 5000, "expires_ms": 6000, "client": client}
    assert read_leniently(record.encode()) == (header, json.loads(BODY))


def test_python_reads_the_header_that_requeue_writes(redis, broker, readers):
    job = dead_job(broker, client="acme", priority=5, expires="+1000", body=BODY)
    (before, _) = read_leniently(record_of(redis, broker, job))
    readers.actions.done("requeue", QUEUE, [job.id])

    record = record_of(redis, broker, job)

    after, _ = read_leniently(record)
    assert (after["priority"], after["max_crashes"], after["client"]) == (5, before["max_crashes"], "acme")
    assert after["ready_ms"] >= before["ready_ms"]
    assert after["expires_ms"] == 0
    assert has_body(record, BODY)


# -- failures


def failure(**values):
    values = {"at": 5, "attempt": 2, "worker": "w1", "error": 'no "way"', "traceback": "here\nthere"} | values
    return write_failure(**values)


def test_python_reads_the_failure_that_a_script_writes(redis, broker):
    job = suspect_job(broker)

    lines = redis.hget(broker.keys.of(QUEUE).errors, job.id)

    (found,) = read_failures(lines)
    attempt = Attempt.read(found)
    assert found.keys() <= FAILURE.keys()
    assert attempt.error_class == f"{WorkerLost.__module__}.{WorkerLost.__qualname__}"
    assert (attempt.number, attempt.worker, attempt.traceback) == (1, "crashing", "")
    assert attempt.ended_at is not None
    assert read_cut_failure(lines) == {"error_class": attempt.error_class, "error": attempt.error}


@pytest.mark.parametrize(("other", "is_again"), [("builtins.ValueError", 1), ("builtins.KeyError", 0)])
def test_scripts_find_the_class_in_a_failure_that_python_writes(redis, other, is_again):
    redis.hset("rtq:errors", "j1", failure(error_class="builtins.ValueError") + "\n")
    call = "return is_same_error('rtq:errors', 'j1', ARGV[1]) and 1 or 0"

    assert lua(redis, "is_same_error", call, failure(error_class=other)) == is_again


def test_what_python_writes_scripts_keep_and_python_reads(redis, broker):
    written = failure(error_class="builtins.ValueError", seconds=0.25)
    job = claimed_job(broker)
    settle(broker, "bury", job, error=written)

    (found,) = read_failures(redis.hget(broker.keys.of(QUEUE).errors, job.id))

    assert found.keys() == FAILURE.keys()
    assert (found["error_class"], found["error"], found["seconds"]) == ("builtins.ValueError", 'no "way"', 0.25)
    assert read_failures(shorten_failure(written.encode())) == [found | {"traceback": ""}]


# -- outcomes

OUTCOMES = [
    (
        write_succeeded(TASK, b"", 1, 0.5, "null"),
        {"state": "succeeded", "task": TASK, "attempt": 1, "seconds": 0.5, "result": None},
    ),
    (
        write_succeeded(TASK, 'Zo"ë'.encode(), 2, 0.0, '{"a":[1]}'),
        {"state": "succeeded", "task": TASK, "client": 'Zo"ë', "attempt": 2, "seconds": 0.0, "result": {"a": [1]}},
    ),
    (
        write_succeeded(TASK, b"", 1, 0.5, "1", write_call(f'{{"task":"{TASK}","args":[1],"kwargs":{{"a":"\\"x"}}}}')),
        {
            **{"state": "succeeded", "task": TASK, "attempt": 1, "seconds": 0.5, "result": 1},
            "call": {"args": [1], "kwargs": {"a": '"x'}},
        },
    ),
    (
        write_succeeded(TASK, b"", 1, 0.5, "1", write_call('{"task":"an alias"}')),
        {"state": "succeeded", "task": TASK, "attempt": 1, "seconds": 0.5, "result": 1, "call": {}},
    ),
    (
        write_succeeded(TASK, b"", 1, 0.5, "1", write_call(f'{{"task":"x","args":["{"y" * 10_000}"]}}')),
        {"state": "succeeded", "task": TASK, "attempt": 1, "seconds": 0.5, "result": 1},
    ),
    (write_cancelled(TASK, 3), {"state": "cancelled", "task": TASK, "attempt": 3}),
    (write_expired(TASK), {"state": "expired", "task": TASK}),
    (CANCELLED_UNRUN, {"state": "cancelled"}),
]


@pytest.mark.parametrize(("text", "values"), OUTCOMES)
def test_python_reads_the_outcome_that_a_script_stores(redis, broker, text, values):
    job, began = claimed_job(broker), server_ms(redis)
    settle(broker, "ack", job, outcome=text)
    finished_ms, *others = read_outcome(redis.hget(broker.keys.of(QUEUE).results, job.id))

    assert others == [KEEP_MS, values]
    assert began <= finished_ms <= server_ms(redis)


@pytest.mark.parametrize(("text", "values"), OUTCOMES)
def test_cancel_knows_a_cancelled_job_by_its_outcome(broker, text, values):
    job = claimed_job(broker)
    settle(broker, "finish_cancel", job, outcome=text)

    call = scripts.SCRIPTS["cancel"].call(broker.keys.of(QUEUE), (10, job.id, KEEP_MS, CANCELLED_UNRUN, "ask"))
    answer = broker.redis.execute_one(call)

    assert answer == [b"already" if values["state"] == "cancelled" else b"finished", b""]


def test_an_outcome_without_its_result_says_so():
    outcome = drop_result(write_succeeded(TASK, b"acme", 1, 0.5, '"large"').encode())

    assert is_result_lost(outcome)
    assert json.loads(outcome) == {
        "state": "succeeded", "task": TASK, "client": "acme", "attempt": 1, "seconds": 0.5, "is_lost": True,
    }  # fmt: skip


# -- schedules


def test_python_reads_the_state_of_a_schedule_that_scripts_write(redis, broker):
    broker.schedules.begin(QUEUE, "nightly", "d1", 1000)
    assert broker.schedules.states([QUEUE])[1][QUEUE]["nightly"] == ScheduleState(0, "-", "d1", 1000)

    job = new_job()
    broker.schedules.fire(QUEUE, "nightly", 2000, job, may_overlap=True)

    assert broker.schedules.states([QUEUE])[1][QUEUE]["nightly"] == ScheduleState(2000, job.id, "d1", 1000)


@pytest.mark.parametrize("error", [{}, {"at": "x", "seconds": None, "attempt": []}, {"at": True, "error": 7}])
def test_whatever_stands_there_is_told_as_far_as_it_goes(error):
    attempt = Attempt.read(error)

    assert (attempt.number, attempt.started_at, attempt.ended_at, attempt.seconds) == (None, None, None, None)


def test_an_id_tells_when_the_job_was_made(redis, broker, access):
    job, ours = queued_job(broker), new_job_id()
    broker.enqueue(QUEUE, [job._replace(id=ours)])

    assert access.find(job.id).made_at is None  # anybody's
    assert abs(access.find(ours).made_at.timestamp() - redis.time()[0]) < 5


@pytest.mark.parametrize(
    ("head", "task"),
    [
        (b'0 3 1 0 x\n{"task":"a.b","args":[', "a.b"),
        (b'0 3 1 0 x\n{"task":"a\\"\\u0062"}', 'a"b'),
        (b'0 3 1 0 x\n{"task":"a.b', ""),
        (b'0 3 1 0 x\n{"args":["\\"task\\":\\"no\\""]}', ""),
        (b"nonsense", ""),
        (b"", ""),
    ],
)
def test_the_beginning_of_a_record_tells_its_task(head, task):
    client, found = read_head(head)

    assert found == task
    assert client == ("x" if head.startswith(b"0 ") else None)


@pytest.mark.parametrize(("text", "said"), [("a", "a"), (r"a\n", "a\n"), (r"a\u00", "a"), ("a\\", "a"), ("", "")])
def test_a_text_that_was_cut_says_what_is_left(text, said):
    assert unquoted(text) == said

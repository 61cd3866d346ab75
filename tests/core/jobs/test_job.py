"""Ids and records of jobs."""

import contextlib
import os
import random
import re
import signal
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_rtq.core.jobs import job as job_module
from django_rtq.core.jobs.job import Job, JobState, moment, new_job_id
from django_rtq.core.jobs.record import read_record
from django_rtq.exceptions import PayloadError, Retry

# -- ids


def test_an_id_is_a_uuid_of_version_7():
    before_ms = time.time_ns() // 1_000_000
    job_id = new_job_id()
    after_ms = time.time_ns() // 1_000_000

    assert len(job_id) == 32
    assert uuid.UUID(job_id).hex == job_id
    assert (uuid.UUID(job_id).version, uuid.UUID(job_id).variant) == (7, uuid.RFC_4122)
    assert before_ms <= int(job_id[:12], 16) <= after_ms


def test_ids_grow_from_call_to_call():
    ids = [new_job_id() for _ in range(100_000)]

    assert ids == sorted(set(ids))
    assert {job_id[12] for job_id in ids} == {"7"}
    assert {job_id[16] for job_id in ids} == set("89ab")


@pytest.mark.parametrize("step_ns", [0, -1, -900_000_000], ids=["coarse", "backwards", "put_back"])
def test_ids_grow_although_the_clock_does_not(monkeypatch, step_ns):
    now = time.time_ns() + 60 * 10**9  # ahead of the ids of other tests
    monkeypatch.setattr(job_module._clock, "_latest", 0)
    clock = iter([now, *[now + step_ns] * 9999])
    monkeypatch.setattr(time, "time_ns", lambda: next(clock))

    ids = [new_job_id() for _ in range(10_000)]

    assert ids == sorted(set(ids))
    assert int(ids[-1][:12], 16) - now // 1_000_000 in range(4)  # 4,096 of them fit into a millisecond


def test_the_time_of_an_id_follows_a_clock_that_is_put_back_by_an_hour(monkeypatch):
    now = time.time_ns() + 7200 * 10**9
    monkeypatch.setattr(job_module._clock, "_latest", 0)
    clock = iter([now, now - 3600 * 10**9])
    monkeypatch.setattr(time, "time_ns", lambda: next(clock))

    first, second = new_job_id(), new_job_id()

    assert int(first[:12], 16) - int(second[:12], 16) == 3_600_000


def test_ids_of_several_threads_differ_and_grow_in_each():
    def make(_):
        return [new_job_id() for _ in range(5000)]

    with ThreadPoolExecutor(4) as pool:
        lists = list(pool.map(make, range(4)))

    assert all(ids == sorted(ids) for ids in lists)
    assert len({job_id[:16] for ids in lists for job_id in ids}) == 20_000  # no two of one time


def test_ids_that_are_made_together_are_like_others():
    before, together, after = new_job_id(), job_module.new_job_ids(5000), new_job_id()

    ids = [before, *together, after]
    assert ids == sorted(set(ids))
    assert all((uuid.UUID(job_id).version, uuid.UUID(job_id).variant) == (7, uuid.RFC_4122) for job_id in together)
    assert len({job_id[16:] for job_id in together}) == 5000


def test_every_random_digit_of_an_id_varies():
    ids = [new_job_id() for _ in range(1000)]

    for place in range(17, 32):
        assert len({job_id[place] for job_id in ids}) == 16


def test_a_seed_does_not_make_ids_repeat():
    random.seed(0)
    one = new_job_id()
    random.seed(0)

    assert new_job_id()[12:] != one[12:]


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_processes_that_were_forked_make_different_ids():
    readers = []
    for _ in range(4):
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.write(writer, "".join(new_job_id() for _ in range(500)).encode())
            os._exit(0)
        os.close(writer)
        readers.append(reader)
    told = []
    for reader in readers:
        with os.fdopen(reader) as pipe:
            told.append(pipe.read())
        os.wait()

    ids = {text[i : i + 32] for text in told for i in range(0, len(text), 32)}
    assert len(ids) == 2000


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_process_makes_ids_that_was_forked_while_another_thread_made_one():
    is_held, is_over = threading.Event(), threading.Event()

    def hold():
        with job_module._clock._lock:
            is_held.set()
            is_over.wait(10)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(hold)
        is_held.wait(10)
        child = os.fork()
        if child == 0:
            signal.alarm(5)
            new_job_id()
            os._exit(0)
        is_over.set()

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# -- records


def test_a_record_is_read_back():
    record = b'-5 2 1700000000000 1700000060000 two words\n{"task":"a.b","args":[1],"kwargs":{"x":[]},"time_limit":5}'

    assert read_record("j1", "mail", record, failures=2, crashes=1) == Job(
        id="j1",
        task="a.b",
        queue="mail",
        client="two words",
        priority=-5,
        args=[1],
        kwargs={"x": []},
        attempt=4,
        failures=2,
        max_crashes=2,
        ready_ms=1_700_000_000_000,
        expires_ms=1_700_000_060_000,
        options={"time_limit": 5},
    )


def test_a_record_without_arguments_or_a_client_is_read_back():
    assert read_record("j1", "q", b'0 3 5 0 \n{"task":"a.b"}') == Job(id="j1", task="a.b", queue="q", ready_ms=5)


def test_a_line_break_in_an_argument_is_none_of_the_header():
    assert read_record("j1", "q", b'0 3 5 0 c\n{"task":"a.b","args":["x\\ny"]}\n').args == ["x\ny"]


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"\n",
        b"0 3 5 0\n{}",
        b'x 3 5 0 \n{"task":"a.b"}',
        b'0 3 5 0 \xff\n{"task":"a.b"}',
        b"0 3 5 0 \n",
        b"0 3 5 0 \n{",
        b"0 3 5 0 \n{}",
        b"0 3 5 0 \n[]",
        b"0 3 5 0 \n5",
        b'0 3 5 0 \n{"task":["a.b"]}',
        b'0 3 5 0 \n{"task":"a.b","args":[{"$rtq":["os.system","ls"]}]}',
    ],
)
def test_a_record_that_nobody_wrote_is_refused(record):
    with pytest.raises((PayloadError, ValueError)):
        read_record("j1", "q", record)


@given(st.binary())
def test_whatever_a_record_is_it_is_read_or_refused(record):
    with contextlib.suppress(PayloadError, ValueError):
        read_record("j1", "q", b"0 3 5 0 \n" + record)


# -- words


def test_a_state_is_its_word():
    assert f"{JobState.DEAD}" == JobState.DEAD == "dead"
    assert {state for state in JobState if state.is_final} == {"succeeded", "dead", "cancelled", "expired"}


def test_moments_are_aware():
    assert moment(None) is None
    assert moment(0) == datetime(1970, 1, 1, tzinfo=timezone.utc)
    assert moment(10**18) is None
    assert moment(253402300799999) == datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("after", "seconds"), [(None, None), (0, 0), (1.5, 1.5), (-5, -5), (timedelta(minutes=1), 60.0)]
)
def test_a_job_may_say_when_it_wants_to_be_retried(after, seconds):
    assert Retry("busy", after=after).after_seconds == seconds
    assert str(Retry("busy", after=after)) == "busy"


@pytest.mark.parametrize(
    "after", ["5", True, float("nan"), float("inf"), float("-inf"), 10**400, timedelta.max, datetime(2030, 1, 1)]
)
def test_a_job_that_cannot_say_when_is_told_so(after):
    problem = f"Retry(after={after!r}): after has to be seconds or a timedelta of at most ten years."
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        Retry("busy", after=after)

"""Log lines about jobs: wording and levels."""

import asyncio
import logging
import sys

import pytest

from django_rtq import signals
from django_rtq.core import logs
from django_rtq.core.jobs.failure import LONGEST_MESSAGE
from django_rtq.core.jobs.job import Job
from tests.support.jobs import receiving

JOB = Job(id="j1", task="shop.tasks.mail", queue="mail", client="acme", args=["a secret"], attempt=2)
RECLAIMED = {"queue": "mail", "worker": "", "job_ids": [], "buried_ids": []}
LINES = [
    (
        signals.job_retried,
        {"job": JOB, "job_id": "j1", "error": ValueError("x"), "delay_seconds": 2.5},
        (logging.WARNING, "job j1 failed in attempt 2, will be retried in 2.5 s: shop.tasks.mail"),
    ),
    (
        signals.job_retried,
        {"job": None, "job_id": "j1", "error": ValueError("x"), "delay_seconds": 2.5},
        (logging.WARNING, "job j1 failed in attempt ?, will be retried in 2.5 s: ?"),
    ),
    (
        signals.job_buried,
        {"job": JOB, "job_id": "j1", "error": ValueError("x")},
        (logging.ERROR, "job j1 failed permanently in attempt 2, buried as a dead letter: shop.tasks.mail"),
    ),
    (
        signals.job_expired,
        {"job": JOB},
        (logging.WARNING, "job j1 expired before a worker started it: shop.tasks.mail"),
    ),
    (
        signals.job_reclaimed,
        {**RECLAIMED, "job_ids": ["j1", "j2"]},
        (logging.WARNING, "reclaimed 2 jobs from workers with expired leases to queue mail: j1, j2"),
    ),
    (
        signals.job_reclaimed,
        {**RECLAIMED, "worker": "w1", "buried_ids": ["j1"]},
        (logging.ERROR, "buried 1 job of worker w1 after too many crashes: j1"),
    ),
    (
        signals.job_stale,
        {"job_ids": [f"j{i}" for i in range(12)], "worker": "w1"},
        (
            logging.WARNING,
            "ignored 12 results of worker w1, which no longer held the jobs: j0, j1, j2, j3, j4, j5, j6, j7, j8, j9, …",
        ),
    ),
]
QUIET = [
    (signals.job_started, {"job": JOB}, "job j1 started: shop.tasks.mail, attempt 2"),
    (
        signals.job_succeeded,
        {"job": JOB, "seconds": 0.25, "result": "a secret"},
        "job j1 succeeded after 0.250 s: shop.tasks.mail",
    ),
    (signals.job_promoted, {"job_ids": ["j1", "j2"], "queue": "mail"}, "promoted 2 jobs of queue mail"),
]
ALL = {signal for signal, _, _ in [*LINES, *QUIET]}


@pytest.fixture
def connected():
    """Receivers are connected as in a worker, and none is left."""

    def connect(level):
        logging.getLogger("django_rtq").setLevel(level)
        logs.connect()
        logs.connect()

    yield connect
    for signal in ALL:
        signal.disconnect(dispatch_uid="rtq-log")
    logging.getLogger("django_rtq").setLevel(logging.NOTSET)


@pytest.mark.parametrize(("signal", "values", "line"), LINES)
def test_what_went_wrong_is_told_in_one_line(connected, caplog, signal, values, line):
    connected(logging.INFO)
    signal.send_robust(None, **values)

    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == line
    assert "secret" not in caplog.text
    if "error" in values:
        assert record.exc_info[1] is values["error"]


@pytest.mark.parametrize(("signal", "values", "line"), QUIET)
def test_what_went_well_is_told_at_debug_only(connected, caplog, signal, values, line):
    connected(logging.INFO)
    assert not signal.receivers  # and costs nothing
    connected(logging.DEBUG)
    signal.send_robust(None, **values)

    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.DEBUG, line)
    assert "secret" not in str(vars(record))


@pytest.mark.parametrize("looks", ["terminal", "DEBUG", ""])
def test_where_a_person_looks_each_job_that_succeeded_is_one_line(connected, caplog, monkeypatch, settings, looks):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: looks == "terminal", raising=False)
    settings.DEBUG = looks == "DEBUG"
    for level in (logging.INFO, logging.DEBUG):
        connected(level)
        signals.job_succeeded.send_robust(None, job=JOB, seconds=0.25, result="1")

    levels = [logging.INFO, logging.INFO] if looks else [logging.DEBUG]
    assert [record.levelno for record in caplog.records] == levels
    connected(logging.WARNING)


def test_nobody_looks_at_a_process_without_a_stderr(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert not logs.is_watched()


def test_the_message_of_an_error_is_cut_before_anything_is_done_with_it(connected, caplog):
    connected(logging.INFO)
    job = Job(id="j1", task="shop.tasks.mail", queue="mail")
    error = RuntimeError("f" * 1_000_000)
    error.__cause__ = ValueError(f"{'x' * (LONGEST_MESSAGE - 20)}{'e' * 1_000_000}")
    error.__notes__ = ["n" * 1_000_000]

    signals.job_buried.send_robust(None, job=job, job_id="j1", error=error)

    (record,) = caplog.records
    assert len(record.exc_text) < 4 * LONGEST_MESSAGE
    assert "RuntimeError: ffff" in record.exc_text
    assert "eeee" in record.exc_text


def test_lines_have_the_job_as_extra(connected, caplog):
    connected(logging.DEBUG)
    signals.job_started.send_robust(None, job=JOB)
    signals.job_retried.send_robust(None, job=JOB, job_id="j1", error=ValueError("x"), delay_seconds=1)
    for record in caplog.records:
        fields = (record.job_id, record.task, record.queue, record.client, record.attempt)
        assert fields == ("j1", "shop.tasks.mail", "mail", "acme", 2)
    assert len(caplog.records) == 2


def test_lines_about_several_jobs_have_all_ids_as_extra(connected, caplog):
    connected(logging.DEBUG)
    ids = [f"j{number}" for number in range(12)]
    signals.job_promoted.send_robust(None, job_ids=ids, queue="mail")
    signals.job_promoted.send_robust(None, job_ids=["j1"], queue="mail")
    signals.job_buried.send_robust(None, job=None, job_id="j2", error=ValueError("x"))

    many, one, unreadable = caplog.records
    assert (many.job_ids, many.queue, hasattr(many, "job_id")) == (ids, "mail", False)
    assert (one.job_ids, one.job_id) == (["j1"], "j1")
    assert (unreadable.job_id, hasattr(unreadable, "task")) == ("j2", False)


@pytest.mark.parametrize(
    ("signal", "values", "jobs", "fields"),
    [
        (
            signals.job_succeeded,
            {"job": JOB, "seconds": 1.0, "result": ""},
            "job j1",
            {"job_id": "j1", "client": "acme"},
        ),
        (signals.job_buried, {"job": None, "job_id": "j1", "error": ValueError("x")}, "jobs j1", {"job_id": "j1"}),
        (signals.job_reclaimed, {**RECLAIMED, "job_ids": ["j1"], "buried_ids": ["j2"]}, "jobs j1, j2", {}),
        (signals.worker_process_shutdown, {"worker": "w1"}, "a signal without a job", {}),
    ],
)
@pytest.mark.parametrize("is_async", [False, True], ids=["send", "asend"])
def test_what_a_receiver_raises_is_logged_once_with_the_job(caplog, signal, values, jobs, fields, is_async):
    def broken(**kwargs):
        raise RuntimeError("no such plan")

    with receiving(broken, signal):
        asyncio.run(signal.asend_robust(None, **values)) if is_async else signal.send_robust(None, **values)

    (record,) = caplog.records
    name = f"{__name__}.{broken.__qualname__}"
    assert record.getMessage() == f"receiver {name} failed for {jobs}: RuntimeError('no such plan')"
    assert (record.name, record.levelno, record.exc_info[0]) == ("django_rtq", logging.ERROR, RuntimeError)
    assert {field: getattr(record, field) for field in fields} == fields

"""What jobs log, from the record to Redis, and the thread that sends it."""

import contextvars
import json
import logging
import sys
from contextlib import ExitStack

import pytest

from django_rtq.console.job_logs import MAX_WAITING, JobLogs, collect_logs
from django_rtq.console.reading.readers import readers_of
from django_rtq.core.conf.config import Config
from django_rtq.core.jobs.context import CurrentRun, current_run
from django_rtq.core.worker.outcome import BURIED, RETRIED, Outcome
from django_rtq.exceptions import BrokerUnavailable, TimeLimitExceeded
from tests.core.worker.claimed_runs import DONE, claim, claim_new
from tests.support.jobs import QUEUE
from tests.support.waiting import wait_until

logger = logging.getLogger("tests.joblogs")
logger.setLevel("DEBUG")


@pytest.fixture
def logs(session):
    """What the jobs of the session log. No thread sends it."""
    session.logs = JobLogs(Config(redis="redis://x"), logging.INFO, lambda logs: None)
    yield session.logs
    session.logs = None


@pytest.fixture
def collect():
    """Start to collect what all jobs log, which is sent like this."""
    with ExitStack() as stack:

        def start(send):
            logs = collect_logs(Config(redis="redis://x", job_logs=0), send)
            stack.callback(logs.stop)
            return logs

        yield start


def say(run, *texts, logs, level=logging.INFO, name="shop"):
    """Log in the context of a run."""

    def speak():
        current_run.set(CurrentRun(run))
        for text in texts:
            logs.add(logging.LogRecord(name, level, "", 1, text, (), None))

    contextvars.copy_context().run(speak)


def texts(run):
    return [line.text for line in readers_of().find_with_position(run.id, QUEUE)[0].log]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_lines_whose_reply_got_lost_are_there_once(redis, session, run, logs, moment):
    say(run, "one", logs=logs)
    redis.drop_connection(moment)
    with pytest.raises(BrokerUnavailable):
        session.send_logs(logs)
    assert not logs.is_empty

    say(run, "two", logs=logs)
    session.send_logs(logs)

    assert texts(run) == ["one", "two"]
    assert logs.is_empty


@pytest.mark.parametrize("moment", ["before", "after"])
def test_lines_come_with_the_outcome_and_are_there_once(redis, session, run, logs, moment):
    say(run, "one", logs=logs)
    session.send_logs(logs)
    say(run, "two", logs=logs)
    session.add(run, DONE)
    redis.drop_connection(moment)
    with pytest.raises(BrokerUnavailable):
        session.settle()

    session.settle()

    assert texts(run) == ["one", "two"]
    assert logs.is_empty


def test_a_lost_job_gets_no_more_lines(broker, session, run, logs, stale):
    broker.reclaim_child(QUEUE, session.worker, [])
    say(run, "one", logs=logs)
    session.send_logs(logs)
    session.sign_on()
    say(run, "two", logs=logs)
    session.send_logs(logs)

    assert texts(run) == []
    assert logs.is_empty


@pytest.mark.parametrize("outcome", [Outcome(RETRIED, ValueError("x"), 60), Outcome(BURIED, ValueError("x"))])
def test_lines_of_a_job_that_lives_on_or_is_dead_are_kept_for_long(redis, broker, session, run, logs, outcome):
    say(run, "one", logs=logs)
    session.add(run, outcome)
    session.settle()

    assert redis.ttl(broker.keys.of(QUEUE).log_of(run.id)) > 89 * 86_400


def test_a_later_run_without_lines_says_how_long_earlier_ones_are_kept(redis, broker, session, run, logs):
    say(run, "one", logs=logs)
    session.send_logs(logs)
    run.log_lines, run.failures = None, 1
    session.add(run, DONE)
    session.settle()

    assert redis.ttl(broker.keys.of(QUEUE).log_of(run.id)) <= 3600


def test_lines_of_a_dead_letter_that_was_requeued_go_with_its_success(redis, broker, session, run, logs, monkeypatch):
    say(run, "one", logs=logs)
    session.add(run, Outcome(BURIED, ValueError("x")))
    session.settle()
    monkeypatch.setattr("django_rtq.console.job_logs._ENQUEUED_MS", -1)  # nobody waits a second here
    readers_of().actions.done("requeue", QUEUE, [run.id])
    (again,) = claim(session)
    session.add(again, DONE)
    session.settle()

    assert again.attempt == 1
    assert 0 < redis.ttl(broker.keys.of(QUEUE).log_of(run.id)) <= 3600
    assert redis.lrange(broker.keys.of(QUEUE).logged, 0, -1) == [run.job_id]


def test_our_own_lines_and_those_of_nobody_are_left_out(run, logs):
    say(run, "ours", logs=logs, name="django_rtq")
    say(run, "ours", logs=logs, name="django_rtq.core.worker")
    say(None, "nobody's", logs=logs)
    logs.add(logging.LogRecord("shop", logging.INFO, "", 1, "outside", (), None))
    assert logs.is_empty

    say(run, "theirs", logs=logs, name="django_rtq_shop")
    assert not logs.is_empty


def test_lines_that_wait_have_a_limit(broker, session, logs):
    runs = claim_new(broker, session, 40, wanted=40)
    for number, run in enumerate(runs):
        say(run, *(f"{number}.{i}" for i in range(300)), logs=logs)
        logs.take({}, session.worker)

    assert sum(1 + len(part.lines) for part in logs._parts) <= MAX_WAITING
    session.send_logs(logs)
    assert texts(runs[0]) == []
    assert texts(runs[-1]) == [f"39.{i}" for i in range(100, 300)]


def test_a_time_limit_that_hits_while_a_line_is_formatted_is_not_swallowed(run, logs):
    class Slow:
        def __str__(self):
            raise TimeLimitExceeded("over")

    with pytest.raises(TimeLimitExceeded):
        say(run, Slow(), logs=logs)
    assert logs.is_empty


def test_a_text_that_logs_itself_ends_as_without_us(run, logs):
    calls = []

    class Endless:
        def __str__(self):
            calls.append(self)
            say(run, self, logs=logs)
            return ""

    with pytest.raises(RecursionError):
        say(run, Endless(), logs=logs)
    assert len(calls) < 2 * sys.getrecursionlimit()


class Unspeakable:
    def __str__(self):
        raise ValueError("no text")


@pytest.mark.parametrize(("name", "expected"), [(12345, ["one"]), (Unspeakable(), ["one (ValueError", "two"])])
def test_a_level_whose_name_is_no_text_harms_nobody(session, run, logs, name, expected):
    logging.addLevelName(25, name)
    try:
        say(run, "one", logs=logs, level=25)
        logs.take({}, session.worker)
    finally:
        logging._levelToName.pop(25)
        logging._nameToLevel.pop(name)
    session.send_logs(logs)
    say(run, "two", logs=logs)
    session.send_logs(logs)

    assert [text[: len(start)] for text, start in zip(texts(run), expected, strict=False)] == expected


def test_the_record_factory_of_others_is_used_and_put_back(run):
    class Record(logging.LogRecord):
        pass

    before, sent = logging.getLogRecordFactory(), []
    logging.setLogRecordFactory(Record)
    try:
        logs = collect_logs(Config(redis="redis://x", job_logs=logging.WARNING), sent.append)
        assert isinstance(logger.makeRecord("x", 30, "", 1, "", (), None), Record)
        context = contextvars.copy_context()
        context.run(current_run.set, CurrentRun(run))
        context.run(logger.info, "below")
        assert logs.is_empty
        context.run(logger.warning, "a warning")
        wait_until(lambda: sent)
        logs.stop()
        assert logging.getLogRecordFactory() is Record
        context.run(logger.warning, "afterwards")
        assert [json.loads(line)[-1] for line in run.log_lines] == ["a warning"]
    finally:
        logging.setLogRecordFactory(before)


def test_a_factory_that_was_put_around_ours_stays(broker):
    before = logging.getLogRecordFactory()
    logs = collect_logs(Config(redis="redis://x", job_logs=0), lambda logs: None)
    ours = logging.getLogRecordFactory()

    def theirs(*args, **kwargs):
        return ours(*args, **kwargs)

    logging.setLogRecordFactory(theirs)
    try:
        logs.stop()
        assert logging.getLogRecordFactory() is theirs
        assert logger.makeRecord("x", 30, "", 1, "text", (), None).getMessage() == "text"
    finally:
        logging.setLogRecordFactory(before)


def test_records_without_a_name_and_a_level_are_made(run, collect):
    collect(lambda logs: None)
    context = contextvars.copy_context()
    context.run(current_run.set, CurrentRun(run))
    record = context.run(logging.makeLogRecord, {"msg": "from elsewhere", "levelno": 40, "name": "shop"})
    odd = context.run(logging.getLogRecordFactory(), None, 40, "", 1, "without a name", (), None)

    assert (record.getMessage(), odd.getMessage()) == ("from elsewhere", "without a name")
    assert run.log_lines is None


def test_without_the_setting_nothing_is_installed():
    before = logging.getLogRecordFactory()
    assert collect_logs(Config(redis="redis://x"), lambda logs: None) is None
    assert logging.getLogRecordFactory() is before


def test_sending_is_tried_again(run, collect):
    tries = []

    def send(logs):
        tries.append(logs)
        if len(tries) < 3:
            raise BrokerUnavailable("away")

    say(run, "one", logs=collect(send))
    wait_until(lambda: len(tries) == 3)


def test_sending_goes_on_after_an_error(run, collect, caplog):
    tries = []

    def send(logs):
        tries.append(logs)
        raise TypeError("a defect")

    logs = collect(send)
    for number in (1, 2):
        say(run, "line", logs=logs)
        wait_until(lambda number=number: len(tries) >= number)

    assert "could not be sent" in caplog.text


def test_sending_goes_on_after_a_time_limit_that_hits_when_it_begins(run, collect):
    sent = []
    logs = collect(sent.append)

    class Interrupted:
        def empty(self):
            return events.empty()

        def put(self, event):
            raise TimeLimitExceeded("over")

    events, logs._events = logs._events, Interrupted()
    with pytest.raises(TimeLimitExceeded):
        say(run, "one", logs=logs)
    logs._events = events
    say(run, "two", logs=logs)
    wait_until(lambda: sent)

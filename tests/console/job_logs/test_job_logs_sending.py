"""The thread that sends what jobs log."""

import pytest

from django_rtq.console.job_logs import collect_logs
from django_rtq.core.conf.config import Config
from django_rtq.exceptions import BrokerUnavailable, TimeLimitExceeded
from tests.console.job_logs.test_job_logs import say
from tests.support.waiting import wait_until


def test_sending_is_tried_again(run):
    tries = []

    def send(logs):
        tries.append(logs)
        if len(tries) < 3:
            raise BrokerUnavailable("away")

    logs = collect_logs(Config(redis="redis://x", job_logs=True), send)
    try:
        say(run, "one", logs=logs)
        wait_until(lambda: len(tries) == 3)
    finally:
        logs.stop()


def test_sending_goes_on_after_an_error(run, caplog):
    tries = []

    def send(logs):
        tries.append(logs)
        raise TypeError("a defect")

    logs = collect_logs(Config(redis="redis://x", job_logs=True), send)
    try:
        for number in (1, 2):
            say(run, "line", logs=logs)
            wait_until(lambda number=number: len(tries) >= number)
    finally:
        logs.stop()

    assert "could not be sent" in caplog.text


def test_sending_goes_on_after_a_time_limit_that_hits_when_it_begins(run, monkeypatch):
    sent = []
    logs = collect_logs(Config(redis="redis://x", job_logs=True), sent.append)

    class Interrupted:
        def empty(self):
            return events.empty()

        def put(self, event):
            raise TimeLimitExceeded("over")

    try:
        events, logs._events = logs._events, Interrupted()
        with pytest.raises(TimeLimitExceeded):
            say(run, "one", logs=logs)
        logs._events = events
        say(run, "two", logs=logs)
        wait_until(lambda: sent)
    finally:
        logs.stop()

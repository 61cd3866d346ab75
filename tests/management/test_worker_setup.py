"""What rtq_worker and rtq_scheduler do before they start."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
import redis as redis_py
from django.core.management.base import CommandError

from django_rtq.broker.brokers import get_broker
from django_rtq.exceptions import BrokerUnavailable
from django_rtq.management.worker_setup import (
    check_server,
    queue_names,
    warn_about_unknown_queues,
    warn_about_unserved_queues,
)
from testproject.redis_server import PrivateRedis
from tests.support.forked_commands import ROOT
from tests.support.redis_server import UNREACHABLE


def test_a_queue_that_nothing_names_is_likely_a_slip(settings, caplog):
    settings.RTQ = {**settings.RTQ, "QUEUES": {"reports": {}}}

    warn_about_unknown_queues(["default", "reports", "report", "x"])

    assert caplog.messages == [
        'queue report is neither used by a task nor named in RTQ["QUEUES"]. Did you mean reports?',
        'queue x is neither used by a task nor named in RTQ["QUEUES"].',
    ]


@pytest.fixture
def declared(monkeypatch):
    """Queues that tasks declare."""
    monkeypatch.setattr(
        "django_rtq.management.worker_setup.declared_queues", lambda backend: ["calls", "default", "mail-a", "mail-b"]
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (None, ["default"]),
        ("mail-b, default,,mail-b", ["mail-b", "default"]),
        ("*", ["calls", "default", "mail-a", "mail-b"]),
        ("mail-*", ["mail-a", "mail-b"]),
        ("mail-b,*", ["mail-b", "calls", "default", "mail-a"]),
        ("mail-?,typo", ["mail-a", "mail-b", "typo"]),
    ],
)
@pytest.mark.usefixtures("declared")
def test_a_pattern_stands_for_the_declared_queues_that_match(text, names):
    assert queue_names(text) == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("male-*", "No declared queue matches 'male-*'. Tasks and settings declare calls, default, mail-a, mail-b."),
        ("mail-[a]", "No declared queue matches 'mail-[a]'."),
        (" , ", "--queues is empty"),
        ("a b", "is not a queue name"),
    ],
)
@pytest.mark.usefixtures("declared")
def test_queues_that_make_no_sense_are_wrong_usage(text, message):
    with pytest.raises(CommandError, match=re.escape(message)) as caught:
        queue_names(text)
    assert caught.value.returncode == 64


@pytest.mark.usefixtures("declared")
def test_declared_queues_that_nobody_serves_are_told(broker, redis, caplog):
    broker.sign_on(["mail-a"], "w1")
    broker.heartbeat(["mail-a"], {"w1": {"queues": "mail-a"}}, promote=False)

    warn_about_unserved_queues(broker, ["default"])

    assert caplog.messages == [
        "no worker serves queues calls,mail-b: add --queues '*' to this one, or start another one with --queues "
        "calls,mail-b"
    ]


@pytest.mark.usefixtures("declared")
def test_without_redis_nothing_is_told_of_queues(monkeypatch, broker, caplog):
    def fail(*args, **options):
        raise BrokerUnavailable("away")

    monkeypatch.setattr("django_rtq.broker.broker.Broker.without_worker", fail)
    warn_about_unserved_queues(broker, ["default"])

    assert caplog.messages == []


@pytest.fixture
def locked():
    """A server with a password."""
    with PrivateRedis() as server:
        with redis_py.Redis(port=server.port, protocol=2) as client:
            client.config_set("requirepass", "secret")
        yield server


@pytest.mark.parametrize("command", ["rtq_worker", "rtq_scheduler"])
def test_what_waiting_does_not_cure_ends_a_start_with_exit_code_1(locked, command):
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "RTQ_REDIS_URL": locked.url}
    ran = subprocess.run(
        [sys.executable, str(ROOT / "testproject" / "manage.py"), command],
        env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert ran.returncode == 1
    problem = 'Redis refused the credentials in RTQ["REDIS"]: Authentication required.'
    assert ran.stderr.splitlines()[-1] == f"CommandError: {problem} (127.0.0.1:{locked.port})"


def test_a_server_that_is_away_is_waited_for(settings):
    settings.RTQ = {"REDIS": UNREACHABLE}

    check_server(get_broker())


def test_what_endangers_jobs_is_logged(redis, broker, caplog):
    redis.config_set("maxmemory-policy", "allkeys-lru")
    try:
        check_server(broker)
    finally:
        redis.config_set("maxmemory-policy", "noeviction")

    assert [message[:48] for message in caplog.messages] == [
        "Redis deletes keys, and with them jobs, when it ",
        "Redis does not keep an append-only file: jobs ma",
    ]

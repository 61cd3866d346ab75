"""What rtq_worker and rtq_scheduler do before they start."""

import logging
import os
import subprocess
import sys

import pytest
from django.db import connections

from django_rtq.core.commands.worker_setup import (
    check_server,
    queue_names,
    show_logs,
    warn_about_small_pools,
    warn_about_unknown_queues,
    warn_about_unserved_queues,
)
from django_rtq.exceptions import BrokerUnavailable
from tests.support.apps import needs
from tests.support.forked_commands import ROOT

pytestmark = pytest.mark.long


def test_a_queue_that_nothing_names_is_likely_a_slip(settings, caplog):
    settings.RTQ = {**settings.RTQ, "QUEUES": {"reports": {}}}

    warn_about_unknown_queues(["default", "reports", "report", "x"])

    assert caplog.messages == [
        'queue report is neither used by a task nor named in RTQ["QUEUES"]. Did you mean reports?',
        'queue x is neither used by a task nor named in RTQ["QUEUES"].',
    ]


@pytest.mark.parametrize(
    ("pool", "size"),
    [
        (True, 4),
        ({}, None),  # Django makes none
        ({"min_size": 2}, 2),
        ({"max_size": 6}, 6),
        ({"min_size": 2, "max_size": 5}, 5),
        (False, None),
    ],
)
def test_a_pool_has_a_connection_for_each_slot(monkeypatch, caplog, pool, size):
    monkeypatch.setitem(connections.settings["default"], "OPTIONS", {"pool": pool})
    if size:
        warn_about_small_pools(size)
    assert caplog.messages == []
    warn_about_small_pools(8)
    assert [message.partition(" for")[0] for message in caplog.messages] == (
        [f"the pool of the database default has {size} connections"] if size else []
    )


@pytest.fixture
def our_logger():
    """The logger, whose handlers and level are as before in the end."""
    logger = logging.getLogger("django_rtq")
    handlers, propagate = list(logger.handlers), logger.propagate
    yield logger
    logger.handlers[:], logger.propagate = handlers, propagate
    logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize(("verbosity", "level"), [(0, logging.NOTSET), (1, logging.INFO), (2, logging.DEBUG)])
def test_a_worker_shows_its_log_if_the_project_has_no_handler(our_logger, capsys, verbosity, level):
    our_logger.propagate = False
    show_logs(verbosity)
    assert (len(our_logger.handlers), our_logger.level) == (int(verbosity > 0), level)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("verbosity", "level"), [(0, "NOTSET"), (1, "NOTSET"), (2, "DEBUG")])
def test_the_handlers_of_a_project_write_each_line_once(our_logger, capsys, verbosity, level):
    show_logs(verbosity)
    assert our_logger.handlers == []
    assert logging.getLevelName(our_logger.level) == level
    said = 'starting: LOGGING has the logger "django_rtq" at WARNING; -v 2 shows more than that.\n'
    assert capsys.readouterr().err == (said if verbosity == 1 else "")


@pytest.fixture
def declared(monkeypatch):
    """Queues that tasks declare."""
    monkeypatch.setattr(
        "django_rtq.core.commands.worker_setup.declared_queues",
        lambda backend: ["calls", "default", "mail-a", "mail-b"],
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

    monkeypatch.setattr("django_rtq.core.broker.worker_broker.WorkerBroker.without_worker", fail)
    warn_about_unserved_queues(broker, ["default"])

    assert caplog.messages == []


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


@needs("console")
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

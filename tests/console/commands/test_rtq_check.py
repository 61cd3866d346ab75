"""rtq --check: what it prints, and its exit codes."""

import json
import socket
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from django_rtq.core.broker.brokers import get_broker
from tests.console.incidents.conftest import declared  # noqa: F401
from tests.support.jobs import QUEUE
from tests.support.redis_server import UNREACHABLE
from tests.support.waiting import wait_until

RTQ_OPTIONS = {"INCIDENTS": {"ignore": ["redis_volatile", "queues_without_worker"]}}
pytestmark = pytest.mark.usefixtures("broker")


def check(*arguments):
    """Exit code and what it printed."""
    out = StringIO()
    try:
        call_command("rtq", "--check", *arguments, stdout=out)
    except SystemExit as stop:
        return stop.code, out.getvalue()
    return 0, out.getvalue()


def test_nothing_is_wrong():
    assert check() == (0, "ok\n")


def test_warnings_are_1_and_say_since_when(broker, rtq):
    """JSON has all that is known."""
    broker.sign_on([QUEUE], "w1")
    broker.redis.execute_one(("SADD", broker.keys.queues, QUEUE))
    rtq.queues[QUEUE].pause()

    code, out = check()

    assert (code, out.count("\n")) == (1, 1)
    assert "warning queue_paused: Queue default is paused. [since " in out
    code, out = check("--json")

    found = json.loads(out)
    assert (code, found["status"]) == (1, "warning")
    (paused,) = [each for each in found["incidents"] if each["kind"] == "queue_paused"]
    assert (paused["severity"], paused["queue"], paused["text"]) == ("warning", QUEUE, "Queue default is paused.")
    assert paused["since"].startswith("20")
    assert json.loads(check("--json", "--this-host")[1])["incidents"][0]["host"] == socket.gethostname()


@pytest.mark.parametrize("arguments", [(), ("--this-host",)])
def test_a_redis_that_is_down_is_2(arguments):
    with override_settings(RTQ={"REDIS": UNREACHABLE}):
        code, out = check(*arguments)
        json_code, json_out = check(*arguments, "--json")
        get_broker().close()

    assert (code, json_code) == (2, 2)
    assert out.startswith("critical redis_unreachable: ")
    assert json.loads(json_out)["incidents"][0]["kind"] == "redis_unreachable"


def test_of_a_host_nothing_is_told_that_the_project_accepts(broker):
    with override_settings(RTQ={"REDIS": broker.config.redis, "INCIDENTS": {"ignore": ["host_without_worker"]}}):
        assert check("--this-host") == (0, "ok\n")


@pytest.mark.parametrize("settings", [{"LEASE_SECONDS": -5}, {"SHARDS": {"one": "x"}}])
def test_wrong_settings_are_2(settings):
    with override_settings(RTQ=settings), pytest.raises(CommandError) as raised:
        check()

    assert raised.value.returncode == 2


@pytest.mark.usefixtures("databases_of_the_session")
def test_of_this_host_it_sees_real_workers_come_and_go(rtq_worker, redis_server):
    def code():
        return check("--this-host")[0]

    assert code() == 2
    worker = rtq_worker()
    wait_until(lambda: code() == 0)
    worker.stop()
    assert check("--this-host") == (
        2,
        f"critical host_without_worker: Host {socket.gethostname()}: no worker is alive.\n",
    )

"""The ways to get the metrics: a view, and the command rtq_metrics."""

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from django.test import Client, override_settings
from django.urls import path

from django_rtq.core.broker.brokers import get_broker
from django_rtq.monitoring.prometheus import metrics_view
from tests.markdown import ROOT
from tests.monitoring.prometheus.samples import Samples
from tests.support.commands import run
from tests.support.jobs import QUEUE, queued_job
from tests.support.redis_server import UNREACHABLE
from tests.support.waiting import PATIENCE

urlpatterns = [path("metrics/rtq/", metrics_view)]


@pytest.fixture
def client():
    with override_settings(ROOT_URLCONF=__name__):
        yield Client()


@pytest.fixture
def server(redis_server):
    """A function that starts `rtq_metrics --port 0`. It gives back the process and its address."""
    started = []

    def start(url=redis_server.url, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "django", "rtq_metrics", "--port", "0", *arguments],
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "DJANGO_SETTINGS_MODULE": "tests.settings",
                "RTQ_REDIS_URL": url,
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        line = process.stderr.readline()
        assert "serving metrics on " in line, line + process.stderr.read()
        return process, line.split()[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stderr.close()


def test_the_view_serves_text(broker, client):
    queued_job(broker)
    response = client.get("/metrics/rtq/")

    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/plain; version=")
    assert Samples(response.content.decode()).value("rtq_jobs", queue=QUEUE, state="queued") == 1


OPENMETRICS = "application/openmetrics-text;version=1.0.0"


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (OPENMETRICS, "application/openmetrics-text"),
        (f"{OPENMETRICS};q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2", "text/plain; version=0.0.4"),  # Prometheus
    ],
)
def test_the_view_serves_openmetrics_if_nothing_else_is_accepted(broker, client, accept, kind):
    queued_job(broker)
    response = client.get("/metrics/rtq/", headers={"Accept": accept})

    assert response["Content-Type"].startswith(kind)
    assert response.content.endswith(b"# EOF\n") is (accept == OPENMETRICS)


@pytest.mark.parametrize(("method", "status"), [("head", 200), ("post", 405)])
def test_the_view_only_reads(redis, broker, client, method, status):
    assert getattr(client, method)("/metrics/rtq/").status_code == status


def test_the_view_says_503_while_redis_does_not_answer(client):
    with override_settings(RTQ={"REDIS": UNREACHABLE}):
        response = client.get("/metrics/rtq/")
        get_broker().close()

    assert response.status_code == 503
    assert b"Redis" in response.content


def test_the_command_prints_them_once(broker):
    queued_job(broker)
    assert Samples(run("rtq_metrics").out).value("rtq_jobs", queue=QUEUE, state="queued") == 1


def test_the_command_says_what_to_install(redis, broker, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("django_rtq.monitoring.prometheus")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(sys.modules["django_rtq.monitoring"], "prometheus", raising=False)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    ran = run("rtq_metrics")

    assert ran.code == 1
    assert 'pip install "django-rtq[prometheus]"' in ran.error


@pytest.mark.parametrize("port", ["-1", "70000", "x"])
def test_a_port_has_to_be_one(port):
    ran = run("rtq_metrics", f"--port={port}")
    assert "is not a whole number from 0 to 65,535" in ran.error


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_server_answers_until_it_is_stopped(broker, server, number):
    queued_job(broker)
    process, address = server()

    for _ in range(2):
        with urllib.request.urlopen(address + "metrics", timeout=PATIENCE) as response:
            text = response.read().decode()
        assert Samples(text).value("rtq_jobs", queue=QUEUE, state="queued") == 1
    process.send_signal(number)
    assert process.wait(PATIENCE) == 0


def test_a_port_in_use_is_an_error(server, redis_server):
    ran = run("rtq_metrics", f"--port={redis_server.port}")
    assert ran.code == 1
    assert "cannot listen on 127.0.0.1" in ran.error

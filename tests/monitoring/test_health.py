"""The view for health checks."""

import time

import pytest
from django.test import Client, RequestFactory, override_settings
from django.urls import path

from django_rtq.core.broker.brokers import get_broker
from django_rtq.monitoring import health
from django_rtq.monitoring.health import health_view
from tests.console.incidents.conftest import declared  # noqa: F401
from tests.support.jobs import dead_job, queued_job
from tests.support.redis_server import UNREACHABLE
from tests.support.waiting import PATIENCE, start_thread

RTQ_OPTIONS = {"INCIDENTS": {"ignore": ["redis_volatile", "queues_without_worker"]}}
urlpatterns = [path("health/rtq/", health_view)]


@pytest.fixture
def client(broker):
    with override_settings(ROOT_URLCONF=__name__):
        yield Client()


@pytest.fixture
def later(monkeypatch):
    """Lets time pass for the cache."""

    def passes(seconds):
        monkeypatch.setitem(health._kept, "until", health._kept["until"] - seconds)

    return passes


def test_nothing_is_wrong(redis, client):
    response = client.get("/health/rtq/")

    assert (response.status_code, response.json()) == (200, {"status": "ok", "incidents": []})
    assert response["Cache-Control"] == "no-store"


def test_what_is_critical_is_503_and_nothing_is_said_of_jobs(broker, client):
    dead_job(broker, client="acme")
    queued_job(broker)

    response = client.get("/health/rtq/")

    assert (response.status_code, response.json()["status"]) == (503, "critical")
    assert {"kind": "no_worker", "severity": "critical", "count": 1} in response.json()["incidents"]
    assert all(each.keys() == {"kind", "severity", "count"} for each in response.json()["incidents"])


def test_a_redis_that_does_not_answer_is_503():
    with override_settings(ROOT_URLCONF=__name__, RTQ={"REDIS": UNREACHABLE}):
        response = Client().get("/health/rtq/")
        get_broker().close()

    assert response.status_code == 503
    assert response.json()["incidents"] == [{"kind": "redis_unreachable", "severity": "critical", "count": 1}]


@pytest.mark.parametrize(("method", "status"), [("head", 200), ("post", 405)])
def test_it_only_reads(redis, client, method, status):
    assert getattr(client, method)("/health/rtq/").status_code == status


def test_an_answer_is_kept_for_a_second(broker, client, later, round_trips):
    queued_job(broker)
    client.get("/health/rtq/")
    asked = len(round_trips)
    later(-60)
    client.get("/health/rtq/")
    assert len(round_trips) == asked

    later(60 + health.CACHED_SECONDS)
    client.get("/health/rtq/")
    assert len(round_trips) == asked + 3


def test_of_many_requests_at_once_one_asks_redis(broker, client, later, round_trips):
    queued_job(broker)
    client.get("/health/rtq/")
    later(health.CACHED_SECONDS)
    asked, answers = len(round_trips), []
    request = RequestFactory().get("/health/rtq/")
    with health._lock:
        threads = [start_thread(lambda: answers.append(health_view(request).status_code)) for _ in range(5)]
    for thread in threads:
        thread.join(PATIENCE)

    assert answers == [503] * 5
    # A machine that needs a second for this lets the answer grow old meanwhile.
    assert len(round_trips) == asked + 3 or time.monotonic() > health._kept["until"]

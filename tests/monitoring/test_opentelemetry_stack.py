"""One trace of a request, its job and their commands to Redis, with the instrumentations of Django and redis-py."""

import pytest

pytest.importorskip("opentelemetry.sdk")
pytest.importorskip("opentelemetry.instrumentation.django")
pytest.importorskip("opentelemetry.instrumentation.redis")

import redis as redis_py
from django.conf import settings
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import path
from opentelemetry import trace
from opentelemetry.instrumentation.django import DjangoInstrumentor
from opentelemetry.instrumentation.redis import RedisInstrumentor
from opentelemetry.trace import SpanKind

from django_rtq import signals, task
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.redis.commands import command_hooks
from django_rtq.monitoring.opentelemetry import instrument_redis
from django_rtq.testing import drain

MIDDLEWARE = ["django_rtq.monitoring.opentelemetry.OpenTelemetryMiddleware"]


@task
def count_order(url):
    with redis_py.Redis.from_url(url) as client:
        client.exists("orders")
    send_mail.delay()


@task
def send_mail(): ...


def order(request):
    with redis_py.Redis.from_url(settings.RTQ["REDIS"]) as client:
        client.exists("basket")
    count_order.delay(settings.RTQ["REDIS"])
    return HttpResponse("ordered")


urlpatterns = [path("order/", order)]


@pytest.fixture
def instrumented(exporter, rtq_settings, monkeypatch):
    """The instrumentations are on. Gives a function that returns the finished spans."""
    monkeypatch.setattr(signals.worker_process_shutdown, "receivers", [])
    own = {"RTQ": {**settings.RTQ, "MIDDLEWARE": MIDDLEWARE}, "ROOT_URLCONF": __name__, "MIDDLEWARE": []}
    with override_settings(**own):
        DjangoInstrumentor().instrument()
        RedisInstrumentor().instrument()
        instrument_redis()
        exporter.clear()
        yield exporter.get_finished_spans
        get_broker().close()
        command_hooks.clear()
        RedisInstrumentor().uninstrument()
        DjangoInstrumentor().uninstrument()


def one(spans, name, **attributes):
    """The span of that name, with these attributes."""
    (found,) = (
        span for span in spans
        if span.name == name and all(span.attributes.get(key) == value for key, value in attributes.items())
    )  # fmt: skip
    return found


def parents(spans, span):
    """The names of the spans above this one, the nearest first."""
    by_id = {each.context.span_id: each for each in spans}
    names = []
    while span.parent is not None:
        span = by_id[span.parent.span_id]
        names.append(span.name)
    return names


def test_a_request_its_job_and_their_commands_are_one_trace(instrumented):
    assert Client().get("/order/").content == b"ordered"
    drain()

    spans = instrumented()
    server = one(spans, "GET order/")
    assert (server.kind, server.parent) == (SpanKind.SERVER, None)
    of_trace = [span for span in spans if span.context.trace_id == server.context.trace_id]
    tree = {(span.name, *parents(of_trace, span)) for span in of_trace}
    request = ("enqueue default", "GET order/")
    run = ("process default", *request)
    nested = ("enqueue default", *run)
    assert tree >= {
        ("EXISTS", "GET order/"),  # of redis-py
        request,
        ("EVALSHA enqueue", *request),
        run,
        ("EXISTS", *run),
        nested,
        ("EVALSHA enqueue", *nested),
        ("process default", *nested),
    }
    for name in ("EVALSHA enqueue", "EXISTS"):
        assert {span.kind for span in of_trace if span.name == name} == {SpanKind.CLIENT}


def test_the_attributes_of_our_commands(instrumented):
    with trace.get_tracer("test").start_as_current_span("request"):
        get_broker().redis.execute_one(("PING",))
        get_broker().redis.execute([("PING",), ("TIME",), ("PING",)])
        send_mail.delay()
    spans = instrumented()
    assert one(spans, "PING").attributes == {"db.system.name": "redis", "db.operation.name": "PING"}
    assert one(spans, "PIPELINE", **{"db.query.text": "PING; TIME; PING"}).attributes == {
        "db.system.name": "redis", "db.operation.name": "PIPELINE", "db.operation.batch.size": 3,
        "db.query.text": "PING; TIME; PING",
    }  # fmt: skip
    assert one(spans, "EVALSHA enqueue").attributes == {
        "db.system.name": "redis", "db.operation.name": "EVALSHA", "db.stored_procedure.name": "enqueue",
    }  # fmt: skip


def test_commands_outside_of_a_span_are_no_traces(instrumented):
    get_broker().redis.execute_one(("PING",))
    assert [span for span in instrumented() if span.name == "PING"] == []

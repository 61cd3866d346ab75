"""Spans around delay() and around runs."""

import asyncio

import pytest

pytest.importorskip("opentelemetry.sdk")

from django.conf import settings
from django.test import override_settings
from opentelemetry import baggage, context, trace
from opentelemetry.trace import SpanKind, StatusCode

from django_rtq import Retry, constant, signals, task, workflow
from django_rtq.testing import captured, eager
from tests.app import tasks
from tests.support.line_files import json_lines
from tests.support.waiting import wait_until

MIDDLEWARE = ["django_rtq.monitoring.opentelemetry.OpenTelemetryMiddleware"]


@task(queue_name="mail", client=lambda order: "acme", max_attempts=2, backoff=constant(0))
def mail(order):
    if order == "bad":
        raise ValueError("no such order")
    if order == "later":
        raise Retry(after=0)
    return [str(trace.get_current_span().get_span_context().trace_id), baggage.get_baggage("tenant")]


@task(queue_name="mail", client=lambda order: "acme", max_attempts=2, backoff=constant(0))
async def amail(order):
    await asyncio.sleep(0)
    return mail.func(order)


both = pytest.mark.parametrize("each", [mail, amail], ids=["function", "coroutine"])


@pytest.fixture
def spans(exporter, rtq_settings, monkeypatch):
    """A function that gives back the finished spans, by kind."""
    monkeypatch.setattr(signals.worker_process_shutdown, "receivers", [])
    exporter.clear()
    with override_settings(RTQ={**settings.RTQ, "MIDDLEWARE": MIDDLEWARE}):
        yield lambda kind: [span for span in exporter.get_finished_spans() if span.kind is kind]


@both
def test_a_run_is_a_child_of_the_call(spans, each):
    with eager(), trace.get_tracer("test").start_as_current_span("request") as request:
        job = each.delay("good")

    ((sent,), (run,)) = spans(SpanKind.PRODUCER), spans(SpanKind.CONSUMER)
    assert (sent.name, run.name) == ("enqueue mail", "process mail")
    assert sent.parent.span_id == request.get_span_context().span_id
    assert run.parent.span_id == sent.context.span_id
    assert job.get()[0] == str(request.get_span_context().trace_id)
    shared = {"messaging.system": "rtq", "messaging.destination.name": "mail", "rtq.task": each.name}
    shared |= {"messaging.message.id": job.id}
    assert sent.attributes == {
        **shared, "messaging.operation.name": "enqueue", "messaging.operation.type": "send",
    }  # fmt: skip
    assert run.attributes == {
        **shared, "messaging.operation.name": "process", "messaging.operation.type": "process",
        "rtq.client": "acme", "rtq.attempt": 1,
    }  # fmt: skip
    assert run.status.status_code is StatusCode.UNSET


def _order(flow):
    two = flow.map(mail, ["good", "fine"])
    flow.after(two).add(amail, "last")


def test_a_workflow_is_one_trace_of_its_maker(spans):
    with (
        eager(),
        trace.get_tracer("test").start_as_current_span("request") as request,
        workflow("order") as flow,
    ):
        _order(flow)

    sent, runs = spans(SpanKind.PRODUCER), spans(SpanKind.CONSUMER)
    assert [len(sent), len(runs)] == [2, 3]
    assert {span.context.trace_id for span in (*sent, *runs)} == {request.get_span_context().trace_id}
    assert {span.attributes["rtq.workflow"] for span in (*sent, *runs)} == {flow.id}
    assert [run.parent.span_id for run in runs] == [sent[0].context.span_id] * 2 + [sent[1].context.span_id]
    assert sent[0].attributes["messaging.batch.message_count"] == 2


def test_a_workflow_that_no_trace_makes_has_one(spans):
    for _ in range(2):
        with eager(), workflow("order") as flow:
            _order(flow)

    by_flow = {}
    for span in (*spans(SpanKind.PRODUCER), *spans(SpanKind.CONSUMER)):
        by_flow.setdefault(span.attributes["rtq.workflow"], set()).add(span.context.trace_id)
    assert [len(traces) for traces in by_flow.values()] == [1, 1]
    assert len(set.union(*by_flow.values())) == 2


def test_baggage_goes_along(spans):
    token = context.attach(baggage.set_baggage("tenant", "north"))
    try:
        with eager():
            assert mail.delay("good").get()[1] == "north"
    finally:
        context.detach(token)


@both
def test_retries_are_spans_of_the_same_trace(spans, each):
    with eager(retries=True, propagate=False):
        each.delay("bad")

    ((sent,), (first, second)) = spans(SpanKind.PRODUCER), spans(SpanKind.CONSUMER)
    for attempt, run in enumerate((first, second), 1):
        assert run.attributes["rtq.attempt"] == attempt
        assert run.parent.span_id == sent.context.span_id
        assert (run.status.status_code, run.status.description) == (StatusCode.ERROR, "ValueError: no such order")
        assert run.attributes["error.type"] == "ValueError"
        (event,) = run.events
        assert (event.name, event.attributes["exception.message"]) == ("exception", "no such order")


def test_asking_for_a_retry_is_no_error(spans):
    with eager(retries=True, propagate=False):
        mail.delay("later")
    assert {run.status.status_code for run in spans(SpanKind.CONSUMER)} == {StatusCode.UNSET}


def test_many_jobs_are_one_span(spans):
    with captured() as jobs:
        mail.delay_many([(("a",), {}), (("b",), {})])
    (sent,) = spans(SpanKind.PRODUCER)
    assert sent.attributes["messaging.batch.message_count"] == 2
    assert "messaging.message.id" not in sent.attributes
    assert {job.headers["traceparent"].split("-")[2] for job in jobs} == {f"{sent.context.span_id:016x}"}


def test_coroutines_that_enqueue_keep_their_own_traces(spans):
    async def call(name):
        with trace.get_tracer("test").start_as_current_span(name):
            await asyncio.sleep(0)
            await amail.adelay(name)

    async def calls():
        await asyncio.gather(call("a"), call("b"))

    asyncio.run(calls())
    sent = spans(SpanKind.PRODUCER)
    assert len({span.context.trace_id for span in sent}) == 2
    assert all(span.parent is not None for span in sent)


@pytest.mark.parametrize("slots", [1, 4])
def test_workers_send_all_spans_before_they_exit(rtq_worker, redis, tmp_path, slots):
    path = tmp_path / "spans"
    for number in range(4):
        tasks.note.delay(f"x{number}")
    rtq_worker(
        "--concurrency", slots, "--burst", is_ready=False,
        environment={"DJANGO_SETTINGS_MODULE": "tests.app.otel_settings", "RTQ_TEST_SPANS": str(path)},
    )  # fmt: skip

    wait_until(lambda: len(json_lines(path)) == 4)
    sent = json_lines(path)
    assert {span["attributes"]["rtq.task"] for span in sent} == {tasks.note.name}
    assert len({span["context"]["trace_id"] for span in sent}) == 4

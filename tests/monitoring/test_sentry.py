"""Events, transactions and spans that Sentry gets."""

import asyncio
import logging

import pytest

sentry_sdk = pytest.importorskip("sentry_sdk")

from django_rtq import Bury, JobCancelled, Retry, constant, signals, task, workflow  # noqa: E402
from django_rtq.core import logs  # noqa: E402
from django_rtq.core.conf import config as conf  # noqa: E402
from django_rtq.core.jobs.job import Job  # noqa: E402
from django_rtq.testing import eager  # noqa: E402
from tests.app import tasks  # noqa: E402
from tests.monitoring.fake_sentry import events, transactions  # noqa: E402
from tests.support.line_files import json_lines  # noqa: E402
from tests.support.waiting import wait_until  # noqa: E402

logger = logging.getLogger("shop")
pytestmark = pytest.mark.usefixtures("without_sentry")


@task(queue_name="mail", client=lambda order: "acme", max_attempts=2, backoff=constant(0))
def mail(order):
    logger.warning("mailing %s", order)
    if order == "bad":
        raise ValueError("no such order")
    if order == "later":
        raise Retry(after=0)
    if order == "never":
        raise Bury("gone")
    return object() if order == "unserializable" else None


@task(queue_name="mail", client=lambda order: "acme", max_attempts=2, backoff=constant(0))
async def amail(order):
    await asyncio.sleep(0)
    mail.func(order)


@pytest.mark.parametrize("each", [mail, amail], ids=["function", "coroutine"])
def test_each_failed_run_is_one_event_with_tags(sentry, each):
    logs.connect()
    try:
        with eager(retries=True, propagate=False):
            job = each.delay("bad")
    finally:
        for name in ("job_retried", "job_buried", "job_expired", "job_reclaimed", "job_stale"):
            getattr(signals, name).disconnect(dispatch_uid="rtq-log")

    first, second = events(sentry)
    for attempt, event in enumerate((first, second), 1):
        assert event["tags"] == {"task": each.name, "queue": "mail", "client": "acme", "attempt": str(attempt)}
        (error,) = event["exception"]["values"]
        assert (error["type"], error["value"]) == ("ValueError", "no such order")
        assert error["mechanism"] == {"type": "rtq", "handled": False}
        assert event["contexts"]["rtq job"]["job_id"] == job.id
        assert event["transaction"] == each.name
        breadcrumbs = [crumb["message"] for crumb in event["breadcrumbs"]["values"]]
        assert breadcrumbs == ["mailing bad"]  # of this run alone


@pytest.mark.parametrize("each", [mail, amail], ids=["function", "coroutine"])
def test_each_run_is_a_transaction_that_continues_the_trace(sentry, each):
    with eager(), sentry_sdk.start_transaction(name="a request") as request:
        job = each.delay("good")

    run, caller = transactions(sentry)
    (publish,) = [span for span in caller["spans"] if span["op"] == "queue.publish"]
    trace = run["contexts"]["trace"]
    assert (run["transaction"], trace["op"], trace["origin"]) == (each.name, "queue.process", "auto.queue.rtq")
    assert (trace["trace_id"], trace["parent_span_id"]) == (request.trace_id, publish["span_id"])
    assert publish["description"] == each.name
    for data in (publish["data"], trace["data"]):
        assert data["messaging.system"] == "redis"
        assert data["messaging.destination.name"] == "mail"
        assert data["messaging.message.id"] == job.id
    assert trace["data"]["messaging.message.retry.count"] == 0
    assert trace["data"]["messaging.message.receive.latency"] >= 0


def test_a_workflow_is_one_trace(sentry):
    with (
        eager(propagate=False),
        sentry_sdk.start_transaction(name="a request") as request,
        workflow("order", on_dead="go_on") as flow,
    ):
        first = flow.map(mail, ["good", "never"])
        flow.after(first, ended=True).add(amail, "good")

    runs = [each for each in transactions(sentry) if each["transaction"] != "a request"]
    assert len(runs) == 3
    assert {run["contexts"]["trace"]["trace_id"] for run in runs} == {request.trace_id}
    (event,) = events(sentry)
    assert event["tags"]["workflow"] == flow.id


def test_attempts_and_workflows_that_no_request_began_are_one_trace_too(sentry):
    with eager(retries=True, propagate=False):
        mail.delay("bad")
        with workflow("order") as flow:
            flow.map(mail, ["good", "good"])

    traces = [run["contexts"]["trace"]["trace_id"] for run in transactions(sentry)]
    assert (len(traces), len(set(traces[:2])), len(set(traces[2:]))) == (4, 1, 1)


def test_many_jobs_are_one_span(sentry):
    with eager(), sentry_sdk.start_transaction(name="a request"):
        mail.delay_many([(("a",), {}), (("b",), {})])
    *runs, caller = transactions(sentry)
    assert len(runs) == 2
    assert [span["op"] for span in caller["spans"]].count("queue.publish") == 1


def test_a_result_that_cannot_be_stored_is_an_event_too(sentry):
    with eager(propagate=False):
        mail.delay("unserializable")
    (event,) = events(sentry)
    assert event["tags"]["task"] == mail.name


def test_asking_for_a_retry_is_no_event(sentry):
    with eager(propagate=False, retries=True):
        mail.delay("later")
    assert events(sentry) == []


def test_a_failure_without_a_record_is_an_event(sentry):
    signals.job_buried.send_robust(None, job=None, job_id="j1", error=ValueError("unreadable"))
    (event,) = events(sentry)
    assert event["contexts"]["rtq job"]["job_id"] == "j1"


def test_a_cancelled_job_is_no_event(sentry):
    signals.job_buried.send_robust(None, job=Job(id="j", task="t", queue="q"), job_id="j", error=JobCancelled())
    assert events(sentry) == []


def test_other_errors_in_our_log_are_events(sentry):
    logging.getLogger("django_rtq").error("process 1 killed: job j ignores its time limit", extra={"job_id": "j"})
    assert sentry[0]["logentry"]["message"].startswith("process 1 killed")


def test_without_the_integration_nothing_is_added():
    assert conf.get_config().middleware == ()


@pytest.mark.parametrize("slots", [1, 4])
def test_workers_report_all_before_they_exit(rtq_worker, redis, tmp_path, slots):
    path = tmp_path / "sent"
    for number in range(4):
        tasks.attempts.using(max_attempts=1, client=f"c{number}").delay(f"x{number}", 5)
    rtq_worker(
        "--concurrency", slots, "--burst", is_ready=False,
        environment={"DJANGO_SETTINGS_MODULE": "tests.app.sentry_settings", "RTQ_TEST_SENTRY": str(path)},
    )  # fmt: skip

    wait_until(lambda: len(events(json_lines(path))) == len(transactions(json_lines(path))) == 4)
    sent = json_lines(path)
    assert sorted(event["tags"]["client"] for event in events(sent)) == ["c0", "c1", "c2", "c3"]
    assert len(transactions(sent)) == 4
    assert len({run["contexts"]["trace"]["trace_id"] for run in transactions(sent)}) == 4

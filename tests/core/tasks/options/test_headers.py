"""Headers: small values beside the arguments of a job, which stay with it."""

import json

import pytest

from django_rtq import current_job, task
from django_rtq.core.jobs.record import read_record
from django_rtq.exceptions import InvalidTask
from tests.support.apps import captured, drain, redacted
from tests.support.jobs import take, take_all


@task
def plain(a=0):
    return a


@task(takes_context=True)
def headers_of(context):
    assert current_job().headers == context.headers
    return context.headers


@task(takes_context=True, max_attempts=2, backoff=0)
def fail_once(context):
    if context.attempt == 1:
        raise ValueError("the first attempt fails")
    return context.headers


def test_headers_are_stored_beside_the_arguments(broker):
    plain.using(headers={"tenant": "acme", "trace": [1, None]}).delay(5)

    job = take(broker)
    assert (job.args, job.headers, job.options) == ([5], {"tenant": "acme", "trace": [1, None]}, {})


def test_a_job_without_headers_stores_nothing(broker):
    plain.using(headers={}).delay()
    plain.using(headers={"a": 1}).using(headers=None).delay()
    plain.delay()

    for record in broker.redis.execute_one(("HVALS", broker.keys.of("default").jobs)):
        assert b'"headers":' not in record


def test_headers_are_added_to_those_of_the_copy(broker):
    copy = plain.using(headers={"a": 1, "b": 2})
    copy.delay()
    copy.using(headers={"b": 3, "c": 4}).delay()

    assert [job.headers for job in take_all(broker)] == [{"a": 1, "b": 2}, {"a": 1, "b": 3, "c": 4}]


def test_headers_are_kept_although_the_dictionary_changes():
    given = {"a": 1}
    copy = plain.using(headers=given)
    given["a"] = 2
    assert copy.headers == {"a": 1}


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ([], "has to be a dictionary"),
        ({1: 2}, "has the name 1"),
        ({"": 2}, "has the name ''"),
        ({"a\n": 2}, "printable characters"),
        ({"x" * 101: 2}, "1 to 100 printable characters"),
        ({"a": object()}, 'headers["a"] is an object'),
        ({"a": "é" * 2500}, "has 5,008 bytes as JSON, and 4,096 are the most"),
    ],
)
def test_headers_that_are_refused(headers, said):
    with pytest.raises(InvalidTask) as error:
        plain.using(headers=headers)
    assert said in str(error.value)
    assert str(error.value).startswith(plain.name)


def test_a_task_has_its_headers_in_its_context(broker):
    headers_of.using(headers={"tenant": "acme"}).delay()
    headers_of.delay()

    assert [run.result for run in drain()] == [{"tenant": "acme"}, {}]


def test_captured_jobs_have_their_headers():
    with captured() as jobs:
        plain.using(headers={"tenant": "acme"}).delay()
    jobs.assert_enqueued(plain, headers={"tenant": "acme"})
    jobs.assert_not_enqueued(plain, headers={})
    assert "headers {'tenant': 'acme'}" in str(jobs[0])
    with pytest.raises(TypeError, match="'colour' cannot be compared"):
        jobs.assert_enqueued(plain, colour="red")


def test_secrets_in_headers_are_hidden(broker):
    job = fail_once.using(max_attempts=1, headers={"api_token": "5ecr3t-5ecr3t", "tenant": "acme"}).delay()
    drain(raise_errors=False)

    shown = redacted(job.refresh())
    from django_rtq.console.redaction import HIDDEN

    assert shown.headers == {"api_token": HIDDEN, "tenant": "acme"}


def test_headers_that_are_no_object_make_the_job_fail(broker):
    job = plain.using(headers={"a": 1}).delay()
    key = broker.keys.of("default").jobs
    record = broker.redis.execute_one(("HGET", key, job.id))
    broker.redis.execute_one(
        ("HSET", key, job.id, record.replace(json.dumps({"a": 1}).replace(" ", "").encode(), b"3"))
    )

    drain(raise_errors=False)
    assert "headers of the record are not an object" in job.refresh().newest_error[1]
    assert read_record("a", "q", b"0 3 1 0 \n" + b'{"task":"x"}').headers == {}

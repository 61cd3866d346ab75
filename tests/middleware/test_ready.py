"""The middleware that is ready to use."""

import asyncio
import logging

import pytest
from django.conf import settings
from django.http import HttpResponse
from django.test import AsyncRequestFactory, RequestFactory, override_settings
from django.utils import timezone, translation

from django_rtq import task
from django_rtq.broker.brokers import get_broker
from django_rtq.middleware import RequestIDFilter, http_request_id, request_id
from django_rtq.testing import drain
from tests.support.claims import take, take_all


@pytest.fixture(autouse=True)
def ready(rtq_settings):
    paths = [f"django_rtq.middleware.{name}" for name in ("LanguageMiddleware", "RequestIDMiddleware")]
    with override_settings(RTQ={**settings.RTQ, "MIDDLEWARE": paths}):
        yield
        get_broker().close()


@task
def look():
    return [translation.get_language(), timezone.get_current_timezone_name(), request_id.get()]


@task
async def alook():
    return look.func()


@pytest.mark.parametrize("each", [look, alook])
def test_a_job_has_language_time_zone_and_request_of_its_caller(each):
    with translation.override("de"), timezone.override("Asia/Tokyo"):
        token = request_id.set("abc")
        first = each.delay()
        request_id.reset(token)
    second = each.using(headers={"language": "pt-br", "timezone": "Nowhere/None"}).delay()

    results = {run.id: run.result for run in drain()}
    assert results == {first.id: ["de", "Asia/Tokyo", "abc"], second.id: ["pt-br", "UTC", second.id]}
    assert translation.get_language() == settings.LANGUAGE_CODE
    assert request_id.get() == ""


def test_without_a_language_or_request_there_is_no_header(broker):
    with translation.override(None):
        look.delay()
    assert take(broker).headers == {"timezone": timezone.get_current_timezone_name()}


@pytest.mark.parametrize(
    ("given", "kept"),
    [("abc-1", True), ("", False), ("a b", False), ("x" * 101, False), ("a\nb", False)],
)
def test_a_request_has_the_id_that_it_brings_or_a_new_one(given, kept):
    seen = []

    def view(request):
        seen.append(request_id.get())
        return HttpResponse()

    response = http_request_id(view)(RequestFactory().get("/", headers={"X-Request-ID": given}))
    assert response.headers["X-Request-ID"] == seen[0]
    assert (seen[0] == given) is kept
    assert len(seen[0]) in (5, 32)
    assert request_id.get() == ""


def test_async_requests_have_it_too(broker):
    async def view(request):
        await look.adelay()
        return HttpResponse()

    async def ask():
        return await http_request_id(view)(AsyncRequestFactory().get("/", headers={"X-Request-ID": "abc-2"}))

    assert asyncio.run(ask()).headers["X-Request-ID"] == "abc-2"
    assert [job.headers["request_id"] for job in take_all(broker)] == ["abc-2"]


def test_log_records_have_the_id():
    record = logging.makeLogRecord({})
    assert RequestIDFilter().filter(record)
    assert record.request_id == "-"
    token = request_id.set("abc")
    RequestIDFilter().filter(record)
    request_id.reset(token)
    assert record.request_id == "abc"

"""The middleware for languages."""

import pytest
from django.conf import settings
from django.test import override_settings
from django.utils import timezone, translation

from django_rtq import task
from django_rtq.core.broker.brokers import get_broker
from tests.support.apps import drain
from tests.support.claims import take


@pytest.fixture(autouse=True)
def ready(rtq_settings):
    paths = ["django_rtq.middleware.LanguageMiddleware"]
    with override_settings(RTQ={**settings.RTQ, "MIDDLEWARE": paths}):
        yield
        get_broker().close()


@task
def look():
    return [translation.get_language(), timezone.get_current_timezone_name()]


@task
async def alook():
    return look.func()


@pytest.mark.parametrize("each", [look, alook])
def test_a_job_has_language_and_time_zone_of_its_caller(each):
    with translation.override("de"), timezone.override("Asia/Tokyo"):
        first = each.delay()
    second = each.using(headers={"language": "pt-br", "timezone": "Nowhere/None"}).delay()

    results = {run.id: run.result for run in drain()}
    assert results == {first.id: ["de", "Asia/Tokyo"], second.id: ["pt-br", "UTC"]}
    assert translation.get_language() == settings.LANGUAGE_CODE


def test_without_a_language_there_is_no_header(broker):
    with translation.override(None):
        look.delay()
    assert take(broker).headers == {"timezone": timezone.get_current_timezone_name()}

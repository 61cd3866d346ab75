"""What tests of middleware share."""

from contextlib import ExitStack

import pytest
from django.conf import settings
from django.test import override_settings

from django_rtq.core.broker.brokers import get_broker
from tests.app.middleware import LOG


@pytest.fixture
def middleware(rtq_settings):
    """Use this middleware of tests.app in a test."""
    LOG.clear()

    def use(*names):
        paths = [f"tests.app.middleware.{name}" for name in names]
        stack.enter_context(override_settings(RTQ={**settings.RTQ, "MIDDLEWARE": paths}))
        stack.callback(lambda: get_broker().close())

    with ExitStack() as stack:
        yield use
    LOG.clear()

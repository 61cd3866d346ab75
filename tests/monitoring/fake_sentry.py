"""Sentry with a transport that keeps what would be sent."""

from contextlib import contextmanager

import pytest
import sentry_sdk
from django.dispatch import Signal
from sentry_sdk.integrations.dedupe import DedupeIntegration
from sentry_sdk.integrations.logging import LoggingIntegration
from sentry_sdk.transport import Transport

from django_rtq import signals
from django_rtq.core.conf import config as conf
from django_rtq.core.tasks import registry
from django_rtq.monitoring.sentry import RTQIntegration


class ListTransport(Transport):
    """Keeps what would be sent."""

    items = []

    def capture_envelope(self, envelope):
        self.items += [item.payload.json for item in envelope.items if item.payload.json]


@contextmanager
def fake_sentry(**options):
    """Sentry is on, with these options of the integration. Gives the list of what was sent."""
    ListTransport.items = []
    RTQIntegration.setup_once()  # the SDK does it once in a process
    with sentry_sdk.isolation_scope(), sentry_sdk.new_scope():
        sentry_sdk.init(
            dsn="http://key@127.0.0.1:1/1",
            transport=ListTransport,
            traces_sample_rate=1.0,
            default_integrations=False,  # most of them patch modules for good
            integrations=[RTQIntegration(**options), LoggingIntegration(), DedupeIntegration()],
        )
        yield ListTransport.items
    sentry_sdk.get_global_scope().set_client(None)


@pytest.fixture
def without_sentry(monkeypatch):
    """Nothing of the integration is left after a test, nor tasks that it declares."""
    with monkeypatch.context() as kept:
        kept.setattr(registry, "_tasks", dict(registry._tasks))
        kept.setattr(conf, "_added_middleware", [])
        for signal in vars(signals).values():
            if isinstance(signal, Signal):
                kept.setattr(signal, "receivers", list(signal.receivers))
        conf.get_config.cache_clear()
        yield
    conf.get_config.cache_clear()


@pytest.fixture
def sentry(without_sentry, rtq_settings):
    """Sentry is on. Gives back what was sent: a list of events and transactions."""
    with fake_sentry() as sent:
        yield sent


def events(sent):
    return [item for item in sent if "exception" in item]


def transactions(sent):
    return [item for item in sent if item.get("type") == "transaction"]


def check_ins(sent):
    return [item for item in sent if item.get("type") == "check_in"]

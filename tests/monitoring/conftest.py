"""Tests with real workers."""

from contextlib import suppress

import pytest

from tests.core.worker.conftest import databases_of_the_session, journal, rtq_worker  # noqa: F401

with suppress(ImportError):  # tests of Sentry are skipped without it
    from tests.monitoring.fake_sentry import sentry, without_sentry  # noqa: F401


@pytest.fixture(scope="session")
def exporter():
    """Keeps the spans of OpenTelemetry in memory. A process has one provider, which cannot be replaced."""
    trace = pytest.importorskip("opentelemetry.trace")
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter

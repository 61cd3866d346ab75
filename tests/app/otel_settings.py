"""Settings of workers whose spans go to a file, when they are flushed."""

import os
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from tests.settings import *  # noqa: F403
from tests.settings import RTQ

RTQ = {**RTQ, "MIDDLEWARE": ["django_rtq.monitoring.opentelemetry.OpenTelemetryMiddleware"]}


class FileExporter(SpanExporter):
    """A JSON object for each span, one a line."""

    def export(self, spans):
        with Path(os.environ["RTQ_TEST_SPANS"]).open("a") as file:
            for span in spans:
                file.write(span.to_json(indent=None) + "\n")
        return SpanExportResult.SUCCESS


provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(FileExporter(), schedule_delay_millis=3_600_000))  # at a flush only
trace.set_tracer_provider(provider)

"""Settings of a project that is observed: by what RTQ_BENCH_OBSERVER names. What is sent goes nowhere."""

import json
import logging
import os

from benchmarks.settings import *  # noqa: F403
from benchmarks.settings import RTQ

OBSERVER = os.environ["RTQ_BENCH_OBSERVER"]


class JSONFormatter(logging.Formatter):
    """A JSON object per line, as in docs/monitoring.md."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {name: getattr(record, name, None) for name in ("job_id", "task", "queue", "client", "attempt")}
        return json.dumps({"level": record.levelname, "message": record.getMessage(), **fields})


if OBSERVER == "logs":
    LOGGING = {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"job": {"()": "django_rtq.monitoring.JobLogFilter", "default": None}},
        "formatters": {"json": {"()": "benchmarks.observed_settings.JSONFormatter"}},
        "handlers": {
            "file": {"class": "logging.FileHandler", "filename": os.devnull, "filters": ["job"], "formatter": "json"}
        },
        "root": {"handlers": ["file"], "level": "INFO"},
    }
elif OBSERVER == "middleware":
    RTQ = {**RTQ, "MIDDLEWARE": ["benchmarks.middleware.pass_on"]}
elif OBSERVER == "job_logs":
    RTQ = {**RTQ, "JOB_LOGS": "INFO"}
    logging.getLogger("benchmarks").setLevel(logging.INFO)
elif OBSERVER == "opentelemetry":
    from collections.abc import Sequence

    from opentelemetry import trace
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class NoExporter(SpanExporter):
        """Drops what it gets."""

        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    RTQ = {**RTQ, "MIDDLEWARE": ["django_rtq.monitoring.opentelemetry.OpenTelemetryMiddleware"]}
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(NoExporter()))
    trace.set_tracer_provider(provider)
elif OBSERVER.startswith("sentry"):
    import sentry_sdk
    from sentry_sdk.envelope import Envelope
    from sentry_sdk.transport import Transport

    from django_rtq.monitoring.sentry import RTQIntegration

    class NoTransport(Transport):
        """Drops what it gets."""

        def capture_envelope(self, envelope: Envelope) -> None:
            """Nothing."""

    sentry_sdk.init(
        dsn="http://key@127.0.0.1:1/1",
        transport=NoTransport,
        traces_sample_rate=1.0 if OBSERVER == "sentry_traced" else 0.0,
        integrations=[RTQIntegration()],
    )

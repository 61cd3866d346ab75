"""Spans of OpenTelemetry around delay() and around each run, by the semantic conventions for messaging.

See https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/. Needs the API of OpenTelemetry:
pip install "django-rtq[otel]". The project configures the SDK.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

try:
    from opentelemetry import context, propagate, trace
except ImportError as error:
    raise ImportError(
        "django_rtq.monitoring.opentelemetry needs the package opentelemetry-api. "
        'Install it with: pip install "django-rtq[otel]"'
    ) from error
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from django_rtq.core import signals
from django_rtq.core.broker.redis.commands import command_hooks
from django_rtq.core.handle import JobHandle
from django_rtq.core.jobs.job import Job
from django_rtq.exceptions import JobCancelled, JobSuspended, Retry
from django_rtq.monitoring.span_middleware import SpanMiddleware
from django_rtq.workflows.store import workflow_of

if TYPE_CHECKING:
    from django_rtq.core.tasks.task import TaskCall

FLUSH_MS = 2000
MAX_QUERY_LENGTH = 1000
_tracer = trace.get_tracer("django_rtq")  # of the provider that the project sets, also later


def instrument_redis() -> None:
    """Make a span of each round trip to Redis inside a recorded span. May be called twice.

    What opentelemetry-instrumentation-redis does for the clients of redis-py, which this package does not use. Names
    and attributes are those of https://opentelemetry.io/docs/specs/semconv/db/redis/.
    """
    if _redis_span not in command_hooks:
        command_hooks.append(_redis_span)


@contextmanager
def _redis_span(names: Sequence[str]) -> Iterator[None]:
    if not trace.get_current_span().is_recording():
        yield  # such as the claims of workers: each would be a trace of its own
        return
    operation, _, script = names[0].partition(" ")
    attributes: dict[str, str | int] = {"db.system.name": "redis", "db.operation.name": operation}
    if len(names) > 1:
        attributes |= {"db.operation.name": "PIPELINE", "db.operation.batch.size": len(names)}
        attributes["db.query.text"] = "; ".join(names)[:MAX_QUERY_LENGTH]
    elif script:
        attributes["db.stored_procedure.name"] = script
    name = names[0] if len(names) == 1 else "PIPELINE"
    with _tracer.start_as_current_span(name, kind=SpanKind.CLIENT, attributes=attributes):
        yield


@contextmanager
def _producing(call: TaskCall) -> Iterator[Span]:
    attributes = _attributes("enqueue", "send", call.task.queue, call.task.name)
    parent, flow = None, call.workflow
    if flow is not None:
        attributes["rtq.workflow"] = flow.id
        if not trace.get_current_span().get_span_context().is_valid:
            parent = propagate.extract(flow.shared.setdefault("opentelemetry", {}))  # one trace for all its steps
    with _tracer.start_as_current_span(
        f"enqueue {call.task.queue}", context=parent, kind=SpanKind.PRODUCER, attributes=attributes
    ) as span:
        propagate.inject(call.headers)
        if parent is not None and flow is not None and not flow.shared["opentelemetry"]:
            propagate.inject(flow.shared["opentelemetry"])
        yield span


def _with_ids(span: Span, handles: Any) -> Any:
    if len(handles) == 1 and isinstance(handles[0], JobHandle):
        span.set_attribute("messaging.message.id", handles[0].id)
    else:
        span.set_attribute("messaging.batch.message_count", len(handles))
    return handles


@contextmanager
def _consuming(job: Job) -> Iterator[None]:
    attributes = _attributes("process", "process", job.queue, job.task)
    attributes |= {"messaging.message.id": job.id, "rtq.client": job.client, "rtq.attempt": job.attempt}
    if flow := workflow_of(job.id):
        attributes["rtq.workflow"] = flow
    token = context.attach(propagate.extract(job.headers))
    try:
        with _tracer.start_as_current_span(
            f"process {job.queue}",
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except (Retry, JobCancelled, JobSuspended):
                raise
            except BaseException as error:
                _record(span, job, error)
                raise
    finally:
        context.detach(token)


class OpenTelemetryMiddleware(SpanMiddleware):
    """For RTQ["MIDDLEWARE"], as the first entry. The trace goes with the job, in headers such as `traceparent`.

    Spans of kind PRODUCER, one for each call of delay() or delay_many(), and of kind CONSUMER, one for each run.
    """

    def __init__(self) -> None:
        super().__init__(_producing, _with_ids, _consuming)
        signals.worker_process_shutdown.connect(_flush, dispatch_uid="rtq-opentelemetry")


def _record(span: Span, job: Job, error: BaseException) -> None:
    if span.is_recording():
        span.record_exception(error if isinstance(error, Exception) else Exception(str(error)))
        span.set_attribute("error.type", type(error).__qualname__)
        span.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))


def _attributes(name: str, kind: str, queue: str, task: str) -> dict[str, str | int]:
    return {
        "messaging.system": "rtq",
        "messaging.operation.name": name,
        "messaging.operation.type": kind,
        "messaging.destination.name": queue,
        "rtq.task": task,
    }


def _flush(**kwargs: object) -> None:
    """Send what is buffered. The API does not say that a provider can, only the SDK does."""
    flush = getattr(trace.get_tracer_provider(), "force_flush", None)
    if flush is not None:
        flush(FLUSH_MS)

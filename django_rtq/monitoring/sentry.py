"""Reports failures of jobs, traces and check-ins of schedules to Sentry.

    sentry_sdk.init(dsn=..., integrations=[RTQIntegration()])

The integration puts SentryMiddleware around the middleware of RTQ["MIDDLEWARE"]. Failures that middleware does not see,
such as a task that is unknown, come from signals. Needs sentry-sdk: pip install "django-rtq[sentry]".
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

try:
    import sentry_sdk
except ImportError as error:
    raise ImportError(
        'django_rtq.monitoring.sentry needs the package sentry-sdk. Install it with: pip install "django-rtq[sentry]"'
    ) from error
from sentry_sdk.consts import OP, SPANDATA
from sentry_sdk.crons import monitor
from sentry_sdk.integrations import Integration
from sentry_sdk.scope import add_global_event_processor
from sentry_sdk.tracing import BAGGAGE_HEADER_NAME, SENTRY_TRACE_HEADER_NAME, Span, TransactionSource
from sentry_sdk.utils import event_from_exception

from django_rtq.core import signals
from django_rtq.core.conf.config import add_middleware
from django_rtq.core.handle import JobHandle
from django_rtq.core.jobs.job import Job, about
from django_rtq.core.logs import OncePerTask, is_unknown_task
from django_rtq.exceptions import BatchFailed, ConfigurationError, JobCancelled, JobSuspended, Retry
from django_rtq.monitoring.span_middleware import SpanMiddleware
from django_rtq.workflows.store import workflow_of

if TYPE_CHECKING:
    from sentry_sdk._types import Event, Hint

    from django_rtq.core.schedules import Schedule
    from django_rtq.core.tasks.task import TaskCall

ORIGIN = "auto.queue.rtq"
FLUSH_SECONDS = 2.0
_NO_FAILURES = (BatchFailed, Retry, JobCancelled, JobSuspended)  # each call that failed has an event of its own
_unknown_tasks = OncePerTask()
_REPORTED = "_rtq_is_reported_to_sentry"  # an attribute of exceptions


#: True: monitor all schedules. A mapping: these, with what their monitors get beside the schedule. False: none.
MonitorSchedules = bool | Mapping[str, Mapping[str, Any]]
SLUG, CONFIG = "sentry-monitor-slug", "sentry-monitor-config"  # headers of jobs
_UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000))


class RTQIntegration(Integration):
    """For sentry_sdk.init(integrations=[...]).

    `monitor_schedules`: send check-ins of the jobs of schedules to cron monitors: of all (True), or of those in a
    dictionary, name of the schedule -> more entries of `monitor_config`.
    """

    identifier = "rtq"
    origin = ORIGIN

    def __init__(self, monitor_schedules: MonitorSchedules = False) -> None:
        if not isinstance(monitor_schedules, bool | Mapping):
            raise ConfigurationError(
                f"RTQIntegration: monitor_schedules is {monitor_schedules!r}, but has to be True, False, or a "
                'dictionary of names and options, like {"nightly-cleanup": {"max_runtime": 60}}.'
            )
        self.monitor_schedules = monitor_schedules

    @staticmethod
    def setup_once() -> None:
        """Connect to the package. The SDK calls it once."""
        add_middleware(f"{__name__}.SentryMiddleware")
        signals.job_retried.connect(_report_failure, dispatch_uid="rtq-sentry")
        signals.job_buried.connect(_report_failure, dispatch_uid="rtq-sentry")
        signals.worker_process_shutdown.connect(_flush, dispatch_uid="rtq-sentry")
        add_global_event_processor(_drop_log_lines_of_failures)


@contextmanager
def _publishing(call: TaskCall) -> Iterator[Span]:
    with ExitStack() as stack:
        if call.schedule is not None:  # each firing is a trace: the thread of the scheduler fires them all
            call.headers |= monitor_headers(_monitor_schedules(), call.schedule)
            stack.enter_context(sentry_sdk.isolation_scope()).set_new_propagation_context()
        span = stack.enter_context(sentry_sdk.start_span(op=OP.QUEUE_PUBLISH, name=call.task.name, origin=ORIGIN))
        span.set_data(SPANDATA.MESSAGING_SYSTEM, "redis")
        span.set_data(SPANDATA.MESSAGING_DESTINATION_NAME, call.task.queue)
        # Scope.iter_trace_propagation_headers() has none outside of a transaction: each attempt would be a trace.
        for name, value in (
            (SENTRY_TRACE_HEADER_NAME, sentry_sdk.get_traceparent()),
            (BAGGAGE_HEADER_NAME, sentry_sdk.get_baggage()),
        ):
            if value:
                call.headers[name] = value
        yield span


def _with_id(span: Span, handles: Any) -> Any:
    if len(handles) == 1 and isinstance(handles[0], JobHandle):
        span.set_data(SPANDATA.MESSAGING_MESSAGE_ID, handles[0].id)
    return handles


@contextmanager
def _processing(job: Job) -> Iterator[None]:
    with _scope_of(job):
        transaction = sentry_sdk.continue_trace(
            {name: str(job.headers.get(name) or "") for name in (SENTRY_TRACE_HEADER_NAME, BAGGAGE_HEADER_NAME)},
            op=OP.QUEUE_PROCESS,
            name=job.task,
            source=TransactionSource.TASK,
            origin=ORIGIN,
        )
        with sentry_sdk.start_transaction(transaction, custom_sampling_context={"rtq_job": about(job)}):
            transaction.set_data(SPANDATA.MESSAGING_SYSTEM, "redis")
            transaction.set_data(SPANDATA.MESSAGING_DESTINATION_NAME, job.queue)
            transaction.set_data(SPANDATA.MESSAGING_MESSAGE_ID, job.id)
            transaction.set_data(SPANDATA.MESSAGING_MESSAGE_RETRY_COUNT, job.attempt - 1)
            if job.attempt == 1:
                waited_ms = max(0, time.time_ns() // 1_000_000 - job.ready_ms)
                transaction.set_data(SPANDATA.MESSAGING_MESSAGE_RECEIVE_LATENCY, waited_ms)
            is_monitored = SLUG in job.headers and _monitor_schedules()
            try:
                with checked_in(job) if is_monitored else nullcontext():
                    yield
            except _NO_FAILURES:
                transaction.set_status("aborted")
                raise
            except Exception as error:
                _report(error)
                raise


class SentryMiddleware(SpanMiddleware):
    """Spans around delay(), and a scope and a transaction around each run. RTQIntegration adds it.

    A span `queue.publish`; a transaction `queue.process`, which continues the trace, in an isolation scope.
    """

    def __init__(self) -> None:
        super().__init__(_publishing, _with_id, _processing)


def _monitor_schedules() -> MonitorSchedules:
    integration = sentry_sdk.get_client().get_integration(RTQIntegration)
    return integration.monitor_schedules if integration is not None else False


@contextmanager
def _scope_of(job: Job) -> Iterator[None]:
    """What is reported here has the tags of the job, and no breadcrumbs of other jobs."""
    with sentry_sdk.isolation_scope() as scope:
        scope.clear_breadcrumbs()
        scope.set_transaction_name(job.task, source=TransactionSource.TASK)
        fields = about(job)
        if flow := workflow_of(job.id):
            fields["workflow"] = flow
        scope.set_context("rtq job", fields)
        scope.set_tags(
            {name: str(fields[name]) for name in ("task", "queue", "client", "attempt", "workflow") if name in fields}
        )
        yield


def _report(error: BaseException) -> None:
    client = sentry_sdk.get_client()
    if client.get_integration(RTQIntegration) is None:
        return
    mechanism = {"type": RTQIntegration.identifier, "handled": False}
    event, hint = event_from_exception(error, client_options=client.options, mechanism=mechanism)
    sentry_sdk.capture_event(event, hint=hint)
    vars(error)[_REPORTED] = True


def _report_failure(*, job: Job | None, job_id: str, error: BaseException, **kwargs: object) -> None:
    """Report a failure that middleware did not see: an unknown task, a result that cannot be stored, a killed run."""
    if isinstance(error, _NO_FAILURES) or _REPORTED in vars(error):
        return
    if is_unknown_task(error) and _unknown_tasks.held_back(job.task if job else "") is None:
        return
    job = job or Job(id=job_id, task="", queue="")
    with _scope_of(job):
        _report(error)


def _flush(**kwargs: object) -> None:
    sentry_sdk.flush(FLUSH_SECONDS)


def _drop_log_lines_of_failures(event: Event, hint: Hint) -> Event | None:
    """Drop what the SDK makes of our log lines about failures: the failure itself is an event already."""
    record = hint.get("log_record")
    is_known = record is not None and record.name == "django_rtq" and record.exc_info and hasattr(record, "job_id")
    return None if is_known else event


# -- check-ins for cron monitors: one for each run of a job that a schedule has started


def monitor_headers(chosen: MonitorSchedules, schedule: Schedule) -> dict[str, Any]:
    """The headers of jobs of a schedule; empty if it is not monitored."""
    more = chosen.get(schedule.name) if isinstance(chosen, Mapping) else {} if chosen else None
    unit, unit_ms = next((each for each in _UNITS if schedule.every_ms % each[1] == 0), ("", 1))
    if more is None or not unit:  # Sentry knows whole minutes only
        return {}
    when = {"type": "interval", "value": schedule.every_ms // unit_ms, "unit": unit}
    if schedule.expression:
        when = {"type": "crontab", "value": " ".join(schedule.expression.split()[-5:])}
    zone = schedule.zone if schedule.expression else "UTC"
    return {SLUG: slug_of(schedule.name), CONFIG: {"schedule": when, "timezone": zone, **more}}


def slug_of(name: str) -> str:
    """The slug of a monitor: at most 50 of a-z, 0-9, `_`, `-`. A digest keeps those of similar names apart."""
    slug = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return (
        name if slug == name and not slug.isdigit() and 0 < len(slug) <= 50 else f"{slug[:40] or 'schedule'}-{digest}"
    )


@contextmanager
def checked_in(job: Job) -> Iterator[None]:
    """Send the begin and the end of a run. A run that sleeps or asks for a retry has not failed."""
    goes_on: Retry | JobSuspended | None = None
    with monitor(job.headers[SLUG], job.headers.get(CONFIG)):
        try:
            yield
        except (Retry, JobSuspended) as error:
            goes_on = error
    if goes_on is not None:
        raise goes_on

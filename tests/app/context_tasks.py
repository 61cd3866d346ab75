"""Jobs that return what belongs to their context, and one that leaves a broken connection."""

import asyncio
import logging
import time
from contextvars import ContextVar

from django.db import OperationalError, connection
from django.utils import timezone, translation

from django_rtq import constant, task
from tests.app import journal

AT_ONCE = constant(0)
TENANT = ContextVar("tenant", default=None)


@task(backoff=AT_ONCE)
def tenant(name):
    """What a receiver of signals may have set for this job."""
    return [TENANT.get(), translation.get_language(), timezone.get_current_timezone_name()]


@task(backoff=AT_ONCE)
async def atenant(name):
    return tenant.func(name)


@task(backoff=AT_ONCE)
def query_and_break_close(name):
    """Leaves a connection that raises when it is closed, as a driver does whose server went away."""
    journal.write("start", name)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    connection.close = fail_to_close


def fail_to_close():
    raise OperationalError("server has gone away")


@task(backoff=AT_ONCE)
def log_fields(name):
    """What log lines of this job say, before and after others may have run."""
    before = logged_fields()
    time.sleep(0.01)
    return [before, logged_fields()]


@task(backoff=AT_ONCE)
async def alog_fields(name):
    before = logged_fields()
    await asyncio.sleep(0.01)
    return [before, logged_fields()]


def logged_fields():
    from django_rtq.monitoring import JobLogFilter  # the other tasks need only the core

    record = logging.makeLogRecord({})
    JobLogFilter().filter(record)
    return [record.job_id, record.task, record.queue, record.client, record.attempt]

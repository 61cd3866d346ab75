"""Middleware of a project with tenants, and middleware that is wrong."""

import time
from contextlib import contextmanager
from dataclasses import replace

from asgiref.sync import iscoroutinefunction
from django.core.exceptions import MiddlewareNotUsed
from django.utils.decorators import async_only_middleware, sync_and_async_middleware

from tests.app import journal
from tests.app.context_tasks import TENANT

LOG = []


@contextmanager
def use_tenant(name):
    token = TENANT.set(name)
    LOG.append(f"enter {name}")
    try:
        yield
    except Exception as error:
        LOG.append(f"{type(error).__name__} in {name}")
        raise
    finally:
        LOG.append(f"leave {name}")
        TENANT.reset(token)


class TenantMiddleware:
    @sync_and_async_middleware
    def enqueue(self, enqueue):
        def add_tenant(call):
            if TENANT.get():
                call.headers.setdefault("tenant", TENANT.get())
            return enqueue(call)

        return add_tenant

    @sync_and_async_middleware
    def run(self, run):
        if iscoroutinefunction(run):

            async def run_for_tenant(job):
                with use_tenant(job.headers.get("tenant")):
                    return await run(job)

        else:

            def run_for_tenant(job):
                with use_tenant(job.headers.get("tenant")):
                    return run(job)

        return run_for_tenant


@sync_and_async_middleware
def note_middleware(run):
    def note(job):
        LOG.append(f"run {job.task.rpartition('.')[2]}")
        return run(job)

    return note


def functions_only(run):
    return run


@async_only_middleware
def coroutines_only(run):
    return run


def raising(run):
    def fail(job):
        raise ValueError("the middleware fails")

    return fail


def endless(run):
    def sleep(job):
        time.sleep(60)

    return sleep


def doubling(run):
    def double(job):
        return [run(replace(job, args=[arg * 2 for arg in job.args]))] * 2

    return double


def unused(run):
    raise MiddlewareNotUsed


@sync_and_async_middleware
def once(run):
    if not iscoroutinefunction(run):
        journal.write("factory", "once")
    return run


class DjangoForm:
    sync_capable = async_capable = True

    def __init__(self, run):
        self.run_next = run

    def __call__(self, job):
        LOG.append("django form")
        return self.run_next(job)


class BulkQueue:
    def enqueue(self, enqueue):
        def use_bulk(call):
            LOG.append(f"{call.task.name.rpartition('.')[2]} {call.arguments}")
            call.task = call.task.using(queue_name="bulk")
            return enqueue(call)

        return use_bulk


class Forgetful:
    def enqueue(self, enqueue):
        return lambda call: None


class Broken:
    """Its settings are not there."""

    def __init__(self):
        raise KeyError("TENANTS")

    def run(self, run):
        """Nothing."""


class NeedsArguments:
    def __init__(self, needed):
        pass

    def run(self, run):
        return run


def returns_nothing(run):
    pass


number = 7


class BulkMiddleware:
    """Sends all jobs to the queue `bulk`, and notes its calls and what they returned."""

    options = {"queue_name": "bulk"}

    def enqueue(self, enqueue):
        def change(call):
            call.task = call.task.using(**self.options)
            handles = enqueue(call)
            LOG.append((call, handles))
            return handles

        return change


class UniqueMiddleware(BulkMiddleware):
    """Makes all jobs unique."""

    options = {"unique": True}

"""The id of the request in which a job was enqueued, for the log lines of both."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from asgiref.sync import iscoroutinefunction
from django.utils.decorators import sync_and_async_middleware

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase

    from django_rtq.jobs.job import Job

_VALID = re.compile(r"[A-Za-z0-9._-]{1,100}")

#: The id of the current request, or of the request that enqueued the current job; "" if there is none.
request_id: ContextVar[str] = ContextVar("rtq_request_id", default="")


class RequestIDMiddleware:
    """Header `request_id`, for RTQ["MIDDLEWARE"]. A job that was enqueued outside of a request has its own id."""

    @sync_and_async_middleware
    def enqueue(self, enqueue: Callable[..., Any]) -> Callable[..., Any]:
        """Set the header, unless the call has it."""

        def set_header(call: Any) -> Any:
            if found := request_id.get():
                call.headers.setdefault("request_id", found)
            return enqueue(call)

        return set_header

    @sync_and_async_middleware
    def run(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """Set `request_id`. Each job has a context of its own, so nothing has to be restored."""

        def set_variable(job: Job) -> Any:
            request_id.set(str(job.headers.get("request_id") or job.id))
            return run(job)

        return set_variable


@sync_and_async_middleware
def http_request_id(get_response: Callable[..., Any]) -> Callable[..., Any]:
    """For Django's MIDDLEWARE: set `request_id` from the header X-Request-ID or anew, and send it in the response."""
    if iscoroutinefunction(get_response):

        async def aset_id(request: HttpRequest) -> HttpResponseBase:
            token = request_id.set(_id_of(request))
            try:
                response: HttpResponseBase = await get_response(request)
                response.headers["X-Request-ID"] = request_id.get()
            finally:
                request_id.reset(token)
            return response

        return aset_id

    def set_id(request: HttpRequest) -> HttpResponseBase:
        token = request_id.set(_id_of(request))
        try:
            response: HttpResponseBase = get_response(request)
            response.headers["X-Request-ID"] = request_id.get()
        finally:
            request_id.reset(token)
        return response

    return set_id


class RequestIDFilter(logging.Filter):
    """Sets `request_id` on log records, for formats with %(request_id)s; "-" if there is none."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Accepts all records."""
        record.request_id = request_id.get() or "-"
        return True


def _id_of(request: HttpRequest) -> str:
    given = request.headers.get("X-Request-ID", "")
    return given if _VALID.fullmatch(given) else uuid.uuid4().hex

"""Middleware with a span around each call of delay(), and one around each run: what the tools for traces share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from asgiref.sync import iscoroutinefunction
from django.utils.decorators import sync_and_async_middleware

from django_rtq.core.jobs.job import Job

if TYPE_CHECKING:
    from django_rtq.core.tasks.task import TaskCall


class SpanMiddleware:
    """For functions and coroutine functions alike. A subclass says what the spans are.

    `with_ids` gives the span of a call the ids of the handles, and returns these.
    """

    def __init__(
        self,
        publishing: Callable[[TaskCall], AbstractContextManager[Any]],
        with_ids: Callable[[Any, Any], Any],
        processing: Callable[[Job], AbstractContextManager[Any]],
    ) -> None:
        self._publishing, self._with_ids, self._processing = publishing, with_ids, processing

    @sync_and_async_middleware
    def enqueue(self, enqueue: Callable[..., Any]) -> Callable[..., Any]:
        """A span for each call of delay() or delay_many(), and its trace in the headers of the jobs."""
        return _inside(self._publishing, enqueue, self._with_ids)

    @sync_and_async_middleware
    def run(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """A span for each run, which continues the trace."""
        return _inside(self._processing, run, lambda span, result: result)


def _inside(
    span_of: Callable[[Any], AbstractContextManager[Any]], call: Callable[..., Any], answer: Callable[[Any, Any], Any]
) -> Callable[..., Any]:
    """What makes the call inside a span. `answer` makes the answer of the span and that of the call."""
    if iscoroutinefunction(call):

        async def acall_inside(what: TaskCall | Job) -> Any:
            with span_of(what) as span:
                return answer(span, await call(what))

        return acall_inside

    def call_inside(what: TaskCall | Job) -> Any:
        with span_of(what) as span:
            return answer(span, call(what))

    return call_inside

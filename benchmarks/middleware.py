"""A middleware that does nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.utils.decorators import sync_and_async_middleware


@sync_and_async_middleware
def pass_on(run: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The form is that of docs/middleware.md."""
    if iscoroutinefunction(run):

        async def run_coroutine(job: Any) -> Any:
            return await run(job)

        return run_coroutine

    def run_function(job: Any) -> Any:
        return run(job)

    return run_function

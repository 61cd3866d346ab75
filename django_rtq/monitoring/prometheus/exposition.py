"""Serves the metrics: as text, as a view of Django, and from a server of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import ThreadingWSGIServer, choose_encoder

from django_rtq.exceptions import BrokerError
from django_rtq.monitoring.prometheus.collector import RTQCollector


def metrics_text(accept: str = "", backend: str = "") -> tuple[str, bytes]:
    """The content type and the metrics: as text, unless the header `Accept` allows OpenMetrics only.

    Raises BrokerError. Prometheus accepts both, and OpenMetrics, which says no more about our metrics, takes longer.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(RTQCollector(backend))
    encode, content_type = choose_encoder("" if "text/plain" in accept else accept)
    return content_type, encode(registry)


@require_safe
def metrics_view(request: HttpRequest, backend: str = "") -> HttpResponse:
    """A view for Prometheus. It answers 503 while Redis does not answer. Whoever can call it sees names of tasks.

    `backend`: in TASKS, if it has a Redis of its own.
    """
    try:
        content_type, text = metrics_text(request.headers.get("Accept", ""), backend)
    except BrokerError as error:
        return HttpResponse(f"{error}\n", status=503, content_type="text/plain; charset=utf-8")
    return HttpResponse(text, content_type=content_type, headers={"Cache-Control": "no-store"})


vars(metrics_view)["login_required"] = False  # as @login_not_required does, which Django has from 5.1 on


def metrics_server(address: str, port: int, backend: str = "") -> WSGIServer:
    """A server of the metrics, at any path. Raises OSError if it cannot listen there. Call serve_forever()."""
    return make_server(address, port, partial(_application, backend), ThreadingWSGIServer, _QuietHandler)


class _QuietHandler(WSGIRequestHandler):
    """Logs no requests."""

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def _application(backend: str, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    try:
        content_type, text = metrics_text(environ.get("HTTP_ACCEPT", ""), backend)
    except BrokerError as error:
        start_response("503 Service Unavailable", [("Content-Type", "text/plain; charset=utf-8")])
        return [f"{error}\n".encode()]
    start_response("200 OK", [("Content-Type", content_type)])
    return [text]

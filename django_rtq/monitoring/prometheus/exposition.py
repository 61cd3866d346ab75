"""Serves the metrics: as text, as a view of Django, and from a server of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import ThreadingWSGIServer, choose_encoder
from prometheus_client.utils import floatToGoString

from django_rtq.exceptions import BrokerError
from django_rtq.monitoring.prometheus.collector import RTQCollector

PLAIN_TEXT = "text/plain; version=0.0.4; charset=utf-8"


def metrics_text(accept: str = "", backend: str = "") -> tuple[str, bytes]:
    """The content type and the metrics: as text, unless the header `Accept` allows OpenMetrics only.

    Raises BrokerError. Prometheus accepts both, and OpenMetrics, which says no more about our metrics, takes longer.
    """
    collector = RTQCollector(backend)
    if "application/openmetrics-text" not in accept or "text/plain" in accept:
        return PLAIN_TEXT, _plain_text(collector.collect())
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    encode, content_type = choose_encoder(accept)
    return content_type, encode(registry)


def _plain_text(metrics: Iterable[Metric]) -> bytes:
    """What generate_latest() makes of metrics like ours, in a third of the time.

    Names of metrics and labels are ours, so only values are escaped. See
    https://prometheus.io/docs/instrumenting/exposition_formats/.
    """
    lines = []
    for metric in metrics:
        name = f"{metric.name}_total" if metric.type == "counter" else metric.name
        lines.append(f"# HELP {name} {metric.documentation}\n# TYPE {name} {metric.type}\n")
        for sample in metric.samples:
            pattern, names = _pattern(sample.name, tuple(sample.labels))
            lines.append(pattern % (*[_escaped(sample.labels[label]) for label in names], _number(sample.value)))
    return "".join(lines).encode()


@lru_cache(maxsize=1000)
def _pattern(name: str, labels: tuple[str, ...]) -> tuple[str, list[str]]:
    """The line of a sample, and the labels whose values go into it, before the number."""
    names = sorted(labels)
    places = ",".join(f'{label}="%s"' for label in names)
    return f"{name}{{{places}}} %s\n" if names else f"{name} %s\n", names


_number = lru_cache(maxsize=20_000)(floatToGoString)


@lru_cache(maxsize=20_000)
def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


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

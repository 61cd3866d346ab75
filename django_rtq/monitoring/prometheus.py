"""Metrics for Prometheus: their names, labels and help texts; as text, as a view of Django, and from a server.

Needs prometheus_client: pip install "django-rtq[prometheus]".
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

try:
    from prometheus_client import CollectorRegistry
except ImportError as error:
    raise ImportError(
        "django_rtq.monitoring.prometheus needs the package prometheus_client. "
        'Install it with: pip install "django-rtq[prometheus]"'
    ) from error
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import ThreadingWSGIServer, choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from django_rtq.console.histogram import upper_bound
from django_rtq.console.incidents import Incident, look
from django_rtq.console.merging import grouped, sum_of_counts
from django_rtq.console.reading.details import WorkerDetails
from django_rtq.console.reading.metrics.reader import HOUR_MS, Totals
from django_rtq.console.reading.overview import Overview
from django_rtq.console.reading.readers import Readers, readers_of
from django_rtq.console.shards import AllShards
from django_rtq.core.broker.task_backends import place_of, shard_numbers
from django_rtq.exceptions import BrokerError

STATES = ("queued", "scheduled", "retrying", "running", "dead")
# Counter in Redis -> name of the metric without _total, and help text.
QUEUE_COUNTERS = {
    "enqueued": ("rtq_jobs_enqueued", "Jobs that were enqueued."),
    "succeeded": ("rtq_jobs_succeeded", "Jobs that succeeded."),
    "failed": ("rtq_runs_failed", "Runs that failed or crashed."),
    "dead": ("rtq_dead_letters", "Jobs that became dead letters."),
    "cancelled": ("rtq_jobs_cancelled", "Jobs that were cancelled."),
    "expired": ("rtq_jobs_expired", "Jobs that expired before a worker started them."),
    "reclaimed": ("rtq_jobs_reclaimed", "Jobs that were taken back from dead workers."),
    "requeued": ("rtq_dead_letters_requeued", "Dead letters that were queued again."),
    "discarded": ("rtq_dead_letters_discarded", "Dead letters that a person discarded."),
    "purged": ("rtq_jobs_purged", "Waiting jobs that were purged."),
}
TASK_COUNTERS = {
    "done": ("rtq_task_runs_succeeded", "Runs of a task that succeeded."),
    "failed": ("rtq_task_runs_failed", "Runs of a task that failed or crashed."),
    "crashed": ("rtq_task_runs_crashed", "Runs of a task that died with their process."),
    "retried": ("rtq_task_retries", "Failed runs of a task that were followed by a retry."),
    "dead": ("rtq_task_dead_letters", "Jobs of a task that became dead letters."),
    "expired": ("rtq_task_jobs_expired", "Jobs of a task that expired before a worker started them."),
}
# Powers of two, because the buckets in Redis end there. Runs are counted in seconds, waits in milliseconds.
RUN_BOUNDS = [2.0**power for power in (-10, -8, *range(-6, 9), 10, 12)]
WAIT_BOUNDS_MS = [2.0**power for power in (0, 2, *range(4, 19), 20, 22)]
RUN_LABELS = [*map(str, RUN_BOUNDS), "+Inf"]
WAIT_LABELS = [*(str(bound / 1000) for bound in WAIT_BOUNDS_MS), "+Inf"]


class RTQCollector(Collector):
    """Reads Redis when it is scraped, in some round trips. Any thread may use it.

    `backend`: in TASKS, if it has a Redis of its own. Registering it does not read Redis. collect() raises BrokerError
    if Redis does not answer, and ConfigurationError.
    """

    def __init__(self, backend: str = "") -> None:
        self._backend = backend

    def describe(self) -> Iterable[Metric]:
        """Nothing, because the labels are known after a scrape only."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All metrics. With RTQ["SHARDS"] those of each shard have its number as a label."""
        place = place_of(self._backend)
        return _metrics_of_shards() if not place and shard_numbers() else _read(readers_of(place))


def _metrics_of_shards() -> Iterator[Metric]:
    """All metrics. A shard that does not answer has none but rtq_shard_up. Raises BrokerError if no shard answers."""
    up = GaugeMetricFamily("rtq_shard_up", "1 if the shard has answered this scrape, else 0.", labels=["shard"])
    answers = AllShards(is_patient=True).ask(lambda readers: [*_read(readers)])
    merged: dict[str, Metric] = {}
    for number in shard_numbers():
        up.add_metric([str(number)], number in answers)
        for metric in answers.get(number, ()):
            whole = merged.setdefault(metric.name, Metric(metric.name, metric.documentation, metric.type))
            labels = {"shard": str(number)}
            whole.samples += [Sample(each.name, {**each.labels, **labels}, *each[2:]) for each in metric.samples]
    return iter([*merged.values(), up])


def _read(readers: Readers) -> Iterator[Metric]:
    """Reads all queues and workers, and finds what is wrong. Raises BrokerError.

    It adds past counters to the totals in Redis, so that later scrapes, also of other processes, go on from there.
    """
    seen = look(readers)
    overview = seen.overview  # whose `now` may be ahead of the server, by the clock of one queue
    queues, hour = [row.details.name for row in overview.queues], overview.server.now_ms // HOUR_MS
    return metrics_of(overview, seen.incidents, Totals.read_all(readers.broker, queues, hour))


def metrics_of(overview: Overview, incidents: Iterable[Incident], totals: Mapping[str, Totals]) -> Iterator[Metric]:
    """The metrics of what was read."""
    yield from _queue_gauges(overview)
    yield from _counters(totals)
    yield from _histograms(totals)
    yield from _worker_gauges(overview.workers)
    yield from _workflow_gauges(overview)
    found = Counter((each.kind, str(each.severity), each.queue, each.task, each.host) for each in incidents)
    labels, text = ["kind", "severity", "queue", "task", "host"], "Incidents now, by kind, severity and subject."
    gauge = GaugeMetricFamily("rtq_incidents", text, labels=labels)
    for values, number in found.items():
        gauge.add_metric(values, number)
    yield gauge


def _queue_gauges(overview: Overview) -> Iterator[Metric]:
    jobs = GaugeMetricFamily("rtq_jobs", "Jobs in the queue now, by state.", labels=["queue", "state"])
    oldest = _gauge("rtq_queue_oldest_job_age_seconds", "For how long the oldest job waits that might start; 0: none.")
    clients = _gauge("rtq_queue_waiting_clients", "Clients with queued jobs, counted once for each priority.")
    paused = _gauge("rtq_queue_paused", "1 while the queue is paused, else 0.")
    slots = _gauge(
        "rtq_queue_slots", "Jobs that the working workers of the queue can run at once. They may serve others, too."
    )
    idle = _gauge("rtq_queue_scheduler_idle_seconds", "Seconds since a scheduler looked for due jobs of the queue.")
    for details in (row.details for row in overview.queues):
        label = [details.name]
        for state in STATES:
            jobs.add_metric([details.name, state], getattr(details, state))
        oldest.add_metric(label, details.oldest_seconds or 0)
        clients.add_metric(label, details.clients)
        paused.add_metric(label, details.paused)
        serving = [worker for worker in overview.workers if details.name in worker.queues]
        slots.add_metric(label, sum(worker.slots for worker in serving if not worker.is_lost and not worker.is_quiet))
        if details.scheduler_seconds is not None:
            idle.add_metric(label, details.scheduler_seconds)
    yield from (jobs, oldest, clients, paused, slots, idle)


def _counters(totals: Mapping[str, Totals]) -> Iterator[Metric]:
    for counter, (name, text) in QUEUE_COUNTERS.items():
        metric = CounterMetricFamily(name, text, labels=["queue"])
        for queue, of_queue in totals.items():
            metric.add_metric([queue], of_queue.counters.get(counter, 0))
        yield metric
    for counter, (name, text) in TASK_COUNTERS.items():
        metric = CounterMetricFamily(name, text, labels=["queue", "task"])
        for queue, of_queue in totals.items():
            for task, metrics in sorted(of_queue.tasks.items()):
                metric.add_metric([queue, task], getattr(metrics, counter))
        yield metric


def _histograms(totals: Mapping[str, Totals]) -> Iterator[Metric]:
    """Runs by task and waits by queue. By both they would be most of the text of a scrape."""
    run = HistogramMetricFamily("rtq_task_run_seconds", "How long runs took.", labels=["task"])
    text = "How long jobs that succeeded had waited for their first run."
    wait = HistogramMetricFamily("rtq_queue_wait_seconds", text, labels=["queue"])
    for queue, of_queue in totals.items():
        waits = sum_of_counts(metrics.waits for metrics in of_queue.tasks.values())
        ms = sum(metrics.wait_ms for metrics in of_queue.tasks.values())
        wait.add_metric([queue], _buckets(waits, WAIT_BOUNDS_MS, WAIT_LABELS), ms / 1000)
    by_task = grouped(pair for of_queue in totals.values() for pair in of_queue.tasks.items())
    for task, every in sorted(by_task.items()):
        runs = sum_of_counts(metrics.runs for metrics in every)
        us = sum(metrics.run_us for metrics in every)
        run.add_metric([task], _buckets(runs, RUN_BOUNDS, RUN_LABELS), us / 1_000_000)
    yield from (run, wait)


def _buckets(counts: Mapping[int, int], bounds: Sequence[float], labels: Sequence[str]) -> list[tuple[str, float]]:
    """Cumulative buckets: upper bound in seconds, and the number of all that took no longer."""
    numbers = [0] * len(labels)
    for bucket, number in counts.items():
        numbers[bisect_left(bounds, upper_bound(bucket))] += number
    return list(zip(labels, map(float, accumulate(numbers)), strict=True))


def _worker_gauges(workers: Iterable[WorkerDetails]) -> Iterator[Metric]:
    count = GaugeMetricFamily("rtq_workers", "Worker processes, by state.", labels=["host", "state"])
    slots = GaugeMetricFamily("rtq_worker_slots", "Jobs that the workers can run at once.", labels=["host"])
    busy = GaugeMetricFamily("rtq_worker_slots_busy", "Slots in which a job runs.", labels=["host"])
    memory = GaugeMetricFamily("rtq_worker_memory_bytes", "Resident memory of the worker processes.", labels=["host"])
    processes = (worker for worker in workers if not worker.crash_loop)  # or else it is a supervisor
    for host, of_host in sorted(grouped((worker.host, worker) for worker in processes).items()):
        states = Counter("lost" if each.is_lost else "quiet" if each.is_quiet else "active" for each in of_host)
        for state in ("active", "quiet", "lost"):
            count.add_metric([host, state], states[state])
        living = [worker for worker in of_host if not worker.is_lost]
        slots.add_metric([host], sum(worker.slots for worker in living))
        busy.add_metric([host], sum(min(worker.held, worker.slots) for worker in living))  # it claims batches
        memory.add_metric([host], sum(worker.memory_bytes or 0 for worker in living))
    yield from (count, slots, busy, memory)


def _workflow_gauges(overview: Overview) -> Iterator[Metric]:
    count = GaugeMetricFamily("rtq_workflows", "Workflows that are kept, by state.", labels=["state"])
    for state, number in overview.workflows.counts.items():
        count.add_metric([state], number)
    text = "For how long the workflow is blocked that has been so longest; 0: none."
    longest = max(((overview.now - flow.since).total_seconds() for flow in overview.workflows.blocked), default=0.0)
    yield from (count, GaugeMetricFamily("rtq_workflows_blocked_age_seconds", text, value=longest))


def _gauge(name: str, text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=["queue"])


# -- the ways to get them


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
    response = metrics_view(WSGIRequest(environ), backend)
    start_response(f"{response.status_code} {response.reason_phrase}", [*response.items()])
    return [response.content]

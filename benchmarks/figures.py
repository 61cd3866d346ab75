"""The figures: their units, descriptions and targets, and the measured values."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass, field

from benchmarks.figure import Figure, Target, rate
from benchmarks.loads.figures import LOADS

_PAGES = {
    "overview": "the overview: 50 queues, an hour",
    "overview_day": "the same with charts of 24 hours",
    "queue": "a queue: 25 of a million waiting jobs, clients",
    "queue_dead": "a queue: 25 dead letters, clients",
    "dead": "the newest 1,000 dead letters by task and error",
    "running": "the running jobs",
    "workers": "the workers",
    "tasks": "the tasks with their metrics of 24 hours",
    "task": "a task: 24 hours, its jobs in all queues",
    "clients": "the first of 10,000 clients",
    "client": "a client: its jobs in 50 queues",
    "search": "a search by client",
    "search_nothing": "a search for a word that no job has",
    "workflows": "the newest of 10,000 workflows",
    "workflow": "a workflow of 1,000 steps and 100,000 jobs",
    "scrape": "a scrape for Prometheus",
}


def _ms_of(page: str) -> Target:
    return Target("<", 100 if page.startswith("search_") else 50)


def _trips_of(page: str) -> Target | None:
    """A search looks at 250 jobs at a time."""
    return None if page.startswith("search") else Target("<=", 3)


def _from_redis_of(page: str) -> Target | None:
    return Target("<", 200) if page.startswith("search") else None


def _kb_of(page: str) -> Target | None:
    """The overview has no target, because 50 busy queues are unusual: it takes 7 kB, and 0.7 kB for each queue. So are
    1,000 steps."""
    return None if page.startswith(("overview", "workflow", "scrape")) else Target("<", 30)


FIGURES = {
    "raw.batch": Figure("jobs/s", "no queue: pop 64 in a script, decode, call"),
    "raw.single": Figure("jobs/s", "the same one by one"),
    "enqueue.delay": Figure("jobs/s", "delay(), one client"),
    "enqueue.evalsha": Figure("jobs/s", "bare redis-py: the same script, the same payload"),
    "enqueue.delay_vs_evalsha": Figure("ratio", "delay() to bare redis-py", Target(">=", 0.8)),
    "enqueue.using": Figure("jobs/s", "task.using(client=…).delay()"),
    "enqueue.using_cost": Figure("ratio", "time of using().delay() to that of delay()", Target("<=", 1.3)),
    "enqueue.threads": Figure("jobs/s", "delay(), 8 threads at once"),
    "enqueue.coroutines": Figure("jobs/s", "adelay(), 100 coroutines at once"),
    "enqueue.coroutines_vs_threads": Figure("ratio", "100 coroutines to 8 threads", Target(">=", 1)),
    "enqueue.many_300": Figure("jobs/s", "delay_many(), 300 at a time"),
    "enqueue.many_1000": Figure("jobs/s", "delay_many(), 1,000 at a time"),
    "enqueue.many_3000": Figure("jobs/s", "delay_many(), 3,000 at a time"),
    "enqueue.many_vs_delay": Figure("ratio", "the slowest of these to delay()", Target(">=", 4)),
    "unique.plain": Figure("jobs/s", "delay(), 500 equal calls"),
    "unique.duplicates": Figure("jobs/s", "the same calls of a unique task"),
    "unique.cost_vs_plain": Figure("ratio", "a duplicate of a unique job to a plain call", Target("<=", 1.3)),
    "unique.jobs": Figure("jobs", "jobs created by 500 equal calls of a unique task", Target("<=", 1)),
    **rate("drain.one_client", "no-op jobs, one process, no results", Target(">", 57_600)),
    **rate("drain.results", "no-op jobs, one process, with results kept, the default", Target(">", 47_000)),
    **rate("drain.many_clients", "as the first, for 1,000 clients"),
    **rate("drain.two_processes", "as the first, two processes"),
    **rate("drain.two_processes_results", "the same with results kept"),
    "drain.many_clients_vs_one": Figure("ratio", "1,000 clients to one", Target(">=", 0.7)),
    "drain.results_vs_none": Figure("ratio", "with results to without", Target(">=", 0.8)),
    "drain.two_processes_vs_one": Figure("ratio", "two processes to one", Target(">=", 1.3)),
    "drain.vs_raw": Figure("ratio", "one client to raw.batch"),
    "workflows.made": Figure("jobs/s", "workflow(): 100,000 jobs of one step"),
    "workflows.delay_many": Figure("jobs/s", "the same by delay_many()"),
    "workflows.made_vs_delay_many": Figure("ratio", "workflow() to delay_many()", Target(">=", 0.8)),
    "workflows.bytes_workflows": Figure("bytes/job", "memory of Redis for a waiting job of a workflow"),
    "workflows.bytes_plain": Figure("bytes/job", "the same for a plain job"),
    "workflows.bytes_more": Figure("bytes/job", "the difference", Target("<=", 5)),
    **rate("workflows.drain", "jobs of a workflow, one process, no results"),
    **rate("workflows.plain", "the same with plain jobs"),
    "workflows.drain_vs_plain": Figure("ratio", "jobs of a workflow to plain ones", Target(">=", 0.8)),
    **rate("workflows.drain_results", "jobs of a workflow, one process, results kept"),
    **rate("workflows.plain_results", "the same with plain jobs"),
    "workflows.drain_results_vs_plain": Figure("ratio", "the same, results kept", Target(">=", 0.9)),
    "workflows.callback_p50": Figure("ms", "from the start of the last of 10 jobs to that of the next step"),
    "workflows.callback_p99": Figure("ms", "the same, 99th percentile", Target("<=", 5)),
    "workflows.latency_p50": Figure("ms", "from delay() to the start of the job, in turn with that"),
    "workflows.callback_vs_latency": Figure("ratio", "the callback to delay()", Target("<=", 2)),
    "workflows.chain_step": Figure("ms", "a step of a chain of 1,000"),
    "workflows.chain_vs_latency": Figure("ratio", "a step of a chain to delay()", Target("<=", 2)),
    "workflows.send_p50": Figure("ms", "from send() to the line behind wait()"),
    "workflows.send_vs_latency": Figure("ratio", "send() to delay()", Target("<=", 2)),
    "workflows.sleeping_bytes_more": Figure("bytes/job", "a job that sleeps, beside a delayed one", Target("<=", 150)),
    "workflows.waiting_bytes_more": Figure("bytes/job", "a job that waits for an event", Target("<=", 150)),
    "workflows.callback_large": Figure("ms", "the callback of a step of 1,000,000 jobs, once"),
    "workflows.slowest_script": Figure(
        "ms", "the same, a chain of 1,000 and 10,000 open workflows: longest command of Redis", Target("<", 5)
    ),
    **rate("observers.none", "no-op jobs, one process: nothing observes them"),
    **rate("observers.middleware", "the same with one middleware that does nothing"),
    "observers.middleware_vs_none": Figure("ratio", "with a middleware to without", Target(">=", 0.77)),
    **rate("observers.job_logs", "jobs that log a line, which JOB_LOGS keeps"),
    "observers.job_logs_vs_none": Figure("ratio", "with a kept line to no line"),
    **rate("observers.logs", "the same with JSON logs, and a scrape of the metrics every second"),
    "observers.logs_vs_none": Figure("ratio", "with logs and metrics to without", Target(">=", 0.97)),
    **rate("observers.opentelemetry", "the same with a span of OpenTelemetry for each run"),
    "observers.opentelemetry_vs_none": Figure("ratio", "with OpenTelemetry to without"),
    **rate("observers.sentry", "the same with Sentry, errors only"),
    "observers.sentry_vs_none": Figure("ratio", "with Sentry to without"),
    **rate("observers.sentry_traced", "the same with a transaction of Sentry for each run"),
    "observers.sentry_traced_vs_none": Figure("ratio", "with transactions of Sentry to without"),
    "latency.p50": Figure("ms", "before delay() to the job's first line, idle worker", Target("<", 0.6)),
    "latency.p99": Figure("ms", "the same, 1 of 100 is later", Target("<", 2)),
    "latency.baseline_p50": Figure("ms", "baseline: a bare RPUSH to a process that blocks in BLPOP"),
    "latency.baseline_p99": Figure("ms", "the same, 1 of 100 is later"),
    "latency.p50_vs_baseline": Figure("ratio", "p50 to the baseline", Target("<=", 1.3)),
    "latency.p99_vs_baseline": Figure("ratio", "p99 to that of the baseline", Target("<=", 2)),
    "latency.warm_p50": Figure("ms", "as p50, but 1 to 2 ms apart"),
    "latency.warm_p99": Figure("ms", "the same, 1 of 100 is later"),
    "latency.warm_baseline_p50": Figure("ms", "the bare RPUSH, 1 to 2 ms apart"),
    "latency.warm_baseline_p99": Figure("ms", "the same, 1 of 100 is later"),
    "latency.warm_p50_vs_baseline": Figure("ratio", "p50 to the baseline, 1 to 2 ms apart"),
    "latency.warm_p99_vs_baseline": Figure("ratio", "p99 to that of the baseline, 1 to 2 ms apart"),
    "delayed.p50": Figure("ms", "from its due time to a delayed job's first line, idle worker", Target("<", 2)),
    "delayed.p99": Figure("ms", "the same, 1 of 100 is later", Target("<", 10)),
    "delayed.early": Figure("jobs", "delayed jobs that started too early", Target("<=", 0)),
    "delayed.flood": Figure("jobs/s", "20,000 jobs due at once, until all are done", Target(">", 20_000)),
    "delayed.flood_vs_drain": Figure("ratio", "delayed.flood to drain.one_client", Target(">=", 0.5)),
    "delayed.behind_flood_ms": Figure("ms", "delay of another client's job, due 10 ms after these", Target("<", 20)),
    "delayed.far_round_trips": Figure("per min", "a scheduler with 100,000 jobs due in a month", Target("<=", 15)),
    "delayed.far_cpu": Figure("s per min", "CPU of that scheduler", Target("<", 0.1)),
    "idle.round_trips": Figure("per min", "round trips of an idle worker to Redis", Target("<=", 12)),
    "idle.commands": Figure("per min", "commands in these round trips"),
    "idle.cpu": Figure("s per min", "CPU of supervisor and worker process", Target("<=", 0.05)),
    "idle.pss": Figure("MB", "memory of both, shared pages counted once", Target("<", 60)),
    "idle.rss": Figure("MB", "memory of both, shared pages counted twice"),
    "start.django_cpu": Figure("s", "CPU of a process that sets Django up"),
    "start.django_modules": Figure("modules", "that it has imported"),
    "start.rtq_cpu": Figure("s", "the same with the package installed, as a web process has it"),
    "start.rtq_modules": Figure("modules", "that it has imported"),
    "start.rtq_vs_django": Figure("ratio", "with the package to Django alone", Target("<=", 1.1)),
    "start.worker_cpu": Figure("s", "CPU of a worker until its first job starts", Target("<=", 0.35)),
    "start.worker_first_job": Figure("s", "until its first job starts", Target("<=", 0.4)),
    "start.pss_1": Figure("MB", "memory of a worker with one process that has run jobs", Target("<=", 54)),
    "start.pss_2": Figure("MB", "the same with two processes", Target("<=", 64)),
    "memory.waiting_job": Figure("bytes", "in Redis for a waiting noop(7, 42)", Target("<=", 300)),
    "scale.claim_small": Figure("µs", "claim() with the fewest jobs waiting"),
    "scale.claim_large": Figure("µs", "claim() with the most jobs waiting"),
    "scale.claim_clients": Figure("µs", "claim() with many clients waiting"),
    "scale.enqueue_small": Figure("µs", "enqueue() with the fewest jobs waiting"),
    "scale.enqueue_large": Figure("µs", "enqueue() with the most jobs waiting"),
    "scale.enqueue_clients": Figure("µs", "enqueue() with many clients waiting"),
    "scale.claim_spread": Figure("ratio", "claim(), slowest queue to fastest", Target("<=", 1.2)),
    "scale.enqueue_spread": Figure("ratio", "enqueue(), slowest queue to fastest", Target("<=", 1.2)),
    "workers.queue": Figure("µs", "CPU of Redis: the numbers of a queue of 8,000 workers", Target("<=", 500)),
    "workers.find": Figure("µs", "the same: a running job is looked up", Target("<=", 500)),
    "workers.cancel": Figure("µs", "the same: a running job is asked to stop", Target("<=", 500)),
    "workers.overview": Figure("µs", "the same: the overview, with all workers"),
    "workers.heartbeats_1": Figure(
        "%", "of a core of Redis: heartbeats of 1,000 supervisors, one queue", Target("<", 5)
    ),
    "workers.heartbeats_20": Figure("%", "the same with 20 queues", Target("<", 10)),
    "workers.heartbeat_commands_1": Figure("", "commands of Redis in such a heartbeat, one queue"),
    "workers.heartbeat_commands_20": Figure("", "the same with 20 queues"),
    "admin.overview": Figure("ms", "the data of the overview: 50 queues, one hour", Target("<", 50)),
    "admin.overview_day": Figure("ms", "their counters of 24 hours"),
    "admin.queued": Figure("ms", "a page of waiting jobs, from a million of 10,000 clients", Target("<", 50)),
    "admin.dead": Figure("ms", "a page of dead letters", Target("<", 50)),
    "admin.clients": Figure("ms", "the clients with most waiting jobs and most run time", Target("<", 50)),
    "admin.tasks": Figure("ms", "the metrics of all tasks for 24 hours", Target("<", 50)),
    "admin.groups": Figure("ms", "the newest 10,000 dead letters by task and error"),
    "admin.filter": Figure("ms", "search through 10,000 dead letters without a match"),
    **{
        f"admin.{name}_block": Figure("ms", f"longest command, which blocks the server: {name}", Target("<", 10))
        for name in ("overview", "overview_day", "queued", "dead", "clients", "tasks", "groups", "filter", "requeue")
    },
    "admin.requeue_ping": Figure("ms", "longest reply time of PING for another client meanwhile", Target("<", 10)),
    "admin.requeue_ping_baseline": Figure("ms", "the same on an idle server, during 3 s"),
    "admin.requeue": Figure("s", "requeue 50,000 dead letters, two thirds of them with a filter", Target("<", 10)),
    "admin.click": Figure(
        "s", "requeue 50,000 dead letters by one click, with a worker running and Django starting up", Target("<", 10)
    ),
    "admin.click_block": Figure("ms", "longest command, which blocks the server: click", Target("<", 10)),
    "admin.page_nothing": Figure("ms", "an empty page of the admin, for comparison"),
    **{
        name: figure
        for page, description in _PAGES.items()
        for name, figure in (
            (f"admin.page_{page}", Figure("ms", f"{description}, through all of Django", _ms_of(page))),
            (f"admin.page_{page}_total_cpu", Figure("ms", "CPU time of Python and Redis for that page")),
            (f"admin.page_{page}_from_redis", Figure("kB", "what Redis sends for that page", _from_redis_of(page))),
            (f"admin.page_{page}_trips", Figure("trips", "round trips to Redis for that page", _trips_of(page))),
            (f"admin.page_{page}_script", Figure("ms", "longest script of that page", Target("<", 5))),
            (f"admin.page_{page}_kb", Figure("kB", "size of a refresh of that page, uncompressed", _kb_of(page))),
        )
    },
    "fairness.last_place": Figure("start", "last of 10 jobs behind 20,000 of another", Target("<=", 30)),
    "fairness.last_place_busy": Figure("start", "the same while the worker is busy"),
    **LOADS,
}


@dataclass(slots=True)
class Readings:
    """The values measured so far: one value per figure and round."""

    rounds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    remarks: list[str] = field(default_factory=list)  # notes printed below the table

    def add(self, name: str, value: float) -> None:
        """Add the value of one round. Raises KeyError for a name that is not in FIGURES."""
        FIGURES[name]
        self.rounds[name].append(value)

    def ratio(self, name: str, part: str, whole: str) -> None:
        """Add the ratio of the last rounds of two figures: only values of one round are compared."""
        if self.rounds[part] and self.rounds[whole]:
            self.add(name, self.rounds[part][-1] / self.rounds[whole][-1])

    def remark(self, text: str) -> None:
        """Add a remark, once."""
        if text not in self.remarks:
            self.remarks.append(text)

    def median(self, name: str) -> float:
        """The median of its rounds."""
        return statistics.median(self.rounds[name])

    def verdict(self, name: str) -> bool | None:
        """Whether the target is met. None without a target."""
        target = FIGURES[name].target
        return None if target is None else target.is_met(self.median(name))

    def names(self) -> list[str]:
        """The measured figures, in the order of FIGURES."""
        return [name for name in FIGURES if self.rounds.get(name)]


def percentile(values: list[float], percent: int) -> float:
    """The value that so many percent do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]

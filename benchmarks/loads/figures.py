"""The figures of the loads."""

from __future__ import annotations

from benchmarks.figure import Figure, Target, rate

PAYLOADS = (1, 10, 100)  # kB
THREADS = (1, 10)  # producers
CLIENTS = (1, 1000, 10_000, 100_000)
QUEUES = {1: 30, 20: 35, 100: 50}  # number of queues -> target for the commands of a job


def _ordinary() -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    for ms in (1, 6, 20):
        targets = {"redis_cpu": Target("<=", 80), "commands": Target("<=", 30)} if ms == 6 else {}
        figures |= rate(f"ordinary.{ms}ms", f"jobs that sleep {ms} ms, one process", **targets)
        for n in (4, 16):
            figures |= rate(f"ordinary.{ms}ms_{n}_processes", f"{ms} ms, {n} processes")
            figures |= rate(f"ordinary.{ms}ms_{n}_threads", f"{ms} ms, {n} threads of one process")
    return figures | rate("ordinary.5ms_4x4", "5 ms, 4 processes with 4 threads", redis_cpu=Target("<=", 60))


def _producers() -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    for n in THREADS:
        for name, what in (("delay", "delay()"), ("rpush", "a bare RPUSH by redis-py")):
            figures |= rate(f"producers.{name}_{n}", f"{what}, threads: {n}")
            figures[f"producers.{name}_{n}_p50"] = Figure("ms", f"one call of {what}, threads: {n}")
            figures[f"producers.{name}_{n}_p99"] = Figure("ms", "the same, 1 of 100 takes longer")
        target = Target(">=", 0.9) if n == 1 else None
        figures[f"producers.vs_rpush_{n}"] = Figure("ratio", f"delay() to the bare RPUSH, threads: {n}", target)
    return figures


def _payloads() -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    for kb in PAYLOADS:
        what = f"payload of {kb} kB"
        target = Target(">=", 0.85) if kb == 100 else None
        figures |= rate(f"payload.in_{kb}kb", f"delay() with a {what}")
        figures |= rate(f"payload.push_{kb}kb", f"json.dumps and a bare RPUSH of a {what}")
        figures[f"payload.in_{kb}kb_vs_push"] = Figure("ratio", f"delay() to the bare RPUSH, {what}", target)
        figures |= rate(f"payload.out_{kb}kb", f"no-op jobs with a {what}, one process")
        figures[f"payload.pop_{kb}kb"] = Figure("jobs/s", f"a bare LPOP one by one, and json.loads, {what}")
        figures[f"payload.out_{kb}kb_vs_pop"] = Figure("ratio", f"the worker to the bare LPOP, {what}")
    return figures


def _queues() -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    for number, most in QUEUES.items():
        description = f"6 ms jobs in the first of {number} queues, one process"
        figures |= rate(f"queues.{number}", description, commands=Target("<=", most))
        figures[f"queues.latency_{number}"] = Figure("ms", f"latency of the last of {number} queues, idle worker")
    figures["queues.latency_100_vs_1"] = Figure("ratio", "the last of 100 queues to one", Target("<=", 1.2))
    return figures


def _databases() -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    for name, title in (("sqlite", "SQLite"), ("postgres", "PostgreSQL")):
        what = f"one SELECT, one UPDATE, {title}, 2 processes"
        figures |= rate(f"database.{name}", f"{what}, connections kept")
        figures |= rate(f"database.{name}_new", f"{what}, a new connection for each job")
        figures[f"database.{name}_new_vs_kept"] = Figure("ratio", f"new connections to kept ones, {title}")
    figures |= rate("database.postgres_pool", "the same with psycopg's pool")
    figures["database.postgres_pool_vs_kept"] = Figure("ratio", "the pool to kept connections, PostgreSQL")
    return figures


LOADS = {
    **_ordinary(),
    **rate("threads.2ms_16", "2 ms in 16 threads", share=Target(">=", 0.8)),
    **rate("threads.2ms_64", "2 ms in 64 threads"),
    **rate("threads.50ms_16", "50 ms in 16 threads", share=Target(">=", 0.978)),
    **rate("coroutines.50ms_500", "50 ms in 500 coroutines"),
    **rate("coroutines.2ms_100", "2 ms in 100 coroutines"),
    **_databases(),
    **rate("together.sqlite_single", "jobs with one INSERT of a row, SQLite, one process"),
    **rate("together.sqlite", "the same, up to 100 jobs in one call with one INSERT"),
    "together.sqlite_vs_single": Figure("ratio", "many jobs in one call to single ones, SQLite", Target(">=", 5)),
    **rate("together.postgres_single", "jobs with one INSERT of a row, PostgreSQL, one process"),
    **rate("together.postgres", "the same, up to 100 jobs in one call with one INSERT"),
    "together.postgres_vs_single": Figure("ratio", "many jobs in one call to single ones, PostgreSQL", Target(">=", 5)),
    "get.p50": Figure("ms", "delay() and get() of its result, one caller, idle worker"),
    "get.p99": Figure("ms", "the same, 1 of 100 takes longer"),
    "get.parts_p50": Figure("ms", "what it consists of: latency of a job, and a bare RPUSH for the way back"),
    "get.p50_vs_parts": Figure("ratio", "the first to the third", Target("<=", 1.5)),
    "get.caller_cpu": Figure("µs/job", "CPU of the caller"),
    "get.ten_callers": Figure("jobs/s", "calls of ten threads without pauses"),
    "transactions.bare": Figure("µs", "a transaction with one INSERT, PostgreSQL"),
    "transactions.outbox": Figure("µs", "the same with a job in the outbox"),
    "transactions.outbox_more": Figure("µs", "what the row of the outbox adds", Target("<=", 250)),
    **rate("transactions.job", "jobs with one INSERT in a transaction, PostgreSQL"),
    **rate("transactions.job_once", "the same with exactly_once"),
    "transactions.job_once_vs_job": Figure("ratio", "with exactly_once to without"),
    **rate("retries.once", "jobs that fail once and are retried at once, one process"),
    **_payloads(),
    **_queues(),
    **_producers(),
    **{
        name: figure
        for clients in CLIENTS
        for name, figure in rate(f"clients.{clients}", f"no-op jobs of {clients:,} clients, one process").items()
    },
    "clients.most_vs_one": Figure("ratio", "the most clients to one", Target(">=", 0.6)),
    **{
        figure: value
        for name, what in (("processes", "two processes"), ("threads", "8 threads of one process"))
        for figure, value in (
            (
                f"crashes.others_{name}",
                Figure("ratio", f"20,000 jobs beside 60 of another client that kill {what}", Target("<=", 2)),
            ),
            (f"crashes.others_{name}_again", Figure("ratio", "the same, each kills four times", Target("<=", 2))),
            (f"crashes.all_{name}", Figure("s", "until those are dead, too")),
        )
    },
    "crashes.cancel_p50": Figure("ms", "from cancel() of a running job until it has stopped"),
    "crashes.cancel_p99": Figure("ms", "the same, 1 of 100 is later", Target("<=", 50)),
    "weights.deviation": Figure("ratio", "largest error of shares by weights 1, 2, 5, 10", Target("<=", 0.02)),
    "weights.time_deviation": Figure(
        "ratio", "largest error of shares of time, jobs of 1, 5, 50 ms", Target("<=", 0.05)
    ),
    **rate("weights.none", "no-op jobs of 100 clients without weights, one process"),
    **rate("weights.drain", "the same with weights"),
    "weights.drain_vs_none": Figure("ratio", "with weights to without", Target(">=", 0.7)),
    "limits.rate": Figure("starts/s", "a queue with a rate of 1,000/s, four processes", Target(">=", 980)),
    "limits.late_p50": Figure("ms", "a start behind its time by a rate of 20/s, idle worker", Target("<", 2)),
    "limits.late_p99": Figure("ms", "the same, 1 of 100 is later", Target("<", 10)),
    "limits.start_p50": Figure("ms", "from delay() to the start of a job, of a client that may run one at a time"),
    "limits.place_p50": Figure("ms", "from the end of its job to the start of the next one"),
    "limits.place_vs_start": Figure(
        "ratio", "a start that waited for another job to one that did not", Target("<", 1.5)
    ),
    **rate("limits.none", "no-op jobs of 1,000 clients without limits, one process"),
    **rate("limits.drain", "the same with a limit and a rate for each client"),
    "limits.drain_vs_none": Figure("ratio", "with limits to without", Target(">=", 0.7)),
    "limits.claim_plain": Figure("µs", "claim() without limits, 10 clients"),
    "limits.claim": Figure("µs", "claim() with limits, 10 clients"),
    "limits.claim_vs_plain": Figure("ratio", "with limits to without", Target("<=", 1.4)),
    "limits.claim_blocked": Figure("µs", "the same beside 100,000 blocked clients"),
    "limits.claim_blocked_vs_none": Figure("ratio", "with blocked clients to without", Target("<=", 1.2)),
}

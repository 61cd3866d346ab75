"""The contenders: what is installed for them, how their workers are started, and what they lose on a kill."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

Commands = list[list[str]]  # the arguments of Python for each process that is started


class Contender(NamedTuple):
    """One queue. Its tasks are in benchmarks/rivals/<module>.py."""

    title: str
    packages: tuple[str, ...]  # for pip
    worker: Callable[[int, int], Commands]  # number of processes, and of jobs that run at once in each
    jobs: int  # no-op jobs for about two seconds of one process
    how: str  # the settings that matter
    on_kill: str  # what happens to the jobs of a worker that is killed
    settings: str = ""  # for Django
    variables: Mapping[str, str] = {}
    lacks: tuple[str, ...] = ()  # works it cannot do


#: Works with jobs after which a callback starts: not all queues have that.
GROUPS = ("group", "group_memory", "group_killed")


def _bare(processes: int, slots: int) -> Commands:
    return [["-m", "benchmarks.rivals.bare"]] * processes * slots


def _django_rtq(processes: int, slots: int) -> Commands:
    options = ["--processes", str(processes), "--concurrency", str(slots)]
    return [["-m", "django", "rtq_worker", "-v", "0", *options]]


def _celery(processes: int, slots: int) -> Commands:
    pool = ["-P", "threads", "-c", str(slots)] if slots > 1 else ["-P", "prefork", "-c", str(processes)]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "ERROR"]
    return [["-m", "celery", "-A", "benchmarks.rivals.celery", "worker", *pool, "--prefetch-multiplier", "64", *quiet]]


def _rq(processes: int, slots: int) -> Commands:
    options = ["-w", "rq.worker.SimpleWorker", "-S", "json", "-q", "-c", "benchmarks.rivals.rq_settings"]
    return [["-m", "rq.cli", "worker", *options]] * processes * slots


def _huey(processes: int, slots: int) -> Commands:
    kind = ["-k", "thread", "-w", str(slots)] if slots > 1 else ["-k", "process", "-w", str(processes)]
    return [["-m", "huey.bin.huey_consumer", "benchmarks.rivals.huey.huey", *kind, "-q"]]


def _dramatiq(processes: int, slots: int) -> Commands:
    options = ["-p", str(processes), "-t", str(slots), "--skip-logging"]
    return [["-m", "dramatiq", "benchmarks.rivals.dramatiq", *options]]


def _vtasks(processes: int, slots: int) -> Commands:
    return [["-m", "django", "runworker", "--concurrency", str(slots)]] * processes


def _tasks_redis(processes: int, slots: int) -> Commands:
    return [["-m", "django", "run_redis_tasks", "--continuous"]] * processes


def _repid(processes: int, slots: int) -> Commands:
    slots = max(2, slots)  # with 1 it stops after the first messages
    return [["-m", "benchmarks.rivals.repid", str(slots)]] * processes


CONTENDERS = {
    "bare": Contender(
        "bare redis-py",
        ("redis", "hiredis"),
        _bare,
        20_000,
        "`RPUSH`, `BLPOP` and a call: no queue, for comparison",
        "the running job is lost",
        lacks=("nap_16", "database", *GROUPS),
    ),
    "django_rtq": Contender(
        "django_rtq",
        ("--editable", "."),
        _django_rtq,
        100_000,
        "defaults, `result_ttl=0` but for results that are waited for",
        "nothing is lost: the supervisor queues the jobs of a killed process at once, another machine after 15 s",
        settings="benchmarks.rivals.rtq_settings",
    ),
    "celery": Contender(
        "Celery",
        ("celery[redis]", "hiredis"),
        _celery,
        3000,
        "prefork (threads for 16 at once), JSON, `acks_late`, `reject_on_worker_lost`, prefetch multiplier 64, "
        "without gossip, mingle, heartbeat and events, `ignore_result`",
        "a killed process: its job runs again; a killed worker: after the visibility timeout, an hour by default. "
        "Without `acks_late`, its default, the running job is lost",
    ),
    "rq": Contender(
        "RQ",
        ("rq", "hiredis"),
        _rq,
        1500,
        "`SimpleWorker`, which does not fork for each job, JSON, `result_ttl=0`",
        "the running job is put into the registry of failed jobs some minutes later; it runs again if it has retries",
        lacks=("nap_16",),
    ),
    "huey": Contender(
        "huey",
        ("huey", "redis", "hiredis"),
        _huey,
        8000,
        "`RedisHuey`, processes (threads for 16 at once), pickle, `notify_result`",
        "the running job is lost",
    ),
    "dramatiq": Contender(
        "dramatiq",
        ("dramatiq[redis]", "hiredis"),
        _dramatiq,
        8000,
        "`dramatiq_queue_prefetch=64`, JSON, results only where they are waited for",
        "nothing is lost: other workers take over the jobs after 60 s",
        variables={"dramatiq_queue_prefetch": "64"},
    ),
    "vtasks": Contender(
        "django-vtasks",
        ("django-vtasks[valkey]", "hiredis"),
        _vtasks,
        8000,
        "coroutines, its Rust driver, `VTASKS_MAX_RESCUES=3`; no-op jobs 20 at once, its default",
        "a worker of the same host name queues the jobs again after some seconds; by default "
        "(`VTASKS_MAX_RESCUES` is 0) they are dead",
        settings="benchmarks.rivals.vtasks_settings",
        lacks=("retries", "get", *GROUPS),  # there are no retries, and results are not kept
    ),
    "tasks_redis": Contender(
        "django-tasks-redis",
        ("django-tasks-redis", "hiredis"),
        _tasks_redis,
        1500,
        "`--continuous`; results are always kept, and asked for every ms",
        "other workers take over the job after 300 s, also while it still runs: the time is not renewed",
        settings="benchmarks.rivals.tasks_redis_settings",
        lacks=("nap_16", "retries", *GROUPS),  # one job at a time; there are no retries
    ),
    "repid": Contender(
        "repid",
        ("repid[redis]", "typing_extensions", "hiredis"),
        _repid,
        20_000,
        "coroutines, streams, `batch_size=100`, `claim_interval=10`; 1,000 jobs at once, its default. With a limit of "
        "1 it stops after the first jobs (2.1.4), so jobs one at a time are not measured",
        "other workers take over the jobs after 60 s; by default (`claim_interval` is 0) nobody does",
        lacks=(
            "nap",
            "get",
            "database",
            *GROUPS,
        ),  # see above; there are no results; functions run in threads without a limit
    ),
}
DATABASE_PACKAGES = ("django", "psycopg[binary]")  # installed for all: some jobs use a database
SLOTS = {"vtasks": 20, "repid": 1000}  # coroutines are their way to be fast; the others run one short job at a time

"""How an app joins in with the core: by a row in django_rtq/extensions.py.

The core asks for parts by their names, and knows no app.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from django_rtq.exceptions import ConfigurationError


class Chore(NamedTuple):
    """What an app does with each heartbeat of a supervisor. What fails is logged, and stops nothing else."""

    name: str
    do: Callable[[list[Any], float], object]  # replies to `reads`, until which time.monotonic(); True: it goes on soon
    reads: Sequence[Any] = ()  # the commands that read what it has to know
    info: Callable[[], Mapping[str, Any]] = dict  # what people see of the workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """What an app brings. Each part is a module, or "module:name": a process loads what it uses."""

    argument_kinds: str = ""  # a class of values that arguments may be: see add_kind() of core/jobs/serializer.py
    at_start: str = ""  # (backend) -> None: before a worker or a scheduler starts
    batches: str = ""  # CallGatherer and CallRunner put together and run the jobs that one call of a function gets
    broker_in_tests: str = ""  # (RTQ["TEST"]) -> Broker: what takes its place
    check_incidents: str = ""  # (value of RTQ["INCIDENTS"]) -> None: raises ConfigurationError
    check_tables: str = ""  # (**options of a check) -> list[CheckMessage]: about tables that are missing
    chores: str = ""  # (WorkerBroker, queues) -> list[Chore]
    duties: str = ""  # likewise, before promotion and repairs: what limits rest on
    email_check: str = ""  # () -> None: raises what is wrong with RTQ["EMAIL"]
    exactly_once: str = ""  # runs functions in a transaction that also commits the id of their job
    forgetting: str = ""  # of a scheduler: (Broker, queues) -> Callable[[], bool]; False: there is more to do
    incident_watcher: str = ""  # (Broker) -> Loop: of a scheduler, if a receiver is connected
    internal_task: str = ""  # a Task of internal_task() in core/tasks/decorator.py
    job_logs: str = ""  # (Config, send) -> what keeps what jobs log, and gives it to the session with outcomes
    limit_kinds: str = ""  # the LimitKind of each limit, by name
    limits: str = ""  # (RedisClient, Keys, Config) -> LimitStore, for queues with limits
    other_queues: str = ""  # names and options of other packages, and what to write instead of them
    outbox: str = ""  # the rows of jobs that are committed and not known to be in Redis yet: RTQ["OUTBOX"]
    placement: str = ""  # in which shards jobs go, and what each shard has of its own: RTQ["SHARDS"]
    relay: str = ""  # (Broker, alias) -> Loop: of a scheduler, if there is an outbox
    requeue: str = ""  # (Broker, queue, ids) -> the ids of those that were dead, and are queued again
    run_metrics: str = ""  # (dump) -> what counts runs: see make_metrics() in core/worker/run.py
    run_part: str = ""  # () -> what has to do with one run: see workflows/run_part.py
    schedules: str = ""  # () -> list[ScheduledTask]: that the app declares itself
    send_event: str = ""  # (Broker, id, queue, event, value, token) -> Steps[str]: gives a job an event
    server_problems: str = ""  # (the reply to INFO) -> Iterator[str]: what endangers jobs in this Redis, in words
    servers: str = ""  # several servers in RTQ["REDIS"]: of a Cluster, or behind Sentinels
    #: Adds commands behind the calls that settle jobs: (Broker, settlements by queue, calls, commands) -> None, or what
    #: takes all replies, and returns what follows: () -> whether jobs were enqueued.
    settling: str = ""
    shards_broker: str = ""  # (Config) -> Broker of producers, with RTQ["SHARDS"]
    supervisors: str = ""  # (places, what runs one, health file) -> exit code of rtq_worker for several places
    task_backends: str = ""  # those in TASKS, of django.tasks
    waiting_reason: str = ""  # (Broker, JobDetails) -> Steps[str]: why a job waits, for people
    workflows: str = ""  # the workflows of a Redis: what it keeps of them, and who has to hear of them


@cache
def parts(name: str) -> tuple[Any, ...]:
    """What the apps bring of this part, in the order of django_rtq/extensions.py."""
    paths = (getattr(extension, name) for extension in import_module("django_rtq.extensions").EXTENSIONS)
    found = ((import_module(module), inside) for module, _, inside in (path.partition(":") for path in paths if path))
    return tuple(getattr(module, inside) if inside else module for module, inside in found)


def required(name: str) -> Any:
    """What one app brings of this part, for what is not possible without it. Raises ConfigurationError."""
    for brought in parts(name):
        return brought
    raise ConfigurationError(f"No app in django_rtq/extensions.py brings the part {name!r}, which this needs.")


def no_attribute(owner: object, path: str, name: str) -> AttributeError:
    """The error about an attribute that an object of users does not have."""
    for other_queues in parts("other_queues"):
        error: AttributeError = other_queues.no_attribute(owner, path, name)
        return error
    return AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}", name=name, obj=owner)

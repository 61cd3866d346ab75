"""The start of rtq_worker and rtq_scheduler: queue names, signals, server checks, schedules and logs."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from typing import Any, NoReturn

from django.core.management.base import CommandError
from django.db import connections

from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.brokers import open_broker
from django_rtq.core.broker.server_info import ask_server
from django_rtq.core.broker.task_backends import place_of, places, shard_of
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.commands.command import WRONG_USAGE, one_line
from django_rtq.core.conf.config import get_config
from django_rtq.core.conf.queue_options import check_queue_name
from django_rtq.core.extension import parts
from django_rtq.core.tasks.registry import declared_queues
from django_rtq.core.validation import did_you_mean
from django_rtq.core.worker.operating_system import stop_signals
from django_rtq.core.worker.options import WorkerOptions
from django_rtq.exceptions import BrokerError, BrokerRefused, BrokerUnavailable, InvalidTask

logger = logging.getLogger("django_rtq")

PSYCOPG_POOL_SIZE = 4  # unless its options say it
WILDCARDS = "*?["  # "[" only to be refused with the others


def run_supervisor(options: dict[str, Any]) -> int:
    """Run the worker of one Redis until it is stopped, and return its exit code."""
    from django_rtq.core.worker.supervisor.supervisor import Supervisor  # rtq_scheduler has none

    with exit_on_signals():
        broker = open_broker(options["backend"], role="supervisor")
        queues = queue_names(options["queues"], broker.backend)
        worker_options = WorkerOptions(
            queues=queues,
            processes=options["processes"],
            concurrency=options["concurrency"],
            burst=options["burst"],
            max_jobs=options["max_jobs"],
            name=options["name"],
            drain_seconds=options["drain_seconds"],
            shuffle=options["shuffle"],
            scheduler=not options["no_scheduler"],
            backend=broker.backend,
            health_file=options["health_file"],
        )
        show_logs(options["verbosity"])
        check_server(broker)
        warn_about_small_pools(options["concurrency"])
        warn_about_unknown_queues(queues, broker.backend)
        if not broker.backend:
            tell_other_places()
        if options["queues"] is None:
            warn_about_unserved_queues(broker, queues)
        if worker_options.scheduler:
            start_apps(broker.backend)
        code = Supervisor(broker, worker_options).run()
        broker.close()
        return code


def queue_names(text: str | None, backend: str = "") -> list[str]:
    """Read a list of names and patterns with commas, without duplicates. Raises CommandError.

    None: the default queue, or all declared queues of a backend in TASKS with a Redis of its own. A pattern stands for
    the declared queues that match, in alphabetical order.
    """
    if text is None:
        is_of_backend = place_of(backend) and shard_of(backend) is None
        return (declared_queues(backend) if is_of_backend else []) or [get_config().default_queue]
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise CommandError("--queues is empty: name at least one queue.", returncode=WRONG_USAGE)
    try:
        queues = [queue for name in names for queue in _matching(name, backend)]
    except InvalidTask as error:
        raise CommandError(str(error), returncode=WRONG_USAGE) from error
    return list(dict.fromkeys(queues))


def _matching(name: str, backend: str) -> list[str]:
    if not set(name) & set(WILDCARDS):
        check_queue_name(name)
        return [name]
    declared = declared_queues(backend)
    matching = [queue for queue in declared if fnmatchcase(queue, name)] if "[" not in name else []
    if not matching:
        raise CommandError(
            f"No declared queue matches {one_line(repr(name), 100)}. Tasks and settings declare {', '.join(declared)}.",
            returncode=WRONG_USAGE,
        )
    return matching


@contextmanager
def exit_on_signals() -> Iterator[None]:
    """Until the worker has started, stop signals exit at once with code 0: no job is running yet."""

    def exit_now(signum: int, frame: object) -> NoReturn:
        sys.exit(0)

    before = {signum: signal.signal(signum, exit_now) for signum in stop_signals()}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def warn_about_unknown_queues(names: Iterable[str], backend: str = "") -> None:
    """Warn about queues that no task and no setting names: likely a typo. They are served nevertheless."""
    known = declared_queues(backend)
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            logger.warning('queue %s is neither used by a task nor named in RTQ["QUEUES"].%s', name, hint)


def warn_about_unserved_queues(broker: WorkerBroker, own: Iterable[str]) -> None:
    """Warn about declared queues that neither this worker nor another one serves at this moment."""
    try:
        others = [name for name in declared_queues(broker.backend) if name not in own]
        left = broker.without_worker(others) if others else []
    except BrokerError:
        return  # the worker will wait for Redis
    if left:
        names = ",".join(left)
        logger.warning(
            "no worker serves %s %s: add --queues '*' to this one, or start another one with --queues %s",
            "queue" if len(left) == 1 else "queues", names, names,
        )  # fmt: skip


def warn_about_small_pools(slots: int) -> None:
    """Warn about pools of psycopg that have fewer connections than a process has slots."""
    for alias, settings in connections.settings.items():
        pool = settings.get("OPTIONS", {}).get("pool")
        options = pool if isinstance(pool, Mapping) else {}
        size = options.get("max_size") or options.get("min_size", PSYCOPG_POOL_SIZE)
        if pool and size < slots:
            logger.warning(
                "the pool of the database %s has %d connections for %d concurrent jobs of a process: a job that gets "
                'none waits for up to 30 s, and fails. Set OPTIONS["pool"] to {"max_size": %d}.',
                alias, size, slots, slots,
            )  # fmt: skip


def tell_other_places() -> None:
    """Log which backends in TASKS have a Redis of their own, which this worker does not serve."""
    if others := [place for place in places() if place and shard_of(place) is None]:
        logger.info(
            "this worker does not serve the Redis of %s in TASKS: start one with rtq_worker --backend %s",
            ", ".join(others), others[0],
        )  # fmt: skip


def check_server(broker: Broker) -> None:
    """Log warnings about the server. An unreachable server is no error: the worker will wait for it.

    Raises BrokerError or ConfigurationError for errors that waiting does not fix: wrong credentials, database number or
    certificate, missing permissions, a Redis Cluster.
    """
    try:
        problems = ask_server(broker.redis, broker.keys)
    except BrokerRefused:
        raise
    except BrokerUnavailable:
        return
    for problem in problems:
        logger.warning("%s", problem)


def start_apps(backend: str) -> None:
    """What apps do before a worker or a scheduler starts."""
    for start in parts("at_start"):
        start(backend)


def show_logs(verbosity: int) -> None:
    """Log to stderr if the project does not configure this logger. Else it decides, but for what -v 2 asks for."""
    if verbosity == 0:
        return
    is_configured = logger.hasHandlers()
    if not is_configured:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        logger.addHandler(handler)
    if verbosity > 1 or not is_configured:
        logger.setLevel(logging.DEBUG if verbosity > 1 else logging.INFO)
    if not logger.isEnabledFor(logging.INFO):
        level = logging.getLevelName(logger.getEffectiveLevel())
        with suppress(AttributeError):  # a daemon may have no stderr
            sys.stderr.write(f'starting: LOGGING has the logger "django_rtq" at {level}; -v 2 shows more than that.\n')

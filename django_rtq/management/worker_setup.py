"""The start of rtq_worker and rtq_scheduler: queue names, signals, server checks, schedules and logs."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import DatabaseError, connections

from django_rtq.broker.broker import Broker, get_broker
from django_rtq.conf import check_queue_name, get_config
from django_rtq.exceptions import BrokerError, BrokerRefused, BrokerUnavailable, InvalidTask
from django_rtq.inspector.server_info import ask_server, problems_of
from django_rtq.management.command import WRONG_USAGE
from django_rtq.models import sync_schedules
from django_rtq.tasks import registry
from django_rtq.validation import did_you_mean
from django_rtq.worker.supervisor.wakeup import stop_signals

logger = logging.getLogger("django_rtq")


def queue_names(text: str) -> list[str]:
    """Read a list of names with commas, without duplicates. Raises CommandError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise CommandError("--queues is empty: name at least one queue.", returncode=WRONG_USAGE)
    try:
        for name in names:
            check_queue_name(name)
    except InvalidTask as error:
        raise CommandError(str(error), returncode=WRONG_USAGE) from error
    return list(dict.fromkeys(names))


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


def warn_about_unknown_queues(names: Iterable[str]) -> None:
    """Warn about queues that no task and no setting names: likely a typo. They are served nevertheless."""
    config = get_config()
    known = {config.default_queue, *config.queues, *(task.queue for task in registry.all_tasks().values())}
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            logger.warning('queue %s is neither used by a task nor named in RTQ["QUEUES"].%s', name, hint)


def check_server(broker: Broker) -> None:
    """Log warnings about the server. An unreachable server is no error: the worker will wait for it.

    Raises BrokerError or ConfigurationError for errors that waiting does not fix: wrong credentials, database number or
    certificate, missing permissions, a Redis Cluster.
    """
    try:
        server = ask_server(broker.redis)
    except BrokerRefused:
        raise
    except BrokerUnavailable:
        return
    for _, problem in problems_of(server):
        logger.warning("%s", problem)


def copy_schedules() -> None:
    """Copy the schedules from the database to Redis before the schedulers start, which do not use the database.

    Errors are only logged: running jobs must not need a database. All connections are closed afterwards.
    """
    try:
        sync_schedules()
    except (DatabaseError, ImproperlyConfigured, BrokerError) as error:
        logger.info("could not copy the schedules from the database to Redis: %s", error)
    finally:
        connections.close_all()
        get_broker().close()


def show_logs(verbosity: int) -> None:
    """Log to stderr if the project does not configure this logger."""
    if verbosity == 0 or logger.hasHandlers():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbosity > 1 else logging.INFO)

"""What rtq_worker and rtq_scheduler have in common: their queues, where their log lines go, and schedules."""

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
from django_rtq.broker.keys import check_queue_name
from django_rtq.broker.redis.server_info import ask_server, problems_of
from django_rtq.conf import get_config
from django_rtq.exceptions import BrokerError, BrokerRefused, BrokerUnavailable, InvalidTask
from django_rtq.management.command import WRONG_USAGE
from django_rtq.models import mirror_schedules
from django_rtq.tasks import registry
from django_rtq.validation import did_you_mean
from django_rtq.worker.supervisor.wakeup import stop_signals

logger = logging.getLogger("django_rtq")


def queue_names(text: str) -> list[str]:
    """The names of a list with commas, each once. Raises CommandError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise CommandError("--queues names no queue.", returncode=WRONG_USAGE)
    try:
        for name in names:
            check_queue_name(name)
    except InvalidTask as error:
        raise CommandError(str(error), returncode=WRONG_USAGE) from error
    return list(dict.fromkeys(names))


@contextmanager
def ending_at_signals() -> Iterator[None]:
    """A signal that stops a worker ends it at once, with exit code 0: nothing runs yet that would have to finish."""

    def leave(signum: int, frame: object) -> NoReturn:
        sys.exit(0)

    before = {signum: signal.signal(signum, leave) for signum in stop_signals()}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def doubt_queues(names: Iterable[str]) -> None:
    """Say which of these nothing in the project names: that is likely a slip. They are served all the same."""
    config = get_config()
    known = {config.default_queue, *config.queues, *(task.queue for task in registry.all_tasks().values())}
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            logger.warning('queue %s: no task has it, and RTQ["QUEUES"] does not name it.%s', name, hint)


def meet_server(broker: Broker) -> None:
    """Log what endangers jobs on the server. A server that is away is waited for later.

    Raises BrokerError or ConfigurationError for what waiting does not cure: wrong credentials, database number or
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


def bring_schedules() -> None:
    """Bring the schedules of the database to Redis before schedulers start, which have no database.

    As well as it goes: who runs jobs must not need a database for that. Nothing is left open.
    """
    try:
        mirror_schedules()
    except (DatabaseError, ImproperlyConfigured, BrokerError) as error:
        logger.info("the schedules of the database were not brought to Redis: %s", error)
    finally:
        connections.close_all()
        get_broker().close()


def show_logs(verbosity: int) -> None:
    """Where a project says nothing of our logger, people are told what happens all the same."""
    if verbosity == 0 or logger.hasHandlers():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbosity > 1 else logging.INFO)

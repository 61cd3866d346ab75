"""manage.py rtq_scheduler: enqueue due jobs, without running any."""

from __future__ import annotations

import logging
import signal
from typing import Any

from django.core.management.base import CommandParser

from django_rtq.core import logs
from django_rtq.core.broker.brokers import open_broker
from django_rtq.core.commands.command import QUEUES, RTQCommand
from django_rtq.core.commands.worker_setup import (
    check_server,
    exit_on_signals,
    queue_names,
    show_logs,
    start_apps,
    warn_about_unknown_queues,
)
from django_rtq.core.scheduler.scheduler import scheduler_loops
from django_rtq.core.threads import Loop, stop_all
from django_rtq.core.worker.operating_system import stop_signals
from django_rtq.core.worker.supervisor.heartbeat import Heartbeat

logger = logging.getLogger("django_rtq")


class Command(RTQCommand):
    """Runs the loops that every rtq_worker runs as well, but no jobs."""

    help = (
        "Enqueue delayed jobs and retries when they are due, reclaim jobs of dead workers, and delete expired data. "
        "Every rtq_worker does this too, except with --no-scheduler; any number may run at once. "
        "Stops on Ctrl-C, SIGTERM or SIGHUP with exit code 0."
    )

    backend_help = "Schedule the jobs in the Redis of this backend in TASKS, by default of all its declared queues."

    def add_arguments(self, parser: CommandParser) -> None:
        QUEUES.but(help="the queues to schedule, or patterns (default: the default queue)").add_to(parser)

    @exit_on_signals()
    def handle(self, *args: Any, **options: Any) -> None:
        """Run until stopped."""
        brokers = [open_broker(place, role="scheduler") for place in self.places(options)]
        queues = queue_names(options["queues"], brokers[0].backend)
        show_logs(options["verbosity"])
        loops: list[Loop] = []
        for broker in brokers:
            check_server(broker)
            warn_about_unknown_queues(queues, broker.backend)
            start_apps(broker.backend)
        logs.connect()
        for broker in brokers:
            loops += [Heartbeat(broker, queues, lambda: [], promotes=True), *scheduler_loops(broker, queues)]
        # Blocked before the threads start, so that this thread gets the signal. Ignored signals (nohup) stay ignored.
        stopping = stop_signals()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, stopping)
        try:
            logger.info("scheduler starts: queues %s", ", ".join(queues))
            for loop in loops:
                loop.start()
            signal.sigwait(stopping)
        finally:
            stop_all(loops)
            for broker in brokers:
                broker.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            logger.info("scheduler has stopped")

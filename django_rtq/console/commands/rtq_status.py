"""manage.py rtq_status: show queues and workers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from time import sleep
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.translation import override

from django_rtq.console.commands.command import JSON, NO_WORKER, ConsoleCommand
from django_rtq.console.commands.prompts import known_queues
from django_rtq.console.inspector.details import QueueDetails, RunningJob, WorkerDetails
from django_rtq.console.inspector.inspector import get_inspector
from django_rtq.console.inspector.queues import unserved
from django_rtq.console.output import Column, as_json, count, duration, facts
from django_rtq.core.broker.server_info import problems_of
from django_rtq.core.commands.command import QUEUES, WRONG_USAGE, one_line, seconds_from
from django_rtq.core.conf.config import get_config
from django_rtq.core.tasks.registry import declared_queues
from django_rtq.databases.outbox import MOST_COUNTED, OutboxLag, outbox_lag
from django_rtq.exceptions import BrokerUnavailable

WATCH_SECONDS = 2.0
CLEAR_SCREEN = "\x1b[H\x1b[2J"


def _activity(worker: WorkerDetails) -> str:
    if worker.crash_loop:
        return f"waits: its processes crash before they run a job ({one_line(worker.crash_loop, 80)})"
    return f"{_runs(worker.running)} (quiet)" if worker.is_quiet else _runs(worker.running)


def _runs(running: Sequence[RunningJob]) -> str:
    if not running:
        return "-"
    longest = max(running, key=lambda job: job.seconds)
    text = f"{one_line(longest.task or longest.id, 80)} for {duration(longest.seconds)}"
    if longest.attempt > 1:
        text += f", attempt {longest.attempt}"
    if longest.progress is not None:
        text += f", {one_line(longest.progress, 60)}"
    if longest.is_stopping:
        text += ", asked to stop"
    return text if len(running) == 1 else f"{count(len(running), 'job')}, longest {text}"


QUEUE_COLUMNS = [
    Column("QUEUE", lambda queue: queue.name),
    Column("STATE", lambda queue: "paused" if queue.paused else "open"),
    Column("QUEUED", lambda queue: queue.queued, right=True),
    Column("SCHEDULED", lambda queue: queue.scheduled, right=True),
    Column("RETRYING", lambda queue: queue.retrying, right=True),
    Column("RUNNING", lambda queue: queue.running, right=True),
    Column("DEAD", lambda queue: queue.dead, right=True),
    Column("OLDEST", lambda queue: duration(queue.oldest_seconds), right=True),
    Column("CLIENTS", lambda queue: queue.clients, right=True),
]
WORKER_COLUMNS = [
    Column("WORKER", lambda worker: worker.name),
    Column("HOST", lambda worker: worker.host or "-"),
    Column("PID", lambda worker: str(worker.pid or "-"), right=True),
    Column("QUEUES", lambda worker: ",".join(worker.queues) or "-"),
    Column("LAST SEEN", lambda worker: duration(worker.last_seen_seconds), right=True),
    Column("DONE", lambda worker: worker.jobs_done, right=True),
    Column("RUNS", _activity),
]
# What JSON has of a running job, a worker and the server.
RUNNING = ("id", "queue", "task", "client", "attempt", "seconds", "progress", "is_stopping")
WORKER = (
    *("name", "host", "pid", "queues", "last_seen_seconds", "jobs_done"),
    *("supervisor_name", "is_quiet", "crash_loop"),
)
SERVER = (
    *("name", "version", "used_memory", "max_memory", "eviction_policy", "connections", "max_connections"),
    "warnings",
)
NO_QUEUE = "No queue has been used yet. Call .delay() on a task, or start a worker:  python manage.py rtq_worker"
NO_WORKER_NOW = (
    "No worker process is signed on at this moment. A worker or scheduler was there {} ago: its processes may be "
    "restarting. If not, start one:  python manage.py rtq_worker"
)


class Command(ConsoleCommand):
    help = "Show the queues with their numbers of jobs and the age of the oldest job, and the workers."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = "Exit codes: 0 done; 1 Redis did not answer, or a queue is unknown; 64 wrong usage."
        JSON.add_to(parser)
        parser.add_argument(
            "--watch",
            nargs="?",
            type=seconds_from(0.1, 86_400),
            const=WATCH_SECONDS,
            metavar="SECONDS",
            help=f"Refresh until Ctrl-C (default: every {WATCH_SECONDS:.0f} seconds).",
        )
        QUEUES.but(help="Only these queues and their workers (default: all).").add_to(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        names = _split(options["queues"])
        if options["watch"] is None:
            self.stdout.write(self._render(names, json=options["json"]))
            return
        try:
            self._watch(names, json=options["json"], seconds=options["watch"])
        except KeyboardInterrupt:
            # The normal way to end it.
            return

    def _watch(self, names: list[str] | None, *, json: bool, seconds: float) -> None:
        text = self._render(names, json=json)  # errors at the start are not retried
        while True:
            if json:
                self.stdout.write(text)
            elif self.stdout.isatty():
                self.stdout.write(f"{CLEAR_SCREEN}{text}\n\nEvery {seconds:g} s; stop with Ctrl-C.")
            else:
                self.stdout.write(f"{text}\n")
            self.stdout.flush()
            sleep(seconds)
            text = self._next_render(names, json=json)

    def _next_render(self, names: list[str] | None, *, json: bool) -> str:
        # Keep watching while Redis is unreachable, until it is back.
        while True:
            try:
                return self._render(names, json=json)
            except BrokerUnavailable as error:
                self.stderr.write(one_line(error))
                sleep(WATCH_SECONDS)

    def _render(self, names: list[str] | None, *, json: bool) -> str:
        try:
            return self._read(names, json=json)
        except BrokerUnavailable:
            if text := _outbox_text(outbox_lag()):
                self.stderr.write(text)
            raise

    def _read(self, names: list[str] | None, *, json: bool) -> str:
        inspector = get_inspector()
        queues = inspector.queues.names() if names is None else known_queues(inspector, names)
        overview, workers, server = inspector.queues.details(queues), inspector.workers(queues), inspector.server()
        if json:
            shown = {"queues": [asdict(queue) for queue in overview], "workers": list(map(_worker, workers))}
            lag, unserved = outbox_lag(), _unserved(names, overview, workers)
            outbox = asdict(lag) if lag else None
            return as_json({**shown, "unserved": unserved, "outbox": outbox, "server": facts(server, SERVER)})
        problems = "\n".join(self.style.WARNING(f"Warning: {problem}") for _, problem in problems_of(server))
        return "\n\n".join(
            filter(
                None,
                [
                    self._queue_text(overview),
                    self._pause_text(overview),
                    self._worker_text(workers, overview),
                    self._unserved_text(_unserved(names, overview, workers) if workers else []),
                    _outbox_text(outbox_lag()),
                    problems,
                    *_clock_text(overview),
                ],
            )
        )

    def _queue_text(self, queues: Sequence[QueueDetails]) -> str:
        return self.table_text(QUEUE_COLUMNS, queues) if queues else NO_QUEUE

    def _pause_text(self, queues: Sequence[QueueDetails]) -> str:
        with override(None):
            lines = [
                f"Task {one_line(pause.task, 80)} in queue {queue.name}: {one_line(pause.text, 80)}. "
                f"{count(pause.held, 'job')} held."
                for queue in queues
                for pause in queue.paused_tasks
                if not pause.is_over
            ]
        return self.style.WARNING("\n".join(lines)) if lines else ""

    def _worker_text(self, workers: Sequence[WorkerDetails], queues: Sequence[QueueDetails]) -> str:
        if workers:
            return self.table_text(WORKER_COLUMNS, workers)
        contact = min((q.contact_seconds for q in queues if q.contact_seconds is not None), default=math.inf)
        return NO_WORKER_NOW.format(duration(contact)) if contact < get_config().lease_seconds else NO_WORKER

    def _unserved_text(self, names: Sequence[str]) -> str:
        if not names:
            return ""
        command = f"python manage.py rtq_worker --queues {','.join(names)}"
        text = f"No worker serves {'queue' if len(names) == 1 else 'queues'} {', '.join(names)}. Start one:  {command}"
        return self.style.WARNING(text)


def _outbox_text(lag: OutboxLag | None) -> str:
    if lag is None:
        return ""
    if lag.error:
        return f"Outbox: the database did not answer: {one_line(lag.error)}"
    if not lag.jobs:
        return "Outbox: empty"
    more = " or more" if lag.jobs == MOST_COUNTED else ""
    why = f": {one_line(lag.oldest_error)}" if lag.oldest_error else ""
    return f"Outbox: {count(lag.jobs, 'job')}{more}, the oldest for {duration(lag.oldest_seconds)}{why}"


def _unserved(names: list[str] | None, queues: Sequence[QueueDetails], workers: Sequence[WorkerDetails]) -> list[str]:
    """Queues without a worker: those that are declared, and others in which jobs wait."""
    waiting = {queue.name for queue in queues if queue.queued or queue.scheduled or queue.retrying}
    found = unserved(sorted({*declared_queues(), *waiting}), workers)
    return [name for name in found if names is None or name in names]


def _clock_text(queues: Sequence[QueueDetails]) -> Iterator[str]:
    behind = max((queue.clock_behind_seconds for queue in queues), default=0.0)
    if behind >= 1:
        yield (
            f"The clock of the Redis server was put back and is {duration(behind)} behind. Until it has caught up, "
            "jobs go by a time that runs a tenth more slowly."
        )


def _split(text: str | None) -> list[str] | None:
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise CommandError("--queues is empty: write for example --queues high,default", returncode=WRONG_USAGE)
    return names


def _worker(worker: WorkerDetails) -> dict[str, Any]:
    running = [{name: value for name, value in asdict(job).items() if name in RUNNING} for job in worker.running]
    return {**facts(worker, WORKER), "running": running}

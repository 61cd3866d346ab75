"""manage.py rtq: the queues, the workers and what is wrong, for people and programs, and as exit codes."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from operator import attrgetter, itemgetter
from time import sleep
from typing import Any

from django.core.management import get_commands, load_command_class
from django.core.management.base import CommandError, CommandParser

from django_rtq.console.commands.command import JSON, NO_WORKER, ConsoleCommand
from django_rtq.console.commands.prompts import known_queues
from django_rtq.console.incidents import Incident, look, worst_of
from django_rtq.console.output import as_json, count, duration, facts
from django_rtq.console.reading.details import RunningJob, WorkerDetails
from django_rtq.console.render.column import NUMBER, Column
from django_rtq.console.render.terminal import columns
from django_rtq.console.subjects.queues import QUEUES
from django_rtq.console.subjects.workers import WORKERS
from django_rtq.core.commands.command import QUEUES as QUEUES_OPTION
from django_rtq.core.commands.command import WRONG_USAGE, Options, one_line, seconds_from
from django_rtq.databases.clocks import utc_now
from django_rtq.databases.outbox import MOST_COUNTED, OutboxLag, outbox_lag, sum_of_lags
from django_rtq.exceptions import BrokerError, BrokerUnavailable

CODES = {"ok": 0, "warning": 1, "critical": 2}  # of --check
WATCH_SECONDS = 2.0
CLEAR_SCREEN = "\x1b[H\x1b[2J"
MOST_INCIDENTS = 5
NO_QUEUE = "No queue has been used yet. Call .delay() on a task, or start a worker:  python manage.py rtq_worker"


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


# The columns of tables.
OF_QUEUE = ("name", "state", "queued", "scheduled", "retrying", "running", "dead", "oldest_seconds", "holds")
CLIENTS = Column("clients", "Clients", attrgetter("details.clients"), NUMBER)
OF_WORKER = ("name", "host", "pid", "shard", "queues", "last_seen_seconds", "jobs_done")
COMMAND_COLUMNS = [Column("command", "Command", itemgetter(0)), Column("text", "What it does", itemgetter(1))]
# What JSON has of the server.
SERVER = (
    *("name", "version", "used_memory", "max_memory", "eviction_policy", "connections", "max_connections"),
    "warnings",
)


class Command(ConsoleCommand):
    help = "Show the queues, the workers and what is wrong. With --check: an exit code for health checks."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = (
            "Exit codes: 0 done; 1 Redis did not answer, or a queue is unknown; 64 wrong usage. With --check: 0 "
            "nothing is wrong; 1 warnings; 2 something is critical, Redis did not answer, or the settings are wrong; "
            "64 wrong usage."
        )
        JSON.add_to(parser)
        parser.add_argument(
            "--watch",
            nargs="?",
            type=seconds_from(0.1, 86_400),
            const=WATCH_SECONDS,
            metavar="SECONDS",
            help=f"Refresh until Ctrl-C (default: every {WATCH_SECONDS:.0f} seconds).",
        )
        QUEUES_OPTION.but(help="Only these queues and their workers (default: all).").add_to(parser)
        parser.add_argument(
            "--check", action="store_true", help="Print only what is wrong, one line for each incident, or ok."
        )
        parser.add_argument(
            "--max-oldest",
            type=seconds_from(0.1, 86_400 * 365),
            metavar="S",
            help="With --check: seconds that the oldest job of a queue may wait (default: that of "
            'RTQ["INCIDENTS"], 300).',
        )
        parser.add_argument(
            "--this-host",
            action="store_true",
            help="With --check: only the workers of this host: whether one is alive, and none is lost or silent.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        of_check = options["this_host"] or options["max_oldest"] is not None
        if options["check"] and (options["queues"] is not None or options["watch"] is not None):
            raise CommandError("--check takes neither --queues nor --watch.", returncode=WRONG_USAGE)
        if of_check and not options["check"]:
            raise CommandError("--this-host and --max-oldest need --check.", returncode=WRONG_USAGE)
        if options["check"]:
            self._check(options)
        elif options["watch"] is not None:
            self._watch(options)
        else:
            self._show(options)

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except CommandError as error:
            if options["check"] and error.returncode == 1:  # settings, or the database: no warning
                error.returncode = CODES["critical"]
            raise

    # -- with an exit code

    def _check(self, options: Options) -> None:
        incidents, now, host = list[Incident](), utc_now(), socket.gethostname() if options["this_host"] else ""
        away: list[dict[str, Any]] = []
        try:
            seen = look(self.readers, host=host, oldest_seconds=options["max_oldest"])
            incidents, now = [*seen.incidents], seen.overview.now
        except BrokerError as error:
            away = [] if self.silent else [{"text": str(error)}]
        away += [{"shards": [shard.number], "text": shard.error} for shard in self.silent.values()]
        away = [{"kind": "redis_unreachable", "severity": "critical", **each} for each in away]
        self.silent.clear()  # they are told here
        status = "critical" if away else worst_of(incidents)
        if options["json"]:
            answer = {"status": status, "incidents": [*away, *(incident.as_dict() for incident in incidents)]}
            self.stdout.write(as_json(answer))
        else:
            lines = [_unreachable(each) for each in away] + [_line(incident, now) for incident in incidents]
            self.stdout.write("\n".join(lines or ["ok"]))
        if code := CODES[status]:
            sys.exit(code)

    # -- the state

    def _show(self, options: Options) -> None:
        away: BrokerError | None = None
        try:
            self.stdout.write(self._render(options))
        except BrokerError as error:
            away = error
        if not options["json"] and options["queues"] is None:
            self.stdout.write("\n" + self.table_text(COMMAND_COLUMNS, list(_commands())))
            self.stdout.write("\nAll options of one:  python manage.py rtq_jobs --help")
        if away is not None:
            raise away

    def _watch(self, options: Options) -> None:
        seconds, text = options["watch"], self._render(options)  # errors at the start are not retried
        form = f"{CLEAR_SCREEN}%s\n\nEvery {seconds:g} s; stop with Ctrl-C." if self.stdout.isatty() else "%s\n"
        with suppress(KeyboardInterrupt):  # the normal way to end it
            while True:
                if text:
                    self.stdout.write(text if options["json"] else form % text)
                self.stdout.flush()
                self.told_silent()
                sleep(seconds if text else WATCH_SECONDS)
                try:
                    text = self._render(options)
                except BrokerUnavailable as error:  # until it is back
                    self.stderr.write(one_line(error))
                    text = ""

    def _render(self, options: Options) -> str:
        self.silent.clear()
        try:
            return self._read(_split(options["queues"]), json=options["json"])
        except BrokerUnavailable:
            if (lag := sum_of_lags(map(outbox_lag, self.places(options)))) is not None:
                self.stderr.write(_outbox_text(lag))
            raise

    def _read(self, names: list[str] | None, *, json: bool) -> str:
        readers = self.readers
        seen = look(readers)
        overview, lag, unserved, incidents = seen.overview, seen.lag, seen.unserved, seen.incidents
        workers, shown = overview.workers, [queue.name for queue in seen.queues]
        if names is not None:
            shown = known_queues(readers, names)
            workers = [worker for worker in workers if {*names} & {*worker.queues}]
            unserved = [name for name in unserved if name in names]
            incidents = [incident for incident in incidents if incident.queue in ("", *names)]
        queues, of_shards = QUEUES.named(readers, overview, shown), any(worker.shard is not None for worker in workers)
        if json:
            state = {
                "queues": [QUEUES.as_dict(queue) for queue in queues],
                "workers": [WORKERS.as_dict(worker, of_shards=of_shards) for worker in workers],
                "unserved": unserved,
                "outbox": asdict(lag) if lag else None,
                "server": facts(overview.server, SERVER),
                "incidents": [incident.as_dict() for incident in incidents],
            }
            return as_json(state)
        parts = [
            self.table_text([*columns(QUEUES, queues, names=OF_QUEUE), CLIENTS], queues)
            if queues
            else self.none(NO_QUEUE),
            *self._worker_texts(workers, of_shards=of_shards),
            *([_outbox_text(lag)] if lag else []),
            *self._incident_texts(incidents, overview.now),
        ]
        return "\n\n".join(parts)

    def _worker_texts(self, workers: Sequence[WorkerDetails], *, of_shards: bool) -> Iterator[str]:
        if not workers:
            yield self.none(NO_WORKER)
            return
        of_sheet = columns(WORKERS, workers, of_shards=of_shards, names=OF_WORKER)
        yield self.table_text([*of_sheet, Column("runs", "Runs", _activity)], workers)
        living = [worker for worker in workers if not worker.is_lost]
        hosts, busy = len({worker.host for worker in living}), sum(worker.busy for worker in living)
        slots = count(sum(worker.slots for worker in living), "slot")
        yield f"{count(len(living), 'worker')} on {count(hosts, 'host')}: {busy} of {slots} busy."

    def _incident_texts(self, incidents: Sequence[Incident], now: datetime) -> Iterator[str]:
        lines = [_line(incident, now) for incident in incidents[:MOST_INCIDENTS]]
        if more := len(incidents) - len(lines):
            lines.append(f"{count(more, 'more incident')}:  python manage.py rtq --check")
        if lines:
            yield self.style.WARNING("\n".join(lines))


def _unreachable(away: Mapping[str, Any]) -> str:
    where = "".join(f"Shard {number}: " for number in away.get("shards", ()))
    return f"critical redis_unreachable: {where}{one_line(away['text'], 2000)}"


def _line(incident: Incident, now: datetime) -> str:
    text = f"{incident.severity} {incident.kind}: {incident.text}"
    if incident.command:
        text += f" {incident.command}"
    since = incident.since_text(now)
    return one_line(f"{text} [{since}]" if since else text, 2000)


def _outbox_text(lag: OutboxLag) -> str:
    if lag.error:
        return f"Outbox: the database did not answer: {one_line(lag.error)}"
    if not lag.jobs:
        return "Outbox: empty"
    more = " or more" if lag.jobs >= MOST_COUNTED else ""
    why = f": {one_line(lag.oldest_error)}" if lag.oldest_error else ""
    return f"Outbox: {count(lag.jobs, 'job')}{more}, the oldest for {duration(lag.oldest_seconds)}{why}"


def _split(text: str | None) -> list[str] | None:
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise CommandError("--queues is empty: write for example --queues high,default", returncode=WRONG_USAGE)
    return names


def _commands() -> Iterator[tuple[str, str]]:
    """The names of the commands, and what they do."""
    for name, app in sorted(get_commands().items()):
        if app == "django_rtq":
            yield name, load_command_class(app, name).help.partition(". ")[0].removesuffix(".")

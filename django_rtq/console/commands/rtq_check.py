"""manage.py rtq_check: say what is wrong, with an exit code for Docker, Kubernetes, systemd and cron."""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_rtq.console.commands.command import JSON, ConsoleCommand
from django_rtq.console.incidents import Incident, find_incidents
from django_rtq.console.incidents.incident import worst_of
from django_rtq.console.incidents.schedules import known_schedules
from django_rtq.console.incidents.workers import host_incidents
from django_rtq.console.inspector.inspector import get_inspector
from django_rtq.console.output import as_json
from django_rtq.core.commands.command import one_line, seconds_from
from django_rtq.databases.outbox import outbox_lag
from django_rtq.exceptions import BrokerError, RTQError

WELL, WARNING, CRITICAL = 0, 1, 2
_CODES = {"ok": WELL, "warning": WARNING, "critical": CRITICAL}


class Command(ConsoleCommand):
    help = "Say what is wrong, one line for each incident, with an exit code for health checks."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = (
            "Exit codes: 0 nothing is wrong; 1 warnings; 2 something is critical, Redis did not answer, or the "
            "settings are wrong; 64 wrong usage."
        )
        JSON.add_to(parser)
        parser.add_argument(
            "--max-oldest",
            type=seconds_from(0.1, 86_400 * 365),
            metavar="S",
            help='Seconds that the oldest job of a queue may wait (default: that of RTQ["INCIDENTS"], 300).',
        )
        parser.add_argument(
            "--this-host",
            action="store_true",
            help="Only the workers of this host: whether one is alive, and none is lost or silent.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            incidents, now = _read(this_host=options["this_host"], max_oldest=options["max_oldest"])
        except BrokerError as error:
            self._show_error(str(error), json=options["json"])
            sys.exit(CRITICAL)
        except RTQError as error:
            raise CommandError(one_line(error), returncode=CRITICAL) from error
        if options["json"]:
            shown = [incident.as_dict() for incident in incidents]
            self.stdout.write(as_json({"status": worst_of(incidents), "incidents": shown}))
        elif incidents:
            for incident in incidents:
                self.stdout.write(incident_line(incident, now))
        else:
            self.stdout.write("ok")
        if code := _CODES[worst_of(incidents)]:
            sys.exit(code)

    def merged(self, answers: Sequence[tuple[int, Any]]) -> Any:
        worst = max((answer["status"] for _, answer in answers), key=list(_CODES).index)
        return {"status": worst, "incidents": super().merged([(shard, each["incidents"]) for shard, each in answers])}

    def _show_error(self, error: str, *, json: bool) -> None:
        if json:
            incident = {"kind": "redis_unreachable", "severity": "critical", "text": error}
            self.stdout.write(as_json({"status": "critical", "incidents": [incident]}))
        else:
            self.stdout.write(f"critical redis_unreachable: {one_line(error, 2000)}")


def _read(*, this_host: bool, max_oldest: float | None) -> tuple[Sequence[Incident], datetime]:
    overview = get_inspector().overview.read()
    if this_host:
        return host_incidents(overview, socket.gethostname()), overview.now
    found = find_incidents(overview, outbox_lag(), known_schedules(), oldest_seconds=max_oldest)
    return found, overview.now


def incident_line(incident: Incident, now: datetime) -> str:
    """One line about an incident."""
    text = f"{incident.severity} {incident.kind}: {incident.text}"
    if incident.command:
        text += f" {incident.command}"
    since = incident.since_text(now)
    return one_line(f"{text} [{since}]" if since else text, 2000)

"""rtq_schedule: look at the schedules of periodic jobs, or start one of them now."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.timezone import localtime

from django_rtq.broker.broker import get_broker
from django_rtq.broker.inspector import get_inspector
from django_rtq.broker.schedule_state import ScheduleState
from django_rtq.conf import get_config
from django_rtq.exceptions import JobNotFound
from django_rtq.job import moment
from django_rtq.management.printable import as_json, one_line
from django_rtq.management.rtq_command import RTQCommand
from django_rtq.management.tables import Column, table
from django_rtq.scheduler.timetable import Entry, all_entries

COLUMNS = [
    Column(title)
    for title in ("NAME", "TASK", "QUEUE", "WHEN", "MISSED", "OVERLAP", "LAST", "NEXT", "LAST JOB", "STATE")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What is told of one schedule."""

    entry: Entry
    last_slot: datetime | None
    next_slot: datetime | None
    last_job: str  # "": none yet
    last_state: str  # "": forgotten, or none yet

    def as_dict(self) -> dict[str, Any]:
        """As it is printed as JSON."""
        schedule = self.entry.schedule
        return {
            "name": schedule.name,
            "task": self.entry.task.name,
            "queue": self.entry.task.queue,
            "when": schedule.explain(),
            "cron": schedule.expression or None,
            "every_seconds": schedule.every_ms / 1000 or None,
            "tz": schedule.zone if schedule.expression else None,
            "missed": schedule.missed,
            "overlap": schedule.overlap,
            "last_slot": self.last_slot and self.last_slot.isoformat(),
            "next_slot": self.next_slot and self.next_slot.isoformat(),
            "last_job": self.last_job or None,
            "last_state": self.last_state or None,
        }

    def cells(self) -> list[str]:
        """As it stands in the table."""
        schedule = self.entry.schedule
        return [
            one_line(schedule.name),
            self.entry.task.name,
            self.entry.task.queue,
            schedule.explain(),
            schedule.missed,
            schedule.overlap,
            _on_clock(self.last_slot),
            _on_clock(self.next_slot),
            one_line(self.last_job) or "-",
            self.last_state or "-",
        ]


class Command(RTQCommand):
    help = "Look at the schedules of periodic jobs that this project declares, or start the job of one of them now."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = (
            "Exit codes: 0 done; 1 there is no such schedule, one makes no sense, or Redis did not answer; "
            "2 wrong usage."
        )
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
        text = "Show all schedules: when they fire, and what became of the last job."
        listing = actions.add_parser("list", help=text, description=text)
        listing.add_argument("--json", action="store_true", help="Print a list in JSON.")
        text = "Enqueue the job of a schedule now, beside its slots, and print the job's id."
        running = actions.add_parser("run", help=text, description=text)
        running.add_argument("name", metavar="NAME", help="The schedule's name: see list.")

    def handle(self, *args: Any, **options: Any) -> None:
        entries = all_entries(get_config())
        if options["action"] == "run":
            entry = _named(entries, options["name"])
            job = entry.task.delay(*entry.schedule.args, **entry.schedule.kwargs)
            self.stdout.write(job.id)
            if job.duplicate:
                self.stderr.write(
                    "No job was enqueued: the task is unique, and this is the job of its kind that lives."
                )
            return
        lines = _lines(entries)
        if options["json"]:
            self.stdout.write(as_json([line.as_dict() for line in lines]))
        elif lines:
            heading, *rows = table(COLUMNS, (line.cells() for line in lines))
            self.stdout.write("\n".join([self.style.MIGRATE_HEADING(heading), *rows]))
        else:
            self.stdout.write('There are no schedules: see @task(schedule=...) and RTQ["SCHEDULES"].')


def _lines(entries: list[Entry]) -> list[Line]:
    if not entries:
        return []
    queues = sorted({entry.task.queue for entry in entries})
    now_ms, states = get_broker().schedules(queues)
    return [_line(entry, states[entry.task.queue].get(entry.name), now_ms) for entry in entries]


def _line(entry: Entry, state: ScheduleState | None, now_ms: int) -> Line:
    last_job = state.last_job if state and state.last_job != "-" else ""
    return Line(
        entry=entry,
        last_slot=moment(state.last_slot_ms) if state and state.last_slot_ms else None,
        next_slot=moment(entry.schedule.next_ms(now_ms)),
        last_job=last_job,
        last_state=_state_of(last_job, entry.task.queue) if last_job else "",
    )


def _state_of(job_id: str, queue: str) -> str:
    try:
        return str(get_inspector().find(job_id, queue).state)
    except JobNotFound:
        return ""


def _named(entries: list[Entry], name: str) -> Entry:
    by_name = {entry.name: entry for entry in entries}
    if name in by_name:
        return by_name[name]
    close = difflib.get_close_matches(name, by_name, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else " See rtq_schedule list."
    raise CommandError(f"There is no schedule {one_line(repr(name), 100)}.{hint}")


def _on_clock(at: datetime | None) -> str:
    return localtime(at).isoformat(sep=" ", timespec="seconds") if at else "-"

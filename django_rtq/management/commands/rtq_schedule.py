"""manage.py rtq_schedule: list schedules, run one now, enable or disable one."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError, router
from django.utils.timezone import localtime

from django_rtq.broker.broker import get_broker
from django_rtq.broker.task_backends import place_of
from django_rtq.conf.config import get_config
from django_rtq.management.command import RTQCommand, add_actions
from django_rtq.management.output import Column, as_json, count, one_line, table
from django_rtq.models import Schedule, sync_schedules
from django_rtq.scheduler.registry import ScheduledTask, ScheduleSet, load_schedules, schedules_in
from django_rtq.scheduler.status import ScheduleStatus, schedule_statuses
from django_rtq.transactions.migrating import with_advice
from django_rtq.validation import did_you_mean

TITLES = ("NAME", "TASK", "QUEUE", "FROM", "ON", "WHEN", "MISSED", "OVERLAP", "LAST", "NEXT", "LAST JOB", "STATE")
COLUMNS = [Column(title) for title in TITLES]


ACTIONS = {
    "list": "Show all schedules, with their times and their last jobs.",
    "run": "Enqueue the job of a schedule now, in addition to its slots, and print the id of the job.",
    "enable": "Enable a schedule from now on.",
    "disable": "Disable a schedule on all machines.",
    "sync": "Copy the schedules from the database to Redis. Needed after Redis has lost its data, or when the "
    "table was changed without Django.",
}


class Command(RTQCommand):
    help = "List the schedules of periodic jobs, run one now, or enable or disable one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = (
            "Exit codes: 0 done; 1 unknown or invalid schedule, or Redis or the database did not answer; 2 wrong usage."
        )
        for name, action in add_actions(parser, ACTIONS, all_print_json=True):
            if name not in ("list", "sync"):
                action.add_argument("name", metavar="NAME", help="The schedule's name: see list.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["action"] == "sync":
            changed = self._sync()
            self._print(options, {"changed": changed}, f"{count(changed, 'schedule')} changed in Redis.")
            return
        place = place_of(options["backend"])
        found = load_schedules(schedules_in(place, get_config()), get_broker(place).schedules.read())
        if options["action"] == "list":
            self._list(found, is_json=options["json"])
        elif options["action"] == "run":
            entry = _named(found, options["name"])
            job = entry.task.delay(*entry.schedule.args, **entry.schedule.kwargs)
            facts = {"name": entry.name, "queue": entry.task.queue, "job": job.id, "duplicate": job.duplicate}
            self._print(options, facts, job.id)
            if job.duplicate:
                self.stderr.write(
                    "No job was enqueued: the task is unique, and this job of the same key is still alive."
                )
        else:
            self._switch(found, options)

    def _print(self, options: dict[str, Any], facts: dict[str, Any], sentence: str) -> None:
        self.stdout.write(as_json(facts) if options["json"] else sentence)

    def _list(self, found: ScheduleSet, *, is_json: bool) -> None:
        statuses = schedule_statuses(found.entries)
        if is_json:
            broken = [{"name": name, "source": "admin", "problem": why} for name, why in found.broken.items()]
            self.stdout.write(as_json([*map(_as_dict, statuses), *broken]))
        elif statuses or found.broken:
            heading, *rows = table(COLUMNS, map(_cells, statuses))
            self.stdout.write("\n".join([self.style.MIGRATE_HEADING(heading), *rows]))
            for name, why in found.broken.items():
                self.stdout.write(self.style.WARNING(f"{one_line(name)} cannot run: {one_line(why)}"))
        else:
            self.stdout.write('There are no schedules: see @task(schedule=...), RTQ["SCHEDULES"], and the admin.')
            if problem := _problem_of_table():
                self.stdout.write(self.style.WARNING(f"Those of the admin cannot be read: {problem}"))

    def _switch(self, found: ScheduleSet, options: dict[str, Any]) -> None:
        name, on = options["name"], options["action"] == "enable"
        if name in found.broken:
            changed = self._switch_row(name, on=on)
        else:
            entry = _named(found, name)
            changed = self._switch_row(name, on=on) if entry.source == "admin" else _switch_declared(entry, on=on)
        facts = {"name": name, "enabled": on, "changed": changed}
        word = "enabled" if on else "disabled"
        self._print(options, facts, f"{one_line(name)} is {word}{'' if changed else ' already'}.")

    def _switch_row(self, name: str, *, on: bool) -> bool:
        try:
            row = Schedule.objects.filter(name=name).first()
            if row is None:
                raise CommandError(f"{one_line(name)} is not in the database any more: run rtq_schedule sync.")
            changed = bool(row.enabled != on)
            if changed:
                row.switch(on=on)
        except DatabaseError as error:
            raise CommandError(f"The database did not answer: {one_line(error)}") from error
        except ValidationError as error:
            raise CommandError(f"{one_line(name)} is invalid: {one_line(' '.join(error.messages))}") from error
        self._sync()
        return changed

    def _sync(self) -> int:
        try:
            return sync_schedules()
        except DatabaseError as error:
            raise CommandError(f"The database did not answer: {one_line(error)}") from error


def _problem_of_table() -> str:
    """Why the database cannot be asked for schedules; "" if it can. What is listed is their copy in Redis."""
    try:
        Schedule.objects.exists()
    except (DatabaseError, ImproperlyConfigured) as error:
        return one_line(with_advice(error, router.db_for_read(Schedule)))
    return ""


def _switch_declared(entry: ScheduledTask, *, on: bool) -> bool:
    if entry.enabled == on:
        return False
    get_broker(entry.task.backend).schedules.set_enabled(entry.name, enabled=on, wake=[entry.task.queue] if on else [])
    return True


def _as_dict(schedule_status: ScheduleStatus) -> dict[str, Any]:
    entry, schedule = schedule_status.entry, schedule_status.entry.schedule
    return {
        "name": schedule.name,
        "task": entry.task.name,
        "queue": entry.task.queue,
        "source": entry.source,
        "enabled": entry.enabled,
        "when": schedule.explain(),
        "cron": schedule.expression or None,
        "every_seconds": schedule.every_ms / 1000 or None,
        "start": schedule.start and schedule.start.isoformat(),
        "tz": schedule.zone if schedule.expression else None,
        "missed": schedule.missed,
        "overlap": schedule.overlap,
        "last_slot": schedule_status.last_slot and schedule_status.last_slot.isoformat(),
        "next_slot": schedule_status.next_slot and schedule_status.next_slot.isoformat(),
        "last_job": schedule_status.last_job or None,
        "last_state": schedule_status.last_state or None,
    }


def _cells(schedule_status: ScheduleStatus) -> list[str]:
    entry, schedule = schedule_status.entry, schedule_status.entry.schedule
    return [
        one_line(schedule.name),
        entry.task.name,
        entry.task.queue,
        entry.source,
        "yes" if entry.enabled else "no",
        schedule.explain(),
        schedule.missed,
        schedule.overlap,
        _on_clock(schedule_status.last_slot),
        _on_clock(schedule_status.next_slot),
        one_line(schedule_status.last_job) or "-",
        schedule_status.last_state or "-",
    ]


def _named(found: ScheduleSet, name: str) -> ScheduledTask:
    by_name = {entry.name: entry for entry in found.entries}
    if name in by_name:
        return by_name[name]
    if name in found.broken:
        raise CommandError(f"{one_line(name)} cannot run: {one_line(found.broken[name])}")
    hint = did_you_mean(name, by_name, otherwise=" See rtq_schedule list.", quoted=True)
    raise CommandError(f"There is no schedule {one_line(repr(name), 100)}.{hint}")


def _on_clock(at: datetime | None) -> str:
    return localtime(at).isoformat(sep=" ", timespec="seconds") if at else "-"

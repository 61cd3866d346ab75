"""manage.py rtq_schedule: list schedules, run one now, enable or disable one."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.utils.translation import override

from django_rtq.console.commands.command import Action, SheetCommand
from django_rtq.console.merging import joined
from django_rtq.console.output import as_json, count
from django_rtq.console.schedule_status import ScheduleStatus, read_schedules
from django_rtq.console.subjects.schedules import SCHEDULES
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.commands.command import Argument, Options, one_line
from django_rtq.core.scheduler.registry import ScheduledTask
from django_rtq.core.validation import did_you_mean
from django_rtq.models import Schedule, sync_schedules

NAME = Argument("name", metavar="NAME", help="The schedule's name: see list.")


class Command(SheetCommand):
    goes_on = ("list", "run", "enable", "disable")
    takes_shard = False
    help = "List the schedules of periodic jobs, run one now, or enable or disable one."
    exit_codes = (
        "Exit codes: 0 done; 1 unknown or invalid schedule, or Redis or the database did not answer; 64 wrong usage."
    )
    actions = {
        "list": Action("Show all schedules, with their times and their last jobs.", reads_only=True),
        "run": Action(
            "Enqueue the job of a schedule now, in addition to its slots, and print the id of the job.", [NAME]
        ),
        "enable": Action("Enable a schedule from now on.", [NAME]),
        "disable": Action("Disable a schedule on all machines.", [NAME]),
        "sync": Action(
            "Copy the schedules from the database to Redis. Needed after Redis has lost its data, or when the table "
            "was changed without Django."
        ),
    }

    def do_list(self, options: Options) -> None:
        schedules = self._read(with_jobs=True)
        with override("en"):
            rows = SCHEDULES.rows(self.readers, schedules)
        if rows or options["json"]:
            self.print_sheet(options, SCHEDULES, rows)
        else:
            none = 'There are no schedules: see @task(schedule=...), RTQ["SCHEDULES"], and the admin.'
            self.stdout.write(self.none(none))

    def do_run(self, options: Options) -> None:
        status = self._named(self._read(), options["name"])
        entry = status.entry
        if entry is None:
            raise CommandError(f"{one_line(status.name)} cannot run: {one_line(status.problem)}")
        if options["dry_run"]:
            would = f"Would enqueue a job of task {entry.task.name} in queue {entry.task.queue}."
            self.report(options, {"name": entry.name, "queue": entry.task.queue}, [would])
            return
        job = entry.task.delay(*entry.schedule.args, **entry.schedule.kwargs)
        facts = {"name": entry.name, "queue": entry.task.queue, "job": job.id, "duplicate": job.duplicate}
        self.stdout.write(as_json(facts) if options["json"] else job.id)
        if job.duplicate:
            self.stderr.write("No job was enqueued: the task is unique, and this job of the same key is still alive.")

    def do_enable(self, options: Options) -> None:
        name, on, is_dry_run = options["name"], options["action"] == "enable", options["dry_run"]
        schedules = self._read()
        status = self._named(schedules, name)
        if status.entry is None or status.source == "admin":
            changed = _switch_row(name, on=on, is_dry_run=is_dry_run)
        else:
            changed = _switch_declared(status.entry, on=on, is_dry_run=is_dry_run)
        state = f"{one_line(name)} is {options['action']}d{'' if changed else ' already'}."
        would = f"Would {options['action']} {one_line(name)}."
        self.report(
            options, {"name": name, "enabled": on, "changed": changed}, [would if changed and is_dry_run else state]
        )

    do_disable = do_enable

    def do_sync(self, options: Options) -> None:
        changed = sync_schedules(is_dry_run=options["dry_run"])
        what = count(changed, "schedule")
        sentence = f"Would change {what} in Redis." if options["dry_run"] else f"{what} changed in Redis."
        self.report(options, {"changed": changed}, [sentence])

    def _read(self, *, with_jobs: bool = False) -> list[ScheduleStatus]:
        """The schedules of a Redis, or of all shards that answer. Raises BrokerError if nothing answers."""
        return joined(self.readers.every(lambda one: read_schedules(one.place, with_jobs=with_jobs)))

    def _named(self, schedules: Sequence[ScheduleStatus], name: str) -> ScheduleStatus:
        by_name = {status.name: status for status in schedules}
        if name in by_name:
            self.silent.clear()  # it is in none of them
            return by_name[name]
        where = " in the other shards" if self.silent else ""
        hint = did_you_mean(name, by_name, otherwise=" See rtq_schedule list.", quoted=True)
        raise CommandError(f"There is no schedule {one_line(repr(name), 100)}{where}.{hint}")


def _switch_row(name: str, *, on: bool, is_dry_run: bool) -> bool:
    try:
        row = Schedule.objects.filter(name=name).first()
        if row is None:
            raise CommandError(f"{one_line(name)} is not in the database any more: run rtq_schedule sync.")
        changed = bool(row.enabled != on)
        if changed and not is_dry_run:
            row.switch(on=on)
        elif changed and on:
            row.full_clean()  # as saving it would
    except ValidationError as error:
        raise CommandError(f"{one_line(name)} is invalid: {one_line(' '.join(error.messages))}") from error
    if not is_dry_run:
        sync_schedules()
    return changed


def _switch_declared(entry: ScheduledTask, *, on: bool, is_dry_run: bool) -> bool:
    if entry.enabled == on:
        return False
    if not is_dry_run:
        schedules = get_broker(entry.place).schedules
        schedules.set_enabled(entry.name, enabled=on, wake=[entry.task.queue] if on else [])
    return True

"""manage.py rtq_import_celery_beat: print schedules of Celery beat as ours, or save them as rows."""

from __future__ import annotations

import pprint
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.apps import apps
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.utils.module_loading import import_string

from django_rtq.conf.config import celery_beat_schedule
from django_rtq.management.celery_beat import Converted, from_entries, from_rows
from django_rtq.management.command import DRY_RUN, WRONG_USAGE, RTQCommand
from django_rtq.management.output import count, number, one_line
from django_rtq.models import Schedule


class Command(RTQCommand):
    help = (
        "Read a schedule of Celery beat, and print it as RTQ['SCHEDULES'] for settings.py, or save it as rows for the "
        "admin. Nothing of Celery is changed: stop its beat before workers run the new schedule."
    )
    backend_help = ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = (
            "Exit codes: 0 done; 1 some schedules could not be converted or saved (the others are), or there is "
            "nothing to read; 64 wrong usage."
        )
        parser.add_argument(
            "source",
            metavar="SOURCE",
            help="'settings': CELERY_BEAT_SCHEDULE; 'database': the rows of django-celery-beat; or the dotted path of "
            "a Celery app, such as mysite.celery.app.",
        )
        parser.add_argument(
            "--save", action="store_true", help="Save rows, which the admin shows, instead of printing."
        )
        DRY_RUN.add_to(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        entries = list(_read(options["source"]))
        converted = [entry for entry in entries if not entry.problem]
        problems = [f"{one_line(entry.name)}: {one_line(entry.problem)}" for entry in entries if entry.problem]
        if options["save"]:
            problems += self._save(converted, is_dry_run=options["dry_run"])
        else:
            self.stdout.write(_as_python(converted))
        for problem in problems:
            self.stderr.write(f"Not converted: {problem}")
        if problems:
            raise CommandError(f"{number(len(problems))} of {count(len(entries), 'schedule')} could not be converted.")

    def _save(self, schedules: Iterable[Converted], *, is_dry_run: bool) -> list[str]:
        problems = []
        for schedule in schedules:
            row = Schedule(name=schedule.name, queue=schedule.queue, enabled=schedule.enabled, **schedule.options)
            try:
                row.full_clean()
                if not is_dry_run:
                    row.save()
            except ValidationError as error:
                problems.append(f"{one_line(schedule.name)}: {one_line(' '.join(error.messages))}")
                continue
            self.stdout.write(f"{'Would save' if is_dry_run else 'Saved'} {one_line(schedule.name)}.")
            for note in schedule.notes:
                self.stderr.write(f"{one_line(schedule.name)}: {one_line(note)}.")
        return problems


def _read(source: str) -> Iterable[Converted]:
    if source == "database":
        if not apps.is_installed("django_celery_beat"):
            raise CommandError("django_celery_beat is not in INSTALLED_APPS.")
        rows = apps.get_app_config("django_celery_beat").get_model("PeriodicTask")._default_manager.all()
        # beat itself has a row that cleans up its results.
        return from_rows(rows.exclude(task="celery.backend_cleanup").order_by("name"))
    if source == "settings":
        entries, zone = celery_beat_schedule()
        if entries is None:
            raise CommandError("The settings have no CELERY_BEAT_SCHEDULE. Name your Celery app: mysite.celery.app")
        return from_entries(entries, zone)
    return _from_app(source)


def _from_app(path: str) -> Iterable[Converted]:
    try:
        app = import_string(path)
    except ImportError as error:
        raise CommandError(
            f"{one_line(path, 100)!r} is not 'settings', 'database' or the path of a Celery app: {one_line(error)}",
            returncode=WRONG_USAGE,
        ) from error
    entries: Mapping[str, Mapping[str, Any]] = app.conf.beat_schedule or {}
    return from_entries(entries, str(app.conf.timezone or "UTC"))


def _as_python(converted: Sequence[Converted]) -> str:
    lines = ['RTQ["SCHEDULES"] = {']
    for schedule in converted:
        notes = list(schedule.notes)
        if schedule.queue:
            notes.append(f"its queue was {schedule.queue!r}: give it to the task, @task(queue_name={schedule.queue!r})")
        if not schedule.enabled:
            notes.append(f"it is disabled: python manage.py rtq_schedule disable {schedule.name}")
        lines += [f"    # {one_line(note)}" for note in notes]
        value = pprint.pformat(dict(schedule.options), width=10_000, sort_dicts=False, compact=True)
        lines.append(f"    {schedule.name!r}: {value},")
    return "\n".join([*lines, "}"])

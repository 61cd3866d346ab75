"""manage.py rtq_tasks: pause and resume tasks, and list those that are paused."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser
from django.utils.translation import override

from django_rtq.exceptions import TooManyPausedTasks
from django_rtq.inspector.inspector import get_inspector
from django_rtq.inspector.task_pauses import TaskPause
from django_rtq.management.command import RTQCommand, add_actions
from django_rtq.management.output import Column, as_json, number, one_line, table
from django_rtq.management.prompts import known_queues, system_user, utf8_text
from django_rtq.tasks.registry import get_public_task

COLUMNS = [Column("QUEUE"), Column("TASK"), Column("HELD", right=True), Column("STATE")]
ACTIONS = {
    "list": "Show the tasks that are paused, by queue, and how many of their jobs are held.",
    "pause": "Start no more jobs of tasks. New ones wait, running jobs finish, and those of other tasks go on.",
    "resume": "Start the jobs of paused tasks again, before later jobs of their clients.",
}


class Command(RTQCommand):
    help = "Pause and resume tasks, and list those that are paused."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = (
            "Exit codes: 0 done, even if there was nothing to do; 1 a queue or a task is unknown, a queue has 100 "
            "paused tasks, or Redis did not answer; 2 wrong usage. A pause holds for all workers from their next claim "
            "on, and survives restarts."
        )
        for name, action in add_actions(parser, ACTIONS, all_print_json=True):
            if name != "list":
                action.add_argument("queue", metavar="QUEUE", help="The queue; '*' is every queue that was used.")
                action.add_argument("tasks", nargs="+", type=utf8_text, metavar="TASK", help="The name of a task.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["action"] == "list":
            self._list(options)
        else:
            self._pause_or_resume(options)

    def _list(self, options: dict[str, Any]) -> None:
        found = [(queue.name, pause) for queue in get_inspector().queues.details() for pause in queue.paused_tasks]
        if options["json"]:
            self.stdout.write(as_json([{"queue": queue, **asdict(pause)} for queue, pause in found]))
            return
        if not found:
            self.stdout.write("No task is paused.")
            return
        with override(None):
            rows = [
                [one_line(queue), one_line(pause.task, 80), number(pause.held), one_line(_state(pause), 80)]
                for queue, pause in found
            ]
        heading, *lines = table(COLUMNS, rows)
        self.stdout.write("\n".join([self.style.MIGRATE_HEADING(heading), *lines]))

    def _pause_or_resume(self, options: dict[str, Any]) -> None:
        inspector, action = get_inspector(), options["action"]
        queue = None if options["queue"] == "*" else known_queues(inspector, [options["queue"]])[0]
        for task in options["tasks"] if action == "pause" else ():
            get_public_task(task)
        pauses, changed = inspector.task_pauses, {}
        try:
            for task in options["tasks"]:
                if action == "pause":
                    changed[task] = pauses.pause_task(task, queue, by=system_user())
                else:
                    changed[task] = pauses.resume_task(task, queue)
        except TooManyPausedTasks as error:
            self._report(options, {**changed, **({task: error.paused} if error.paused else {})})
            raise
        self._report(options, changed)

    def _report(self, options: dict[str, Any], changed: dict[str, list[str]]) -> None:
        action = options["action"]
        if options["json"]:
            self.stdout.write(as_json({f"{action}d": changed}))
        elif options["verbosity"]:
            for task, queues in changed.items():
                self.stdout.write(_said(action, one_line(task, 100), options["queue"], queues))


def _state(pause: TaskPause) -> str:
    return "resumed: its jobs go back to their lanes" if pause.is_over else pause.text


def _said(action: str, task: str, queue: str, changed: list[str]) -> str:
    where = f"queue {queue}" if queue != "*" else "any queue"
    names = f"queue{'s' if len(changed) > 1 else ''} {', '.join(changed)}"
    if action == "resume":
        return f"Resumed task {task} in {names}." if changed else f"Task {task} was not paused in {where}."
    if changed:
        again = f"rtq_tasks resume {shlex.quote(queue)} {shlex.quote(task)}"
        return f"Task {task} is paused in {names}. Resume it with  python manage.py {again}"
    return f"Task {task} was paused already in {where if queue != '*' else 'all queues'}."

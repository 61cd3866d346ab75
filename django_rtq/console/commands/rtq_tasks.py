"""manage.py rtq_tasks: pause and resume tasks, and list those that are paused."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from typing import NamedTuple

from django.utils.translation import override

from django_rtq.console.commands.command import EVERY_QUEUE, Action, ActionCommand, switched
from django_rtq.console.commands.prompts import known_queues, system_user, utf8_text
from django_rtq.console.inspector.inspector import Inspector, get_inspector
from django_rtq.console.inspector.task_pauses import TaskPause
from django_rtq.console.output import Column
from django_rtq.core.commands.command import Argument, Options, one_line
from django_rtq.core.jobs.aliases import names_of
from django_rtq.core.tasks.registry import get_public_task
from django_rtq.exceptions import TooManyPausedTasks


class _Row(NamedTuple):
    queue: str
    pause: TaskPause

    @property
    def state(self) -> str:
        return "resumed: its jobs go back to their lanes" if self.pause.is_over else self.pause.text


COLUMNS = [
    Column("QUEUE", lambda row: row.queue),
    Column("TASK", lambda row: row.pause.task),
    Column("HELD", lambda row: row.pause.held, right=True),
    Column("STATE", lambda row: row.state),
]
QUEUE_AND_TASKS = [
    EVERY_QUEUE,
    Argument("tasks", nargs="+", type=utf8_text, metavar="TASK", help="The name of a task."),
]


class Command(ActionCommand):
    help = "Pause and resume tasks, and list those that are paused."
    exit_codes = (
        "Exit codes: 0 done, even if there was nothing to do; 1 a queue or a task is unknown, a queue has 100 paused "
        "tasks, or Redis did not answer; 64 wrong usage. A pause holds for all workers from their next claim on, and "
        "survives restarts."
    )
    actions = {
        "list": Action(
            "Show the tasks that are paused, by queue, and how many of their jobs are held.", reads_only=True
        ),
        "pause": Action(
            "Start no more jobs of tasks. New ones wait, running jobs finish, and those of other tasks go on.",
            QUEUE_AND_TASKS,
        ),
        "resume": Action("Start the jobs of paused tasks again, before later jobs of their clients.", QUEUE_AND_TASKS),
    }

    def do_list(self, options: Options) -> None:
        rows = [_Row(queue.name, pause) for queue in get_inspector().queues.details() for pause in queue.paused_tasks]
        with override(None):
            self.print_list(
                options,
                COLUMNS,
                rows,
                lambda row: {"queue": row.queue, **asdict(row.pause)},
                if_none="No task is paused.",
            )

    def do_pause(self, options: Options) -> None:
        inspector, action = get_inspector(), options["action"]
        queue = None if options["queue"] == "*" else known_queues(inspector, [options["queue"]])[0]
        for task in options["tasks"] if action == "pause" else ():
            get_public_task(task)
        changed: dict[str, list[str]] = {}
        try:
            for task in options["tasks"]:
                if options["dry_run"]:
                    changed[task] = _would_change(inspector, task, queue, action)
                elif action == "pause":
                    changed[task] = inspector.task_pauses.pause_task(task, queue, by=system_user())
                else:
                    changed[task] = inspector.task_pauses.resume_task(task, queue)
        except TooManyPausedTasks as error:
            self._report(options, {**changed, **({task: error.paused} if error.paused else {})})
            raise
        self._report(options, changed)

    do_resume = do_pause

    def _report(self, options: Options, changed: Mapping[str, list[str]]) -> None:
        sentences = (_said(options, one_line(task, 100), queues) for task, queues in changed.items())
        self.report(options, {f"{options['action']}d": changed}, sentences)


def _would_change(inspector: Inspector, task: str, queue: str | None, action: str) -> list[str]:
    """The queues in which some name of the task is not paused yet, or is paused."""
    names, queues = set(names_of(task)), []
    for details in inspector.queues.details(None if queue is None else [queue]):
        paused = names & {pause.task for pause in details.paused_tasks if not pause.is_over}
        if (paused != names) if action == "pause" else paused:
            queues.append(details.name)
    return queues


def _said(options: Options, task: str, changed: list[str]) -> str:
    queue = options["queue"]
    if changed:
        where = f" in queue{'s' if len(changed) > 1 else ''} {', '.join(changed)}"
    elif queue == "*":
        where = " in all queues" if options["action"] == "pause" else " in any queue"
    else:
        where = f" in queue {queue}"
    resume = f"rtq_tasks resume {shlex.quote(queue)} {shlex.quote(task)}"
    return switched(options, f"task {task}", where, is_changed=bool(changed), resume=resume)

"""manage.py rtq_tasks: list, pause and resume tasks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from django_rtq.console.commands.command import EVERY_QUEUE, Action, SheetCommand
from django_rtq.console.commands.prompts import utf8_text
from django_rtq.console.reading.readers import Readers
from django_rtq.console.reading.task_details import LISTED_HOURS
from django_rtq.console.subjects.tasks import TASKS
from django_rtq.core.commands.command import Argument, Options
from django_rtq.core.tasks.registry import get_public_task, names_of

QUEUE_AND_TASKS = [
    EVERY_QUEUE,
    Argument("tasks", nargs="+", type=utf8_text, metavar="TASK", help="The name of a task."),
]


class Command(SheetCommand):
    help = "List tasks with their runs and pauses, pause and resume them."
    exit_codes = (
        "Exit codes: 0 done, even if there was nothing to do; 1 a queue or a task is unknown, a queue has 100 paused "
        "tasks, or Redis did not answer; 64 wrong usage. A pause holds for all workers from their next claim on, and "
        "survives restarts."
    )
    actions = {
        "list": Action(
            f"Show the tasks, paused ones first: runs of the last {LISTED_HOURS} hours, and the jobs that pauses hold.",
            reads_only=True,
        ),
        "pause": Action(
            "Start no more jobs of tasks. New ones wait, running jobs finish, and those of other tasks go on.",
            QUEUE_AND_TASKS,
        ),
        "resume": Action("Start the jobs of paused tasks again, before later jobs of their clients.", QUEUE_AND_TASKS),
    }

    def do_list(self, options: Options) -> None:
        rows = sorted(TASKS.read(self.readers), key=lambda row: not row.pauses)
        self.print_sheet(options, TASKS, rows)

    def do_pause(self, options: Options) -> None:
        action = options["action"]
        for task in options["tasks"] if action == "pause" else ():
            get_public_task(task)
        self.switch_in_queues(options, "task", options["tasks"], partial(_would_change, action))

    do_resume = do_pause


def _would_change(action: str, shard: Readers, task: str, queue: str | None) -> Iterator[str]:
    """The queues in which some name of the task is not paused yet, or is paused."""
    names = names_of(task)
    for details in shard.queues.details(None if queue is None else [queue]):
        paused = {*names} & {pause.task for pause in details.paused_tasks if not pause.is_over}
        if len(paused) < len(names) if action == "pause" else paused:
            yield details.name

"""manage.py rtq_tasks: list, pause and resume tasks."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

from django.utils.translation import override

from django_rtq.console.commands.command import EVERY_QUEUE, Action, ActionCommand, switched
from django_rtq.console.commands.prompts import known_queues, system_user, utf8_text
from django_rtq.console.inspector.inspector import Inspector, get_inspector
from django_rtq.console.inspector.metrics.reader import TaskMetrics
from django_rtq.console.inspector.task_pauses import TaskPause
from django_rtq.console.output import Column, duration, facts
from django_rtq.core.commands.command import Argument, Options, one_line
from django_rtq.core.jobs.aliases import names_of
from django_rtq.core.tasks.registry import all_tasks, get_public_task
from django_rtq.exceptions import TooManyPausedTasks

HOURS = 24  # of the metrics that are listed
METRICS = ("done", "failed", "crashed", "run_p50", "run_p95", "wait_p50", "wait_p95")


class _Row(NamedTuple):
    task: str
    metrics: TaskMetrics
    pauses: list[tuple[str, TaskPause]]  # of the queues in which it is paused

    @property
    def held(self) -> int:
        return sum(pause.held for _, pause in self.pauses)

    @property
    def state(self) -> str:
        resumed = "resumed: its jobs go back to their lanes"
        return "; ".join(f"{queue}: {resumed if pause.is_over else pause.text}" for queue, pause in self.pauses) or "-"

    def as_dict(self) -> dict[str, Any]:
        paused = [{"queue": queue, **asdict(pause)} for queue, pause in self.pauses]
        return {"task": self.task, **facts(self.metrics, METRICS), "held": self.held, "paused": paused}


COLUMNS = [
    Column("TASK", lambda row: row.task),
    Column("DONE", lambda row: row.metrics.done, right=True),
    Column("FAILED", lambda row: row.metrics.failed, right=True),
    Column("RUN P95", lambda row: duration(row.metrics.run_p95), right=True),
    Column("WAIT P95", lambda row: duration(row.metrics.wait_p95), right=True),
    Column("HELD", lambda row: row.held, right=True),
    Column("PAUSED", lambda row: row.state),
]
QUEUE_AND_TASKS = [
    EVERY_QUEUE,
    Argument("tasks", nargs="+", type=utf8_text, metavar="TASK", help="The name of a task."),
]


class Command(ActionCommand):
    help = "List tasks with their runs and pauses, pause and resume them."
    exit_codes = (
        "Exit codes: 0 done, even if there was nothing to do; 1 a queue or a task is unknown, a queue has 100 paused "
        "tasks, or Redis did not answer; 64 wrong usage. A pause holds for all workers from their next claim on, and "
        "survives restarts."
    )
    actions = {
        "list": Action(
            f"Show the tasks, paused ones first: runs of the last {HOURS} hours, and the jobs that pauses hold.",
            reads_only=True,
        ),
        "pause": Action(
            "Start no more jobs of tasks. New ones wait, running jobs finish, and those of other tasks go on.",
            QUEUE_AND_TASKS,
        ),
        "resume": Action("Start the jobs of paused tasks again, before later jobs of their clients.", QUEUE_AND_TASKS),
    }

    def do_list(self, options: Options) -> None:
        metrics, queues = get_inspector().tasks.all(HOURS)
        pauses: dict[str, list[tuple[str, TaskPause]]] = {}
        for queue in queues:
            for pause in queue.paused_tasks:
                pauses.setdefault(pause.task, []).append((queue.name, pause))
        internal = {name for name, task in all_tasks().items() if task.internal}
        names = sorted({*all_tasks(), *metrics, *pauses}, key=lambda name: (name not in pauses, name in internal, name))
        rows = [_Row(name, metrics.get(name, TaskMetrics()), pauses.get(name, [])) for name in names]
        with override(None):
            self.print_list(options, COLUMNS, rows, _Row.as_dict)

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

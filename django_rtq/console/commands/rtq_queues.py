"""manage.py rtq_queues: list, pause, resume and purge queues, and forget those that are not used any more."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

from django.core.management.base import CommandError

from django_rtq.console.commands.command import NO_INPUT, Action, ActionCommand, switched
from django_rtq.console.commands.prompts import known_queues
from django_rtq.console.commands.purging import purge
from django_rtq.console.inspector.details import QueueDetails
from django_rtq.console.inspector.inspector import get_inspector
from django_rtq.console.output import Column, count, duration, number
from django_rtq.core.commands.command import Argument, Options
from django_rtq.core.tasks.registry import declared_queues


class _Row(NamedTuple):
    queue: QueueDetails
    is_declared: bool
    workers: int  # that serve it

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self.queue), "declared": self.is_declared, "workers": self.workers}


COLUMNS = [
    Column("QUEUE", lambda row: row.queue.name),
    Column("DECLARED", lambda row: "yes" if row.is_declared else "no"),
    Column("STATE", lambda row: "paused" if row.queue.paused else "open"),
    Column("WORKERS", lambda row: row.workers, right=True),
    Column("WAITING", lambda row: _waiting(row.queue), right=True),
    Column("RUNNING", lambda row: row.queue.running, right=True),
    Column("DEAD", lambda row: row.queue.dead, right=True),
    Column("FINISHED", lambda row: row.queue.finished, right=True),
    Column("OLDEST", lambda row: duration(row.queue.oldest_seconds), right=True),
]
WHY_NOT = {
    "jobs": "it has jobs or dead letters. See rtq_jobs list --queue {0}",
    "paused": "it is paused. Resume it first:  python manage.py rtq_queues resume {0}",
    "limits": "it has limits, or clients that are paused. See rtq_clients list {0}",
    "workers": "a worker serves it. See rtq_workers list --queue {0}",
    "recent": "its last jobs finished a few minutes ago, and could be sent again. Try again in two minutes.",
    "outcomes": "it keeps outcomes of finished jobs. Add --discard-outcomes to delete them.",
}
QUEUES = Argument("queues", nargs="+", metavar="QUEUE", help="The name of a queue.")
DISCARD_OUTCOMES = Argument(
    "--discard-outcomes", action="store_true", help="Delete the outcomes of finished jobs with it."
)


class Command(ActionCommand):
    help = "List, pause, resume and purge queues, and forget those that are not used any more."
    exit_codes = (
        "Exit codes: 0 done, even if there was nothing to do; 1 a queue is unknown (then none is paused or resumed) or "
        "in use (the others are forgotten), not confirmed, or Redis did not answer (some jobs may have been purged "
        "before); 64 wrong usage; 130 stopped with Ctrl-C."
    )
    actions = {
        "list": Action(
            "Show all queues: those that tasks and settings declare, and those that were used.", reads_only=True
        ),
        "pause": Action(
            "Pause queues: jobs can still be enqueued and running jobs finish, but no worker starts another one.",
            [QUEUES],
        ),
        "resume": Action("Resume paused queues. Workers continue at once.", [QUEUES]),
        "purge": Action(
            "Delete all queued, scheduled and retrying jobs of a queue. Running jobs and dead letters stay. Jobs that "
            "are enqueued meanwhile are deleted too; stop their producers first, if there are many.",
            [Argument("queues", nargs=1, metavar="QUEUE", help="The queue to empty."), NO_INPUT],
        ),
        "forget": Action(
            "Remove queues without jobs and workers from all lists. A queue that is used again comes back.",
            [QUEUES, DISCARD_OUTCOMES],
        ),
    }

    def do_list(self, options: Options) -> None:
        inspector, declared = get_inspector(), declared_queues()
        queues = inspector.queues.details(sorted({*declared, *inspector.queues.names()}))
        workers = inspector.workers([queue.name for queue in queues])
        rows = [
            _Row(queue, queue.name in declared, sum(queue.name in worker.queues for worker in workers))
            for queue in queues
        ]
        self.print_list(options, COLUMNS, rows, _Row.as_dict)

    def do_pause(self, options: Options) -> None:
        inspector, action = get_inspector(), options["action"]
        names = known_queues(inspector, options["queues"])
        if options["dry_run"]:
            changed = {queue.name: queue.paused == (action == "resume") for queue in inspector.queues.details(names)}
        else:
            changed = {name: (inspector.pause if action == "pause" else inspector.resume)(name) for name in names}
        sentences = (
            switched(options, f"queue {name}", is_changed=changed[name], resume=f"rtq_queues resume {name}")
            for name in names
        )
        self.report(options, {f"{action}d": names, "changed": [name for name in names if changed[name]]}, sentences)

    do_resume = do_pause

    def do_purge(self, options: Options) -> None:
        inspector = get_inspector()
        (queue,) = known_queues(inspector, options["queues"])
        (details,) = inspector.queues.details([queue])
        purged = purge(self, options, queue, None, waiting=_waiting(details))
        done = f"{'Would purge' if options['dry_run'] else 'Purged'} {count(purged, 'job')} from queue {queue}."
        nothing = f"No job waits in queue {queue}: nothing was deleted."
        self.report(options, {"queue": queue, "purged": purged}, [done if purged else nothing])

    def do_forget(self, options: Options) -> None:
        inspector, failed = get_inspector(), {}
        names = known_queues(inspector, options["queues"])
        for name in names:
            answer = inspector.forget(name, discard_outcomes=options["discard_outcomes"], is_dry_run=options["dry_run"])
            if answer in WHY_NOT:
                failed[name] = WHY_NOT[answer].format(name)
        done, declared = [name for name in names if name not in failed], declared_queues()
        verb = "Would forget" if options["dry_run"] else "Forgot"
        comes_back = " It is declared, so it comes back when it is used."
        sentences = (f"{verb} queue {name}.{comes_back if name in declared else ''}" for name in done)
        self.report(options, {"forgotten": done, "failed": failed}, sentences)
        if not options["json"]:
            for name, why in failed.items():
                self.stderr.write(f"Queue {name} stays: {why}")
        if failed:
            raise CommandError(f"{number(len(failed))} of {count(len(names), 'queue')} could not be forgotten.")


def _waiting(queue: QueueDetails) -> int:
    return queue.queued + queue.scheduled + queue.retrying

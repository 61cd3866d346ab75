"""manage.py rtq_queues: list, pause, resume and purge queues, and forget those that are not used any more."""

from __future__ import annotations

from itertools import chain

from django_rtq.console.acting.actions import ACTIONS
from django_rtq.console.acting.verb import Target
from django_rtq.console.commands.command import NO_INPUT, Action, SheetCommand
from django_rtq.console.commands.job_actions import clear
from django_rtq.console.commands.prompts import known_queues, system_user
from django_rtq.console.reading.selection import Selection
from django_rtq.console.reading.sweep import Sweep
from django_rtq.console.subjects.queues import QUEUES, Queue
from django_rtq.core.commands.command import Argument, Options
from django_rtq.core.tasks.registry import declared_queues

NAMES = Argument("queues", nargs="+", metavar="QUEUE", help="The name of a queue.")
DISCARD_OUTCOMES = Argument(
    "--discard-outcomes", action="store_true", help="Delete the outcomes of finished jobs with it."
)


class Command(SheetCommand):
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
            [NAMES],
        ),
        "resume": Action("Resume paused queues. Workers continue at once.", [NAMES]),
        "purge": Action(
            "Delete all queued, scheduled and retrying jobs of a queue. Running jobs and dead letters stay. Jobs that "
            "are enqueued meanwhile are deleted too; stop their producers first, if there are many.",
            [Argument("queues", nargs=1, metavar="QUEUE", help="The queue to empty."), NO_INPUT],
        ),
        "forget": Action(
            "Remove queues without jobs and workers from all lists. A queue that is used again comes back.",
            [NAMES, DISCARD_OUTCOMES],
        ),
    }

    def do_list(self, options: Options) -> None:
        self.print_sheet(options, QUEUES, QUEUES.read(self.readers))

    def do_pause(self, options: Options) -> None:
        readers, action = self.readers, options["action"]
        names = known_queues(readers, options["queues"])
        verb, targets = ACTIONS[f"{action}_queue"], {name: Target(name, by=system_user()) for name in names}
        every = readers.in_each_shard(lambda shard: shard.queues.details(names)) if options["dry_run"] else ()
        would = {each.name for each in chain.from_iterable(every) if verb.applies(Queue(each))}
        said = self.run_each(options, "queue", targets, lambda name: "done" if name in would else "nothing")
        changed = [name for name, each in said.items() if each.how == "done"]
        self.report(options, {f"{action}d": names, "changed": changed}, [each.text for each in said.values()])

    do_resume = do_pause

    def do_purge(self, options: Options) -> None:
        (queue,) = known_queues(self.readers, options["queues"])
        purged = clear(self, options, {queue: Sweep(verb="purge", selection=Selection(queues=[queue]))})
        self.report(options, {"queue": queue, "purged": purged[queue]}, ())

    def do_forget(self, options: Options) -> None:
        readers, declared = self.readers, declared_queues(self.name)
        chosen = {"discard_outcomes": options["discard_outcomes"]}
        targets = {name: Target(name, value=chosen) for name in known_queues(readers, options["queues"])}

        def would(name: str) -> str:
            answer = self.rtq.queues[name].forget(**chosen, is_dry_run=True)
            return {"forgotten": "done", "missing": "nothing"}.get(answer, answer)

        said = self.run_each(options, "queue", targets, would)
        failed = {
            name: f"{each.text}{' Add --discard-outcomes to delete them.' if each.answer == 'outcomes' else ''}"
            for name, each in said.items()
            if each.how == "refused"
        }
        done = [name for name in said if name not in failed]
        comes_back = " It is declared, so it comes back when it is used."
        sentences = [f"{said[name].text}{comes_back if name in declared else ''}" for name in done]
        self.report(options, {"forgotten": done, "failed": failed}, sentences)
        self.complain(options, failed.values(), len(said), "queue", "forgotten")

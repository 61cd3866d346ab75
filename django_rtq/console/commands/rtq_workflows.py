"""manage.py rtq_workflows: list workflows, show one, cancel it, requeue its dead jobs."""

from __future__ import annotations

from functools import partial

from django_rtq.console.commands.command import AFTER, LIMIT, Action, SheetCommand
from django_rtq.console.commands.prompts import positive
from django_rtq.console.output import count
from django_rtq.console.reading.members import recent_in
from django_rtq.console.subjects.workflows import STEPS, WORKFLOWS
from django_rtq.core.commands.command import Argument, Options
from django_rtq.workflows.handle import Workflow, get_workflow

ID = Argument("id", metavar="ID", help="The id of a workflow.")


class Command(SheetCommand):
    takes_shard = False
    help = "List workflows, show one with its steps, cancel it, or requeue its dead jobs."
    exit_codes = "Exit codes: 0 done; 1 there is no such workflow, or Redis did not answer; 64 wrong usage."
    actions = {
        "list": Action(
            "Show the workflows in which something happened last.",
            [LIMIT.but(default=50, help="At most so many (default: 50)."), AFTER.but(type=positive, default=0)],
            reads_only=True,
        ),
        "show": Action(
            "Show the steps of a workflow: how many of their jobs are done, dead, or gone (failed for good).",
            [ID],
            reads_only=True,
        ),
        "cancel": Action(
            "End a workflow: no step starts any more, waiting jobs are cancelled, running ones asked to stop.", [ID]
        ),
        "requeue": Action("Requeue all dead jobs of a workflow.", [ID]),
    }

    def do_list(self, options: Options) -> None:
        limit, start = options["limit"], options["after"]
        flows = enumerate(recent_in(self.readers, limit + 1, start=start), start + 1)
        rows = ((flow, partial(str, number)) for number, flow in flows)
        self.print_part(options, WORKFLOWS, rows, limit, if_none="There is no workflow.")

    def do_show(self, options: Options) -> None:
        progress = self._find(options).progress()
        self.print_sheet(options, WORKFLOWS, [progress])
        if not options["json"]:
            self.stdout.write()
            self.print_sheet(options, STEPS, STEPS.of(progress))

    def do_cancel(self, options: Options) -> None:
        flow = self._find(options)
        is_open = not flow.state.is_final if options["dry_run"] else flow.cancel()
        said = f"{'Would cancel' if options['dry_run'] else 'Cancelled'} workflow {flow.id} {flow.name}."
        over = f"Workflow {flow.id} {flow.name} is over already: {flow.state}."
        self.report(options, {"cancelled": is_open, "id": flow.id}, [said if is_open else over])

    def do_requeue(self, options: Options) -> None:
        flow = self._find(options)
        number = sum(1 for _ in flow.dead()) if options["dry_run"] else flow.requeue_dead()
        verb = "Would requeue" if options["dry_run"] else "Requeued"
        said = f"{verb} {count(number, 'dead job')} of workflow {flow.id} {flow.name}."
        self.report(options, {"requeued": number, "id": flow.id}, [said])

    def _find(self, options: Options) -> Workflow:
        return get_workflow(options["id"], backend=self.name)

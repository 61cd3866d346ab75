"""manage.py rtq_workflows: list workflows, show one, cancel it, requeue its dead jobs."""

from __future__ import annotations

from typing import Any

from django_rtq.console.commands.command import LIMIT, Action, ActionCommand
from django_rtq.console.nouns import Place
from django_rtq.console.output import Column, ago, count, facts
from django_rtq.console.reading.members import recent_in, why_not_started
from django_rtq.core.commands.command import Argument, Options
from django_rtq.core.jobs.job import moment
from django_rtq.workflows.handle import Workflow, WorkflowProgress, get_workflow

COLUMNS = [
    Column("ID", lambda flow: flow.id),
    Column("STATE", lambda flow: flow.state),
    Column("NAME", lambda flow: flow.name),
    Column("CLIENT", lambda flow: flow.client),
    Column("DONE", lambda flow: f"{flow.done} of {flow.size}", right=True),
    Column("DEAD", lambda flow: sum(step.dead for step in flow.steps), right=True),
    Column("MADE", lambda flow: ago(moment(flow.made_ms))),
]
STEP_COLUMNS = [
    Column("STEP", lambda step: str(step.number), right=True),
    Column("TASK", lambda step: step.task),
    Column("QUEUE", lambda step: step.queue),
    Column("STATE", lambda step: step.state),
    Column("JOBS", lambda step: step.size, right=True),
    Column("DONE", lambda step: step.done, right=True),
    Column("DEAD", lambda step: step.dead, right=True),
    Column("GONE", lambda step: step.gone, right=True),
    Column("AFTER", lambda step: ", ".join(map(str, step.after))),
]
ID = Argument("id", metavar="ID", help="The id of a workflow.")


class Command(ActionCommand):
    in_each_shard = takes_shard = False
    help = "List workflows, show one with its steps, cancel it, or requeue its dead jobs."
    exit_codes = "Exit codes: 0 done; 1 there is no such workflow, or Redis did not answer; 64 wrong usage."
    actions = {
        "list": Action(
            "Show the workflows in which something happened last.",
            [LIMIT.but(default=50, help="At most so many (default: 50).")],
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
        flows = recent_in(Place(self.place).readers, options["limit"])
        self.print_list(options, COLUMNS, flows, _as_dict, if_none="There is no workflow.")

    def do_show(self, options: Options) -> None:
        progress = self._find(options).progress()
        if options["json"]:
            self.print_list(options, COLUMNS, [progress], _as_dict)
        else:
            self.stdout.write(self.table_text(COLUMNS, [progress]))
            self.stdout.write("\n" + self.table_text(STEP_COLUMNS, progress.steps))
            for step in progress.steps:
                if reasons := "; ".join(why_not_started(progress, step)):
                    self.stdout.write(f"Step {step.number} waits: {reasons}.")

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
        return get_workflow(options["id"], backend=self.place)


def _as_dict(flow: WorkflowProgress) -> dict[str, Any]:
    return {
        "id": flow.id,
        "name": flow.name,
        "client": flow.client,
        "key": flow.key,
        "state": flow.state,
        "made_at": moment(flow.made_ms),
        "ended_at": moment(flow.ended_ms),
        "steps": [facts(step, _STEP) for step in flow.steps],
    }


_STEP = ("number", "task", "queue", "state", "size", "done", "dead", "gone", "after")

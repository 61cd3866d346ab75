"""For people: the workflow and step of a job, why a step does not start, and the workflows that a query names."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_rtq.console.formatting import format_number
from django_rtq.console.merging import joined
from django_rtq.console.reading.readers import Readers
from django_rtq.console.reading.selection import LONGEST, QueryError, Selection, query_error
from django_rtq.exceptions import WorkflowNotFound
from django_rtq.workflows import workflow_store
from django_rtq.workflows.handle import StepProgress, Workflow, WorkflowProgress, read_progress
from django_rtq.workflows.store import MOST_WORKFLOWS, workflow_of

_ID = re.compile("[0-9a-f]{12}")


class WorkflowStep(NamedTuple):
    """A step of a workflow, for people, in the language of the user."""

    workflow: WorkflowProgress
    step: StepProgress

    @property
    def state(self) -> str:
        """That of the step, or "blocked" if dead jobs keep it from going on."""
        return "blocked" if self.step.dead and self.step.state == "started" else self.step.state

    @property
    def blocked_by(self) -> str:
        """Why the workflow does not go on; "" if no job of it is dead."""
        return " ".join(f"{_dead_text(step)}." for step in self.workflow.blocking())

    @property
    def reasons(self) -> str:
        """What it waits for; "" if it has started."""
        texts = []
        for before in map(self.workflow.step, self.step.after if self.step.state == "waiting" else ()):
            if before.dead:
                texts.append(_dead_text(before))
            elif before.open:
                text = ngettext(
                    "%(open)s of %(size)s job of step %(step)s is not over",
                    "%(open)s of %(size)s jobs of step %(step)s are not over",
                    before.size,
                )
                texts.append(text % _values(before))
        return "; ".join(texts)


def step_of(job_id: str, place: str) -> WorkflowStep | None:
    """The workflow and step of a job. None for other jobs, and once the workflow is forgotten. Raises BrokerError."""
    workflow_id = workflow_of(job_id)
    if not workflow_id:
        return None
    try:
        progress = Workflow(workflow_id, backend=place).progress()
        number = int(job_id[-6:], 16)
    except (WorkflowNotFound, ValueError):
        return None
    for step in progress.steps:
        if 0 <= number - int(progress.fields[f"first:{step.number}"]) < step.size:
            return WorkflowStep(progress, step)
    return None


def read_query(readers: Readers, text: str, longest: int = LONGEST) -> Selection:
    """Read a query, and look up the workflows of a name. Raises QueryError, and for names of workflows BrokerError."""
    if len(text) > longest:
        raise QueryError(_("The query is longer than %(most)s characters.") % {"most": longest})
    return with_workflows(readers, Selection.parse(text))


def with_workflows(readers: Readers, query: Selection) -> Selection:
    """A query with the ids of the workflows that it names. Raises QueryError if there are none, and BrokerError."""
    name = query.workflow
    if not name or _ID.fullmatch(name):
        return query
    ids = tuple(joined(readers.every(lambda one: workflow_store(one.broker).having("name", name, MOST_WORKFLOWS))))
    if not ids and not readers.silent:  # or else a silent shard may have some
        raise query_error(f"workflow:{name}", _("no workflow has this name, or it ended long ago"))
    return replace(query, workflow_ids=ids)


def recent_in(readers: Readers, limit: int, *, start: int = 0, state: str = "") -> list[WorkflowProgress]:
    """The workflows in which something happened last, after so many others; of those in a state, if one is named.

    Of a shard that does not answer a page shows none. Raises BrokerError.
    """
    flows = list[WorkflowProgress]()
    before = 0 if readers.is_of_all_shards else start  # those of several shards are counted when they are sorted
    most = limit + start - before

    def read(one: Readers) -> list[tuple[str, dict[str, str]]]:
        store = workflow_store(one.broker)
        ids = store.recent(most, start=before, state=state)
        return list(zip(ids, store.read_fields(ids), strict=True))

    for workflow, fields in chain.from_iterable(readers.every(read)):
        with suppress(WorkflowNotFound):
            flows.append(read_progress(workflow, fields))
    if readers.is_of_all_shards:
        flows.sort(key=lambda flow: flow.ended_ms or flow.made_ms, reverse=True)
    return flows[start - before : most]


def _dead_text(step: StepProgress) -> str:
    text = ngettext(
        "%(dead)s of %(size)s job of step %(step)s is dead",
        "%(dead)s of %(size)s jobs of step %(step)s are dead",
        step.size,
    )
    return text % _values(step)


def _values(step: StepProgress) -> dict[str, str]:
    numbers = {name: format_number(getattr(step, name)) for name in ("dead", "open", "size")}
    return {**numbers, "step": step.task.rpartition(".")[2]}

"""What a run has to do with its workflow, and with what its job remembers."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.task_backends import alias_of
from django_rtq.core.conf.config import Config
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.job import about, is_member
from django_rtq.core.worker.run import Run
from django_rtq.exceptions import BrokerError, InvalidStep, InvalidWorkflow, JobSuspended, PayloadTooLarge
from django_rtq.workflows import step_store
from django_rtq.workflows.results import RESULT_TAG, resolve
from django_rtq.workflows.steps.store import Holder
from django_rtq.workflows.store import KEEPS, full_workflows, workflow_of

if TYPE_CHECKING:
    from django_rtq.workflows.builder import AddedSteps
    from django_rtq.workflows.steps.job_steps import JobSteps

logger = logging.getLogger("django_rtq")


class FlowPart:
    """Of one run. It does not keep the run, so that both are freed at once."""

    has_asked = False  # for steps, or for steps that it adds
    has_grown = False  # these were sent
    _steps: JobSteps | None = None  # what it knows of earlier runs, once it has asked
    _added: AddedSteps | None = None  # which it adds to its workflow

    def open(self, run: Run) -> None:
        """Its record was read."""
        run.takes_results = RESULT_TAG in run.record and is_member(run.job_id)
        run.keeps_result = run.job_id[16:17] == KEEPS

    def read_args(self, run: Run) -> tuple[list[Any], dict[str, Any]]:
        """Its arguments, with results of other jobs. Raises BrokerError, and WrongState for one that was lost."""
        return resolve(run.progress.backend if run.progress else "", run.args, run.kwargs)

    def workflow(self, run: Run) -> AddedSteps:
        """What collects the steps that it adds to its workflow. Raises InvalidWorkflow."""
        if run.task.batch:
            raise InvalidWorkflow("", f"is not there: {run.task_name} gets many jobs at once.")
        if not is_member(run.job_id):
            raise InvalidWorkflow("", f"is not there: job {run.id} belongs to none.")
        if run.task.exactly_once:
            raise InvalidWorkflow(
                workflow_of(run.id), "gets no steps from a task with exactly_once: its transaction has committed then."
            )
        self.has_asked = True
        if self._added is None:
            from django_rtq.workflows.builder import AddedSteps

            backend = alias_of(run.progress.backend) if run.progress is not None else ""
            headers = run.options.get("headers", {})
            self._added = AddedSteps(
                _holder(run), headers=headers, backend=backend, passed_by_later=self._passed_by_later
            )
        return self._added

    def _passed_by_later(self) -> str:
        return self._steps.passed_by_later() if self._steps is not None else ""

    def steps(self, run: Run) -> JobSteps:
        """What it knows of earlier runs. Raises InvalidStep."""
        if run.task.batch:
            raise InvalidStep(
                f"{run.task_name} gets many jobs at once, so it cannot remember steps, sleep or wait for events. Let "
                "it enqueue a job of another task."
            )
        self.has_asked = True
        if self._steps is None:
            from django_rtq.workflows.steps.job_steps import JobSteps  # few jobs have steps

            broker = get_broker(run.progress.backend if run.progress is not None else "")
            self._steps = JobSteps(
                step_store(broker),
                _holder(run),
                run.task_name,
                is_exactly_once=bool(run.task.exactly_once),
                patience_seconds=broker.config.lease_seconds,
                noting_outage=run.noting_outage,
            )
        return self._steps

    def end(self, run: Run) -> None:
        """Its function has returned: send what it adds to its workflow. Raises BrokerError and InvalidWorkflow; and
        what the function was left by, if it has swallowed that."""
        if self._steps is not None and (left_by := self._steps.left_by) is not None:
            text = "job %s: %s returned although it had to be left, so that is ignored: %s. Let JobSuspended pass."
            logger.warning(text, run.id, run.task_name, left_by, extra=about(run.job))
            raise left_by
        if self._added is not None:
            with run.noting_outage():
                self._added.send()
            self.has_grown = self._added.are_sent

    def leave(self, error: BaseException, failures: int) -> tuple[BaseException, int]:
        """Its function has raised this: store how far its loops are. Returns what the run fails by, and how many
        failures count before it."""
        if self._steps is None:
            return error, failures
        with suppress(BrokerError, JobSuspended):
            self._steps.do(self._steps.leave())
        # What it was left by, whatever its function has made of it.
        return self._steps.left_by or error, 0 if self._steps.has_progressed else failures

    async def aleave(self) -> None:
        """leave() for coroutines, which comes before it."""
        if self._steps is not None:
            with suppress(BrokerError, JobSuspended):
                await self._steps.ado(self._steps.leave())

    def check_result(self, run: Run, text: str, config: Config) -> None:
        """Raises PayloadTooLarge for a result, as JSON, that is too large for the steps that take it."""
        if config.max_step_result_bytes < config.max_payload_bytes:
            advice = "Another step of its workflow takes it: store it and return a key."
            limit = config.max_step_result_bytes
            serializer.check_size(run.task_name, "the result has", text, limit, advice, "MAX_STEP_RESULT_BYTES")

    def check_room(self, run: Run) -> None:
        """Raises PayloadTooLarge if its workflow has no room for the result."""
        if full_workflows and (flow := workflow_of(run.id)) in full_workflows:
            raise PayloadTooLarge(
                f"{run.task_name}: workflow {flow} keeps results of more than 64 MB, the most of one workflow. "
                "Another step takes this one, too: let the jobs store their results, and return keys."
            )


def _holder(run: Run) -> Holder:
    return Holder(run.queue, run.id, run.worker, run.now_ms)

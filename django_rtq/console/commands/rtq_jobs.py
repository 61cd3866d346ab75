"""manage.py rtq_jobs: list, show and cancel jobs, requeue or discard dead letters, run jobs now, send events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import starmap
from typing import Any, TypeVar

from django.core.management.base import CommandError
from django.utils.translation import override

from django_rtq.console.commands.command import SheetCommand
from django_rtq.console.commands.job_actions import (
    JOB_ACTIONS,
    LISTED_STATES,
    JobAction,
    check_selection,
    filters_in,
    in_named_queue,
    read_selection,
)
from django_rtq.console.nouns import OneJob, find_jobs
from django_rtq.console.output import as_json, count, duration, facts, number, on_clock
from django_rtq.console.reading.jobs.waiting_reason import waiting_reason
from django_rtq.console.reading.jobs.walk import WrongCursor
from django_rtq.console.reading.members import WorkflowStep, step_of
from django_rtq.console.reading.selection import STATES
from django_rtq.console.redaction import redacted
from django_rtq.console.subjects.jobs import JOBS, TIMES, written_text
from django_rtq.core.broker.task_backends import place_of_job, shard_of
from django_rtq.core.commands.command import WRONG_USAGE, one_line
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import JobState
from django_rtq.exceptions import BrokerUnavailable, JobError, PayloadError

T = TypeVar("T")
LISTED = 50  # unless --limit says otherwise
NONE_AT_ALL = "There are no jobs."
NO_MATCH = "No job matches."
_CALL = ("args", "kwargs", "headers", "options")
_FAILURE = ("worker", "version", "seconds", "error_class", "error", "traceback", "together")


class Command(SheetCommand):
    help = "List, show and cancel jobs, requeue or discard dead letters (jobs that failed too often), run jobs now."

    exit_codes = (
        "Exit codes: 0 done, even if there was nothing to do; 1 an id is unknown or its job is not in a state for "
        "this, not confirmed, unknown queue, or Redis did not answer (what was done before stays done); 64 wrong "
        "usage; 130 stopped with Ctrl-C."
    )
    actions = JOB_ACTIONS

    def do_cancel(self, options: dict[str, Any]) -> None:
        check_selection(options)
        JobAction(self, options).run()

    do_requeue = do_discard = do_run = do_cancel

    def do_send(self, options: dict[str, Any]) -> None:
        try:
            value = json.loads(options["value"])
        except ValueError as error:
            text = f"{options['value']!r} is no JSON: {error}. Write text in quotes: '\"yes\"'."
            raise CommandError(text, returncode=WRONG_USAGE) from error
        (job_id,) = options["ids"]
        try:
            in_named_queue(self.readers.find(job_id, options["queue"]), options)  # names a shard that does not answer
            OneJob(self.rtq, job_id, options["queue"]).send(options["event"], value)
        except (JobError, PayloadError, ValueError) as error:
            raise CommandError(one_line(error)) from error
        if options["json"]:
            self.stdout.write(as_json({"sent": job_id}))
        elif options["verbosity"] > 0:
            self.stdout.write(f"Sent event {one_line(options['event'])} to job {one_line(job_id)}.")

    @override("en")
    def do_list(self, options: dict[str, Any]) -> None:
        check_selection(options)
        readers, queue = self.readers, options["queue"]
        if options["ids"]:
            jobs, problems = self._find(options, lambda name: in_named_queue(readers.find(name, queue), options))
            if options["json"] or jobs:
                self.print_part(options, JOBS, ((redacted(job), str) for job in jobs), None, if_none="")
            self._report_problems(options, problems)
            return
        limit = options["limit"] or (None if options["json"] or options["all"] else LISTED)
        selection, if_none = read_selection(readers, options), NO_MATCH if filters_in(options) else NONE_AT_ALL
        usual = LISTED_STATES if options["query"] is None else STATES
        selection = replace(selection, states=selection.states or usual)
        # What is hidden from people cannot be found.
        found = find_jobs(readers, selection, cursor=options["after"], shown=redacted)
        try:
            self.print_part(options, JOBS, found, limit, if_none=if_none)
        except WrongCursor as error:
            raise CommandError(f"--after: {error}", returncode=WRONG_USAGE) from None

    @override("en")
    def do_show(self, options: dict[str, Any]) -> None:
        readers = self.readers

        def find(name: str) -> tuple[JobDetails, str, int | None, WorkflowStep | None]:
            job, position = readers.find_with_position(name, options["queue"])
            place = place_of_job(readers.place, in_named_queue(job, options).id)
            return redacted(job), waiting_reason(job, position), shard_of(place), step_of(job.id, place)

        jobs, problems = self._find(options, find)
        if options["json"]:
            self.print_json(starmap(job_dict_in_full, jobs))
        else:
            self.stdout.write("\n\n".join(map("\n".join, starmap(job_lines, jobs))))
        self._report_problems(options, problems)

    def _find(self, options: dict[str, Any], find: Callable[[str], T]) -> tuple[list[T], list[str]]:
        """The jobs of these ids, and sentences about those that are not there."""
        jobs, problems = list[T](), list[str]()
        for name in dict.fromkeys(options["ids"]):
            try:
                jobs.append(find(name))
            except JobError as error:
                problems.append(one_line(error))
            except BrokerUnavailable:
                if not self.silent:
                    raise
        return jobs, problems

    def _report_problems(self, options: dict[str, Any], problems: list[str]) -> None:
        for problem in problems:
            self.stderr.write(problem)
        if problems:
            wanted = count(len(dict.fromkeys(options["ids"])), "id")
            raise CommandError(f"{number(len(problems))} of {wanted} could not be shown.")


# -- one job, redacted


def job_dict_in_full(
    job: JobDetails, waiting_reason: str, shard: int | None, member: WorkflowStep | None
) -> dict[str, Any]:
    """A job as JSON, with all that is known of it."""
    return {
        **JOBS.as_dict(job, of_shards=shard is not None),
        "waiting_reason": waiting_reason,
        "exactly_once": written_text(job) or None,
        "workflow": member and {"id": member.workflow.id, "name": member.workflow.name, "step": member.step.number},
        **facts(job, ("options", "is_stopping", "seconds", "result", "event", "is_asleep")),
        "failures": [
            {"attempt": attempt.number, **_with_time(attempt, _FAILURE, "ended_at")} for attempt in job.attempts
        ],
        "steps": [_with_time(step, ("name", "seconds", "result"), "ended_at") for step in job.steps],
        "log": [_with_time(line, ("attempt", "level", "logger", "text"), "at") for line in job.log],
    }


def _with_time(item: object, names: Sequence[str], time: str) -> dict[str, Any]:
    at: datetime | None = getattr(item, time)
    return {**facts(item, names), time: at.isoformat() if at else None}


def job_lines(job: JobDetails, waiting_reason: str, shard: int | None, member: WorkflowStep | None) -> Iterator[str]:
    """A job as text, a fact on each line, and its failed runs with their tracebacks, the newest first."""
    for name, text in _facts(job, waiting_reason, shard, member).items():
        if text:
            yield f"{name + ':':<12}{one_line(text)}"
    for attempt in reversed(job.attempts):
        heading = ": ".join(filter(None, (attempt.error_class, attempt.error)))
        call = f", call of {attempt.together}" if attempt.together > 1 else ""
        version = f", version {attempt.version}" if attempt.version else ""
        yield ""
        yield (
            f"Attempt {attempt.number or '?'} failed, {on_clock(attempt.ended_at)}, after "
            f"{duration(attempt.seconds)}{version}{call}: {one_line(heading)}"
        )
        yield from (f"  {one_line(line)}" for line in attempt.traceback.splitlines())
    yield from _steps(job)
    yield from _log(job)


def _facts(job: JobDetails, waiting_reason: str, shard: int | None, member: WorkflowStep | None) -> dict[str, str]:
    """What is printed of it, by name; "": nothing."""
    result = "(lost)" if job.is_result_lost else as_json(job.result)
    failed, crashed, flow = number(job.failures), number(job.crashes), member and member.workflow
    step = member and f"This is a job of step {member.step.number}, {member.step.task}"
    return {
        "Job": job.id,
        "State": f"{job.state}, asked to stop" if job.is_stopping else str(job.state),
        "Waiting": waiting_reason,
        "Written": written_text(job),
        "Task": job.task or "(unreadable)",
        "Queue": job.queue,
        "Shard": "" if shard is None else str(shard),
        "Client": job.client or "-",
        "Workflow": f"{flow.id} {flow.name}, {flow.state}. {step}" if flow else "",
        "Blocked": member.blocked_by if member else "",
        **{name.capitalize(): as_json(value) for name in _CALL if (value := getattr(job, name))},
        "Priority": str(job.priority or ""),
        "Attempts": f"{number(job.attempt)} ({failed} failed, {crashed} crashed)",
        **{name.removesuffix("_at").capitalize(): on_clock(at) for name in TIMES if (at := getattr(job, name))},
        "Worker": job.worker,
        "Progress": str(job.progress or ""),
        "Ran for": "" if job.seconds is None else duration(job.seconds),
        "Result": result if job.state is JobState.SUCCEEDED else "",
    }


def _steps(job: JobDetails) -> Iterator[str]:
    if job.steps:
        yield ""
        yield "Finished steps:"
    for step in job.steps:
        how = "event" if step.seconds is None else duration(step.seconds)
        yield f"  {on_clock(step.ended_at)} {one_line(step.name)} ({how}): {one_line(as_json(step.result))[:200]}"


def _log(job: JobDetails) -> Iterator[str]:
    if job.log:
        yield ""
        yield "Log:"
    attempt = 1
    for line in job.log:
        if line.attempt != attempt:
            attempt = line.attempt
            yield f"  -- attempt {attempt} --"
        first, *others = line.text.splitlines() or [""]
        yield f"  {on_clock(line.at)} {one_line(line.level)} {one_line(line.logger)}: {one_line(first)}"
        yield from (f"    {one_line(other)}" for other in others)

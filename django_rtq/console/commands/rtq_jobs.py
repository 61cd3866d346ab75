"""manage.py rtq_jobs: list, show and cancel jobs, requeue or discard dead letters, run jobs now, send events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
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
_FAILURE = ("worker", "version", "seconds", "error_class", "error", "traceback", "together", "ended_at")
# What text tells of each failed run, or at the end.
_LATER = ("error_class", "error", "traceback", "time", "failures", "steps", "log")


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

        def find(name: str) -> tuple[JobDetails, dict[str, Any]]:
            job, position = readers.find_with_position(name, options["queue"])
            place, job = place_of_job(readers.place, in_named_queue(job, options).id), redacted(job)
            return job, job_facts(job, waiting_reason(job, position), shard_of(place), step_of(job.id, place))

        jobs, problems = self._find(options, find)
        if options["json"]:
            self.print_json(told for _, told in jobs)
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


def job_facts(job: JobDetails, waiting: str, shard: int | None, member: WorkflowStep | None) -> dict[str, Any]:
    """All that is known of a job, as JSON."""
    return {
        **facts(job, ("id", "state")),
        "waiting_reason": waiting,
        "exactly_once": written_text(job) or None,
        "workflow": member and {**facts(member.workflow, ("id", "name")), "step": member.step.number},
        "blocked": member and member.blocked_by,
        **JOBS.as_dict(job, of_shards=shard is not None),
        **facts(job, ("options", "crashes", "is_stopping", "seconds", "version", "result", "is_result_lost")),
        **facts(job, ("event", "is_asleep")),
        "failures": [{"attempt": attempt.number, **facts(attempt, _FAILURE)} for attempt in job.attempts],
        "steps": [facts(step, ("name", "ended_at", "seconds", "result")) for step in job.steps],
        "log": [facts(line, ("attempt", "at", "level", "logger", "text")) for line in job.log],
    }


def job_lines(job: JobDetails, told: Mapping[str, Any]) -> Iterator[str]:
    """The same as text, a fact on each line, and its failed runs with their tracebacks, the newest first."""
    for name, value in told.items():
        is_told = job.state is JobState.SUCCEEDED if name == "result" else value or name == "shard"
        if is_told and name not in _LATER:
            text = on_clock(getattr(job, name)) if name in TIMES else duration(value) if name == "seconds" else value
            text = text if isinstance(text, str) and name != "result" else as_json(value)
            yield f"{name.replace('_', ' ').capitalize() + ':':<16}{one_line(text)}"
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
    if job.steps:
        yield from ("", "Finished steps:")
    for step in job.steps:
        how = "event" if step.seconds is None else duration(step.seconds)
        yield f"  {on_clock(step.ended_at)} {one_line(step.name)} ({how}): {one_line(as_json(step.result))[:200]}"
    yield from _log(job)


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

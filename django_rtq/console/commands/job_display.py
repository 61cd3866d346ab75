"""One job as rtq_jobs prints it: as lines of text, as JSON. It is redacted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from django_rtq.console.output import as_json, duration, facts, number, on_clock
from django_rtq.console.reading.jobs.written import written_text
from django_rtq.console.reading.members import Membership
from django_rtq.console.subjects.jobs import JOBS, TIMES
from django_rtq.core.commands.command import one_line
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import JobState

_FAILURE = ("worker", "version", "seconds", "error_class", "error", "traceback", "together")


def job_dict_in_full(job: JobDetails, waiting_reason: str, member: Membership | None = None) -> dict[str, Any]:
    """A job as JSON, with all that is known of it."""
    return {
        **JOBS.as_dict(job, of_shards=job.shard is not None),
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


def job_lines(job: JobDetails, waiting_reason: str, member: Membership | None = None) -> Iterator[str]:
    """A job as text, a fact on each line, and its failed runs with their tracebacks, the newest first."""
    for name, text in (*_identity(job, waiting_reason, member), *_facts(job)):
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


def _identity(job: JobDetails, waiting_reason: str, member: Membership | None) -> Iterator[tuple[str, str]]:
    yield "Job", job.id
    detail = ", asked to stop" if job.is_stopping else ""
    yield "State", f"{job.state}{detail}"
    if waiting_reason:
        yield "Waiting", waiting_reason
    if written := written_text(job):
        yield "Written", written
    yield "Task", job.task or "(unreadable)"
    yield "Queue", job.queue
    if job.shard is not None:
        yield "Shard", str(job.shard)
    yield "Client", job.client or "-"
    if member:
        flow, step = member.workflow, member.step
        yield "Workflow", f"{flow.id} {flow.name}, {flow.state}. This is a job of step {step.number}, {step.task}"
        if member.blocked_by:
            yield "Blocked", member.blocked_by


def _facts(job: JobDetails) -> Iterator[tuple[str, str]]:
    for name in ("args", "kwargs", "headers", "options"):
        if value := getattr(job, name):
            yield name.capitalize(), as_json(value)
    if job.priority:
        yield "Priority", str(job.priority)
    yield "Attempts", f"{number(job.attempt)} ({number(job.failures)} failed, {number(job.crashes)} crashed)"
    for name in TIMES:
        if at := getattr(job, name):
            yield name.removesuffix("_at").capitalize(), on_clock(at)
    if job.worker:
        yield "Worker", job.worker
    if job.progress:
        yield "Progress", str(job.progress)
    if job.seconds is not None:
        yield "Ran for", duration(job.seconds)
    if job.state is JobState.SUCCEEDED:
        yield "Result", "(lost)" if job.is_result_lost else as_json(job.result)


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

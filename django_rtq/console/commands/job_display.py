"""Jobs as rtq_jobs prints them: rows of a table, lines of text, JSON. Of redacted jobs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.utils.timezone import localtime

from django_rtq.console.output import Column, ago, as_json, duration, number
from django_rtq.console.reading.jobs.written import written_text
from django_rtq.console.reading.members import Membership
from django_rtq.core.commands.command import one_line
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.failure import Attempt
from django_rtq.core.jobs.job import JobState

COLUMNS = [
    Column("ID"),
    Column("STATE"),
    Column("QUEUE"),
    Column("TASK"),
    Column("CLIENT"),
    Column("ATTEMPTS", right=True),
    Column("TIME"),
    Column("ERROR"),
]
_TIMES = ("made_at", "ready_at", "due_at", "expires_at", "claimed_at", "died_at", "finished_at")


def job_row(job: JobDetails, *, cut: bool) -> list[str]:
    """The cells of a job, for COLUMNS. With `cut`, long texts are truncated, and the time is told by its distance."""
    kind, message = job.newest_error
    kind = kind.rpartition(".")[2]
    error = f"{kind}: {message}" if kind and message else kind or message
    return [
        one_line(job.id),
        str(job.state),
        job.queue,
        one_line(job.task or "(unreadable)", 60 if cut else None),
        one_line(job.client, 30 if cut else None),
        number(_attempts(job)),
        ago(_time_of(job)) if cut else _on_clock(_time_of(job)),
        one_line(error, 80 if cut else None),
    ]


def job_dict(job: JobDetails) -> dict[str, Any]:
    """A job as JSON, with its newest failure."""
    newest = job.attempts[-1] if job.attempts else Attempt.read({})
    return {
        "id": job.id,
        **({} if job.shard is None else {"shard": job.shard}),
        "state": str(job.state),
        "task": job.task,
        "queue": job.queue,
        "client": job.client,
        "priority": job.priority,
        "args": job.args,
        "kwargs": job.kwargs,
        "headers": job.headers,
        "attempts": _attempts(job),
        "error_class": newest.error_class,
        "error": newest.error,
        "traceback": newest.traceback,
        **{name: at.isoformat() if (at := getattr(job, name)) else None for name in _TIMES},
        "worker": job.worker,
    }


def job_dict_in_full(job: JobDetails, waiting_reason: str, member: Membership | None = None) -> dict[str, Any]:
    """A job as JSON, with all that is known of it."""
    return {
        **job_dict(job),
        "waiting_reason": waiting_reason,
        "exactly_once": written_text(job) or None,
        "workflow": member and {"id": member.workflow.id, "name": member.workflow.name, "step": member.step.number},
        "options": job.options,
        "progress": str(job.progress) if job.progress else None,
        "is_stopping": job.is_stopping,
        "seconds": job.seconds,
        "result": job.result,
        "failures": [
            {
                "attempt": attempt.number,
                "worker": attempt.worker,
                "ended_at": attempt.ended_at.isoformat() if attempt.ended_at else None,
                "seconds": attempt.seconds,
                "error_class": attempt.error_class,
                "error": attempt.error,
                "traceback": attempt.traceback,
                "together": attempt.together,
            }
            for attempt in job.attempts
        ],
        "event": job.event,
        "is_asleep": job.is_asleep,
        "steps": [
            {
                "name": step.name,
                "ended_at": step.ended_at.isoformat() if step.ended_at else None,
                "seconds": step.seconds,
                "result": step.result,
            }
            for step in job.steps
        ],
        "log": [
            {
                "attempt": line.attempt,
                "at": line.at.isoformat() if line.at else None,
                "level": line.level,
                "logger": line.logger,
                "text": line.text,
            }
            for line in job.log
        ],
    }


def job_lines(job: JobDetails, waiting_reason: str, member: Membership | None = None) -> Iterator[str]:
    """A job as text, a fact on each line, and its failed runs with their tracebacks, the newest first."""
    for name, text in (*_identity(job, waiting_reason), *_workflow(member), *_facts(job)):
        yield f"{name + ':':<12}{one_line(text)}"
    for attempt in reversed(job.attempts):
        heading = ": ".join(filter(None, (attempt.error_class, attempt.error)))
        call = f", call of {attempt.together}" if attempt.together > 1 else ""
        yield ""
        yield (
            f"Attempt {attempt.number or '?'} failed, {_on_clock(attempt.ended_at)}, after "
            f"{duration(attempt.seconds)}{call}: {one_line(heading)}"
        )
        yield from (f"  {one_line(line)}" for line in attempt.traceback.splitlines())
    yield from _steps(job)
    yield from _log(job)


def _identity(job: JobDetails, waiting_reason: str) -> Iterator[tuple[str, str]]:
    yield "Job", job.id
    detail = ", asked to stop" if job.is_stopping else ""
    yield "State", f"{job.state}{detail}"
    if waiting_reason:
        yield "Waiting", waiting_reason
    if written := written_text(job):
        yield "Written", written
    yield "Task", job.task or "(unreadable)"
    yield "Queue", job.queue
    yield "Client", job.client or "-"


def _workflow(member: Membership | None) -> Iterator[tuple[str, str]]:
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
    yield "Attempts", f"{number(_attempts(job))} ({number(job.failures)} failed, {number(job.crashes)} crashed)"
    for name in _TIMES:
        if at := getattr(job, name):
            yield _TITLES[name], _on_clock(at)
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
        yield f"  {_on_clock(step.ended_at)} {one_line(step.name)} ({how}): {one_line(as_json(step.result))[:200]}"


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
        yield f"  {_on_clock(line.at)} {one_line(line.level)} {one_line(line.logger)}: {one_line(first)}"
        yield from (f"    {one_line(other)}" for other in others)


_TITLES = {
    "made_at": "Made",
    "ready_at": "Ready",
    "due_at": "Due",
    "expires_at": "Expires",
    "claimed_at": "Claimed",
    "died_at": "Died",
    "finished_at": "Finished",
}


def _attempts(job: JobDetails) -> int:
    return max(job.attempt, job.failures + job.crashes)


def _time_of(job: JobDetails) -> datetime | None:
    """When it died, finished, or was claimed; when it is due; or else since when it is ready."""
    return job.died_at or job.finished_at or job.claimed_at or job.due_at or job.ready_at or job.made_at


def _on_clock(at: datetime | None) -> str:
    return localtime(at).isoformat(sep=" ", timespec="seconds") if at else "-"

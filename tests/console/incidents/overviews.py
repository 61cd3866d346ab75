"""Builds data of the overview by hand."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from django_rtq.console.incidents import Seen, find_incidents
from django_rtq.console.merging import merge
from django_rtq.console.reading.details import QueueDetails, RunningJob, WorkerDetails
from django_rtq.console.reading.metrics.task_failures import Runs, TaskFailures
from django_rtq.console.reading.metrics.time_series import Series
from django_rtq.console.reading.overview import UNSCHEDULED, Overview, QueueRow, WorkflowStates
from django_rtq.console.server_info import ServerDetails
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import JobState

NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=timezone.utc)
START = datetime(2026, 2, 3, 3, 6, tzinfo=timezone.utc)  # of the first minute of a series


def ago(seconds):
    return NOW - timedelta(seconds=seconds)


def minutes(*last):
    """Counters of an hour that end with these values."""
    return [0] * (60 - len(last)) + list(last)


def last_runs(*minutes, in_a_row=0, since=None, hours=(0, 0), **versions):
    """The last runs of a task, of each minute how many failed and how many there were; the present one last."""
    present = int(NOW.timestamp()) // 60
    numbers = {present - ago: Runs(*runs) for ago, runs in enumerate(reversed(minutes))}
    known = {at: runs for at, runs in numbers.items() if runs.runs}
    of_versions = {version: Runs(*runs) for version, runs in versions.items()}
    return TaskFailures(in_a_row=in_a_row, since=since, minutes=known, hours=Runs(*hours), versions=of_versions)


def row(name="mail", *, failures=None, dead_letter=None, retrying_job=None, counts=None, busiest=None, **details):
    """A queue of the overview."""
    plain = dict.fromkeys(("queued", "scheduled", "retrying", "running", "dead", "clients"), 0)
    known = {"paused": False, "oldest_seconds": None, "contact_seconds": 1.0, "scheduler_seconds": 1.0, **plain}
    return QueueRow(
        details=QueueDetails(name=name, **{**known, **details}),
        series=Series(begins_at=START, step_seconds=60, steps=60, counts=counts or {}),
        slots=1,
        task_failures=failures or {},
        newest_dead=dead_letter,
        newest_retrying=retrying_job,
        busiest=busiest,
    )


def worker(*running, **details):
    """A worker that serves the queues of these tests."""
    known = {"name": "w1", "queues": ["mail", "low"], "last_seen_seconds": 1.0, "last_claim_seconds": 1.0}
    known |= {"jobs_done": 1, "host": "web1", "pid": 7, "lease_left_seconds": 10.0}
    return WorkerDetails(running=list(running), **{**known, **details})


def running(**details):
    known = {"id": "a", "queue": "mail", "task": "shop.tasks.resize", "client": "", "attempt": 1, "seconds": 5.0}
    known["claimed_at"] = ago(details.get("seconds", 5.0))
    return RunningJob(**{**known, "worker": "w1", **details})


def failed(task, error_class, error="", **details):
    """A failed job with the fields that the overview reads."""
    errors = [{"error_class": error_class, "error": error}]
    return JobDetails(id="a", queue="mail", state=JobState.DEAD, task=task, errors=errors, **details)


def overview(*rows, workers=None, deploys=(), blocked=(), **server):
    """An overview of these queues, with one worker unless others are given."""
    details = [one.details for one in rows]
    return Overview(
        now=NOW,
        queues=list(rows),
        workers=[worker()] if workers is None else workers,
        server=ServerDetails(now_ms=0, **server),
        deploys=list(deploys),
        workflows=WorkflowStates(blocked=blocked),
        unscheduled=[
            one.name for one in details if one.scheduler_seconds is None or one.scheduler_seconds > UNSCHEDULED
        ],
    )


def incidents(*rows, lag=None, **options):
    """What is wrong."""
    return find_incidents(Seen(overview=overview(*rows, **options), lag=lag))


def of_shards(found):
    """The incidents of some shards, by their numbers, as what was seen of all together has them."""
    found_in = {number: [replace(each, shards=(number,)) for each in of_shard] for number, of_shard in found.items()}
    return merge(Seen(overview=overview(), incidents=of_shard) for of_shard in found_in.values()).incidents


def kinds(*rows, **options):
    """The kinds of what is wrong."""
    return [incident.kind for incident in incidents(*rows, **options)]

"""The stored outcome of a job that is over: the only module that reads and writes it.

``<ms> <ms> <JSON>``: when the job finished, for how many ms after that it is kept, and an object with "state". Python
writes the JSON and the script that settles the job adds the times (lua/lib/outcomes.lua). cancel.lua compares its
beginning.
"""

from __future__ import annotations

import re
from typing import Any

from django_rtq.core.jobs import serializer
from django_rtq.exceptions import PayloadError

MAX_CALL = 10_000  # characters of a call that are kept with a result
CANCELLED_UNRUN = '{"state":"cancelled"}'
_LOST = b'"is_lost":true}'
_TASK = re.compile(r'^\{"task":"[^"\\]*",?')  # the beginning of the JSON of a record
_OUTCOME = re.compile(rb"(\d{1,15}) (\d{1,15}) (.*)", re.DOTALL)

# The JSON is formatted by hand: json.dumps() takes four times as long, and this is done for each job. Names of tasks
# need no escapes. 12e-6 is written in a third of the time of 0.000012.


def write_succeeded(task: str, client: bytes, attempt: int, seconds: float, result: str, details: str = "") -> str:
    """The outcome of a job that succeeded. `result`: what the task returned, as JSON. `details`: further members."""
    of_client = f'"client":{serializer.dumps(client.decode())},' if client else ""
    return (
        f'{{"state":"succeeded","task":"{task}",{of_client}"attempt":{attempt},'
        f'"seconds":{round(seconds * 1e6)}e-6,"result":{result}{details}}}'
    )


def write_version(version: str | None) -> str:
    """A member of an outcome: the version of the project that ran it. "" if that has none."""
    return f',"version":{serializer.dumps(version)}' if version else ""


def write_details(claimed_ms: int, body: str, failures: str) -> str:
    """Members of the outcome of a job whose task has keeps_call: when it began, its call and earlier failures.

    `body`: the JSON of its record. `failures`: one JSON a line.
    """
    lines = ",".join(failures.splitlines())
    return f',"claimed_ms":{claimed_ms},"call":{body},"failures":[{lines}]'


def write_call(body: str) -> str:
    """A member of an outcome: the call of a job, from the JSON of its record. "" if it is too long to keep."""
    if len(body) > MAX_CALL:
        return ""
    return f',"call":{_TASK.sub("{", body, count=1)}'  # the outcome has the task already


def write_cancelled(task: str, attempt: int) -> str:
    """The outcome of a job that was stopped while it ran."""
    return f'{{"state":"cancelled","task":"{task}","attempt":{attempt}}}'


def write_expired(task: str) -> str:
    """The outcome of a job that expired."""
    return f'{{"state":"expired","task":"{task}"}}'


def drop_result(outcome: bytes) -> bytes:
    """The JSON of a job that succeeded, without its result, which is marked as lost."""
    return outcome.partition(b'"result":')[0] + _LOST


def is_result_lost(outcome: bytes) -> bool:
    """Whether drop_result() wrote it."""
    return outcome.endswith(_LOST)


def read_outcome(text: bytes) -> tuple[int, int, dict[str, Any]]:
    """When the job finished (ms), for how many ms after that the outcome is kept, and its JSON.

    0, 0 and {} for an outcome that cannot be read.
    """
    parts = _OUTCOME.fullmatch(text)
    if parts is None:
        return 0, 0, {}
    try:
        outcome = serializer.loads(parts[3])
    except PayloadError:
        outcome = {}
    return int(parts[1]), int(parts[2]), outcome if isinstance(outcome, dict) else {}

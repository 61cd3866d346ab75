"""The stored record of a job: the only module that reads it. job.py writes a part of it.

A record is a header line and a JSON object: ``<priority> <max_crashes> <ready_ms> <expires_ms> <client>\\n{"task":…}``.
Scripts write the header, except that of a large record, and read it (read_header in lua/lib/prelude.lua): its times are
by the clock of the server. They do not parse the JSON: cjson turns [] into {} and loses digits. A hash for each job
would take more memory. What changes during the life of a job is stored in other keys. A ``+`` after the priority marks
a job that was delayed, in a queue with delayed_first.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, NamedTuple

from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.job import Job
from django_rtq.exceptions import PayloadError

_TASK = re.compile(r'\{"task":"((?:[^"\\]|\\.)*)"')  # the beginning of every body


def read_header(line: bytes) -> dict[str, Any]:
    """The first line of a record, as fields of a Job. Raises ValueError for a line that no version wrote."""
    priority, max_crashes, ready_ms, expires_ms, client = line.decode().split(" ", 4)
    times = {"ready_ms": int(ready_ms), "expires_ms": int(expires_ms)}
    return {"client": client, "priority": int(priority.removesuffix("+")), "max_crashes": int(max_crashes), **times}


def read_call(record: bytes) -> tuple[bytes, bytes, int, int, str, Any, Any, dict[str, Any]]:
    """The fast reader of workers: client, max_crashes, ready_ms, expires_ms, task, args, kwargs and options.

    The options have the headers as well.

    Raises PayloadError, ValueError, KeyError, TypeError or AttributeError.
    """
    line, _, body = record.partition(b"\n")
    _, max_crashes, ready_ms, expires_ms, client = line.split(b" ", 4)
    call = serializer.loads(body)
    task, args, kwargs = call.pop("task"), call.pop("args", ()), call.pop("kwargs", {})
    if type(args) not in (list, tuple) or type(kwargs) is not dict:
        raise ValueError("the arguments of the record are not a list and an object.")
    return client, max_crashes, int(ready_ms), int(expires_ms), task, args, kwargs, call


def read_record(job_id: str, queue: str, record: bytes, *, failures: int = 0, crashes: int = 0) -> Job:
    """Read a record as a Job. Raises PayloadError or ValueError."""
    try:
        _, _, _, _, task, args, kwargs, options = read_call(record)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("This record names no task.") from error
    if not isinstance(task, str):
        raise ValueError("This record names no task.")
    return Job(
        id=job_id,
        task=task,
        queue=queue,
        **read_header(record.partition(b"\n")[0]),
        args=list(args),
        kwargs=kwargs,
        attempt=failures + crashes + 1,
        failures=failures,
        headers=options.pop("headers", {}),
        options=options,
    )


def read_leniently(record: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and JSON of a record, for pages and commands; {} for what cannot be read."""
    line, _, body = record.partition(b"\n")
    header: dict[str, Any] = {}
    with suppress(ValueError, PayloadError):
        header = read_header(line)
        call = serializer.loads(body)
        return header, call if isinstance(call, dict) else {}
    return header, {}


def task_in(record: bytes) -> str:
    """The name of the task as the record has it, read fast; "" if it cannot be read."""
    start = record.find(b'\n{"task":"') + 10
    return record[start : record.find(b'"', start)].decode("utf-8", "replace") if start >= 10 else ""


def band_in(record: bytes) -> bytes:
    """In which band of its queue the job waits, or has waited: its priority, perhaps with a mark."""
    return record.partition(b" ")[0]


def read_head(head: bytes) -> tuple[str | None, str]:
    """Client and task name from the first bytes of a record; None and "" for what cannot be read."""
    line, _, body = head.partition(b"\n")
    task = _TASK.match(body.decode(errors="replace"))
    client = None
    with suppress(ValueError):
        client = read_header(line)["client"]
    return client, serializer.unquoted(task[1]) if task else ""


def has_body(record: bytes, body: str) -> bool:
    """Whether the record has this body, behind any header; "": whatever it is."""
    return not body or record.partition(b"\n")[2] == body.encode()


class HeldEntry(NamedTuple):
    """An entry of a processing list, as scripts write it: "<attempt> <claimed ms>[:<ran ms> <client>]"."""

    attempt: int
    claimed_ms: int | None = None  # None: a former version wrote it

    @classmethod
    def read(cls, entry: bytes) -> HeldEntry:
        """Raises ValueError for an entry that no version wrote."""
        attempt, _, times = entry.partition(b" ")
        claimed = times.partition(b" ")[0].partition(b":")[0]
        return cls(int(attempt), int(claimed) if claimed else None)


class Wait(NamedTuple):
    """What a job waits for, or has waited for last."""

    due_ms: int  # when it goes on at the latest
    sleeps: int  # how many have begun
    reads: int  # how many events it has got
    event: str  # "<number> <name>"; "": it sleeps

    @classmethod
    def read(cls, entry: bytes | None) -> Wait | None:
        """From an entry of `step_jobs`. None: the job has never waited."""
        if not entry:
            return None
        due, sleeps, reads, *event = entry.decode().split(" ", 3)
        return cls(int(due), int(sleeps), int(reads), event[0] if event else "")

    @property
    def text(self) -> str:
        """What it waits for, as settle.lua takes it."""
        return f"{self.sleeps} {self.reads}" + (f" {self.event}" if self.event else "")

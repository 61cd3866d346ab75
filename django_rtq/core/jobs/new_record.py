"""What callers write of the record of a new job: see record.py."""

from __future__ import annotations

from django_rtq.core.jobs import serializer


def write_body(task: str, arguments: str, options: str = "") -> str:
    """The JSON behind the header. `arguments` and `options` are members of JSON objects, without the braces.

    Written by hand, because the arguments are JSON already and the name of a task needs no escapes.
    """
    return f'{{"task":"{task}"{"," if arguments else ""}{arguments}{"," if options else ""}{options}}}'


def write_record(priority: int, max_crashes: int, made_ms: int, client: str, body: str) -> str:
    """The record of a job that may start at once and does not expire. Scripts write all others."""
    return f"{priority} {max_crashes} {made_ms} 0 {client}\n{body}"


def check_body(task: str, body: str, limit: int) -> None:
    """Raises PayloadTooLarge for a body of more bytes than this."""
    serializer.check_size(task, "the arguments have", body, limit, "Store them and pass a key.")
